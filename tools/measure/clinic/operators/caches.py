"""Mistakes of caches: what is kept, read, and where it begins."""

import ast
import re
from collections.abc import Iterator

from tools.measure.clinic.operators import operator
from tools.measure.clinic.operators.syntax import call, text

CACHED = frozenset({"cached-decoder"})


def joins(node: ast.AST) -> list[str]:
    """The two things that are laid behind each other, if it does that."""
    if not call(node, "cat") or not node.args:
        return []
    pair = node.args[0]
    if not isinstance(pair, ast.Tuple | ast.List) or len(pair.elts) != 2:
        return []
    found = [text(item) for item in pair.elts]
    return found if re.search("past|cache|state", found[0]) else []


@operator(CACHED)
def new_ones_in_front(node: ast.AST) -> Iterator[str]:
    """The new keys or values stand before the old ones."""
    if joins(node):
        old, new = joins(node)
        yield text(node).replace(f"{old}, {new}", f"{new}, {old}")


@operator(CACHED)
def cache_not_read(node: ast.AST) -> Iterator[str]:
    """What was kept is not looked at."""
    if isinstance(node, ast.If) and re.fullmatch(
        r"(cache|past|state|pasts)( is not None)?", text(node.test)
    ):
        yield "pass"


@operator(CACHED)
def keys_and_values_exchanged(node: ast.AST) -> Iterator[str]:
    """Kept in one order, read in the other."""
    if isinstance(node, (ast.Return, ast.Assign)):
        whole = text(node)
        for was, becomes in (
            ("(k, v)", "(v, k)"),
            ("'keys': k, 'values': v", "'keys': v, 'values': k"),
            ("{'k': k, 'v': v}", "{'k': v, 'v': k}"),
            ("(keys, values, end)", "(values, keys, end)"),
            ("past_k, past_v = cache", "past_v, past_k = cache"),
        ):
            if was in whole:
                yield whole.replace(was, becomes)


@operator(CACHED)
def newest_not_kept(node: ast.AST) -> Iterator[str]:
    """The last token of each chunk is forgotten, or the oldest."""
    for name, cut in kept(node):
        yield text(node).replace(name, cut("-1:"), 1)
    for name, cut in kept(node):
        yield text(node).replace(name, cut(":-1"), 1)


def kept(node: ast.AST) -> Iterator[tuple]:
    """Where a cache is returned: its text, and one that is cut."""
    if not isinstance(node, ast.Return | ast.Assign):
        return
    whole = text(node)
    for pair, axes in (("(k, v)", ":, :, {}"), ("(k, v)", ":, {}")):
        if pair in whole:
            yield (
                pair,
                lambda part, axes=axes: (
                    f"(k[{axes.format(part)}], v[{axes.format(part)}])"
                ),
            )


@operator(CACHED)
def cache_not_renewed(node: ast.AST) -> Iterator[str]:
    """The joined ones are used, and the old ones are handed back."""
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        if len(node.value.elts) != 2:
            return
        out, new = node.value.elts
        whole = text(new)
        for name in ("cache", "past", "state"):
            if whole in ("(k, v)", "new") or "'keys': k" in whole:
                yield f"return {text(out)}, {name} or {whole}"


@operator(CACHED)
def window_cut_too_early(node: ast.AST) -> Iterator[str]:
    """What is kept, or joined, is shorter than what is to be seen."""
    if isinstance(node, ast.Slice) and text(node) == "-WINDOW:":
        yield "-WINDOW + 2:"
    if joins(node) and "cache[" in joins(node)[0]:
        old, _ = joins(node)
        yield text(node).replace(old, f"{old}[:, -2:]", 1)


@operator(CACHED)
def all_texts_go_on_as_the_first(node: ast.AST) -> Iterator[str]:
    """The first row of the cache is read for all."""
    if joins(node):
        old, _ = joins(node)
        yield text(node).replace(old, f"{old}[:1].expand_as({old})", 1)


@operator(CACHED)
def kept_in_half_precision(node: ast.AST) -> Iterator[str]:
    """Keys and values are kept in bfloat16."""
    if joins(node):
        old, new = joins(node)
        yield text(node).replace(old, f"{old}.bfloat16().to({new}.dtype)", 1)


@operator(CACHED)
def only_one_is_joined(node: ast.AST) -> Iterator[str]:
    """The new keys are put where some of the old ones were."""
    if isinstance(node, ast.Slice) and text(node) == "start:end":
        yield "0:n"
    if isinstance(node, ast.Slice) and text(node) == ":end":
        yield ":max(end - 1, 1)"


@operator(CACHED)
def chunk_not_causal(node: ast.AST) -> Iterator[str]:
    """In a chunk, tokens see those after them."""
    if call(node, "tril", "triu"):
        how = "ones" if call(node, "tril") else "zeros"
        x = text(node.func.value)
        yield f"torch.{how}_like({x})"
    if isinstance(node, ast.Compare) and "arange" in text(node):
        yield f"torch.ones_like({text(node)})"


@operator(CACHED)
def caches_of_layers_exchanged(node: ast.AST) -> Iterator[str]:
    """Each layer reads the first one's cache."""
    if isinstance(node, ast.Subscript) and text(node) == "pasts[i]":
        yield "pasts[0]"
