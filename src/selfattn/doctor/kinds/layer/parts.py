"""Find the projections of a module, under whatever names."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from selfattn.doctor.kinds.layer.affine import (
    Affine,
    as_matrix,
    biases_apart,
    joined,
    keys_and_values,
    queries_in,
    unpacked,
)
from selfattn.doctor.kinds.layer.kernels import (
    by_told,
    is_turned,
    of_heads,
)
from selfattn.doctor.kinds.layer.library import library_layer, torch_own
from selfattn.doctor.kinds.layer.pieces import of_whole
from selfattn.doctor.kinds.layer.words import part_called

HEADS = (
    *("n_heads", "num_heads", "heads", "h", "n_head", "nhead", "nheads"),
    *("num_attention_heads", "num_q_heads", "n_q_heads", "n_local_heads"),
    *("head_count", "num_head", "nb_heads", "attention_heads"),
)
WIDTHS = (
    *("d_head", "head_dim", "dim_head", "d_k", "head_size"),
    *("attention_head_size", "dim_per_head"),
)
MODEL = (
    *("d_model", "embed_dim", "dim", "hidden_size", "n_embd", "d_embed"),
    *("emb_dim", "d_in", "embed_size", "emb_size"),
)


class Projections(NamedTuple):
    """All that attention by heads has to learn."""

    q: Affine
    k: Affine
    v: Affine
    out: Affine | None
    n_heads: int
    n_kv_heads: int
    gate: Affine | None = None  # if one matrix holds that, too


def own_numbers(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The parameters of its own, those in a dictionary of them, too."""
    yield from module.named_parameters(recurse=False)
    for held in module.children():
        if isinstance(held, nn.ParameterDict):
            yield from held.named_parameters(recurse=False)


def affines(module: nn.Module) -> Iterator[tuple[str, Affine]]:
    """Every matrix of a module, with its name and its bias."""
    for name, inner in module.named_modules():
        weight = getattr(inner, "weight", None)
        matrix = as_matrix(inner, weight)
        if matrix is not None and name:
            # GPT-2 keeps its matrices on their side, in a class of its own.
            turned = type(inner).__name__ == "Conv1D"
            W = matrix if turned else matrix.mT
            b = getattr(inner, "bias", None)
            yield name, Affine(W, b, (weight, b))
    for name, weight in own_numbers(module):
        if weight.ndim == 2 and part_called(name) and name[:2] != "b_":
            part = part_called(name)
            W = weight.mT if is_turned(name, part, weight) else weight
            b = bias_beside(module, name, W)
            yield name, Affine(W, b, (weight, b))


def bare(module: nn.Module) -> dict[int, str]:
    """Square matrices that are parameters of its own, with their names.

    Whether those are of (in, out) or of (out, in) is not to be seen.
    """
    three = {id(x) for one in stacked(module).values() for x in one.whole}
    return {
        id(x): name
        for name, x in own_numbers(module)
        if x.ndim > 1 and x.shape[-2] == x.shape[-1]
        if id(x) in three or (x.ndim == 2 and (three or part_called(name)))
        if not name.endswith("proj_weight")
    }


def bias_beside(module: nn.Module, name: str, W: Tensor) -> Tensor | None:
    """The parameter that is named like a matrix, as its bias, and as wide."""
    part = part_called(name)
    for other, x in own_numbers(module):
        its = re.sub("^(b|bias)_?|_?(bias|b)$", "", other)
        fits = x.numel() == W.shape[-1]
        if its != other and fits and part_called(its or "out") == part:
            return x.flatten()
    return None


def by_heads(module: nn.Module, n_heads: int) -> dict[str, Affine]:
    """Parameters with an axis for heads, as the matrices that they make."""
    found = {}
    for name, weight in own_numbers(module):
        part = part_called(name)
        if weight.ndim != 3 or part is None:
            continue
        W = of_heads(weight, part, n_heads)
        b = bias_beside(module, name, W)
        found[part] = Affine(W, b, (weight, b))
    return found


def heads_of_out(module: nn.Module) -> int:
    """How many heads it joins, if that has an axis: (heads, d_head, d)."""
    for name, weight in own_numbers(module):
        if weight.ndim == 3 and part_called(name) == "out":
            return int(weight.shape[0])
    return 0


def lists(module: nn.Module) -> int:
    """How many heads there are, if each has a map or a module of its own."""
    longest = (x for x in module.modules() if isinstance(x, nn.ModuleList))
    return max((len(x) for x in longest), default=0) if of_lists(module) else 0


def of_lists(module: nn.Module) -> dict[str, Affine]:
    """What lists hold, a map a head or a module a head, side by side."""
    listed: dict[str, list[Affine]] = {}
    for name, affine in affines(module):
        found = re.fullmatch(r"(.*?)\.?\b(\d+)\b\.?(.*)", name)
        if found is None:
            continue
        word = found[3] or found[1]
        part = part_called(word.rpartition(".")[-1])
        if part in ("q", "k", "v"):
            listed.setdefault(part, []).append(affine)
    return {p: joined(maps) for p, maps in listed.items() if are_beside(maps)}


def are_beside(maps: Sequence[Affine]) -> bool:
    """Whether these are maps of one input, and not one behind the other."""
    return len(maps) > 1 and len({one.W.shape[0] for one in maps}) == 1


def stacked(module: nn.Module) -> dict[str, Affine]:
    """Queries, keys and values, in that order, of one parameter of three."""
    for name, x in own_numbers(module):
        if x.ndim == 3 and len(x) == 3 and part_called(name) is None:
            return {
                part: Affine(W, None, (x,))
                for part, W in zip("qkv", x, strict=True)
            }
    return {}


def by_word(module: nn.Module, told: dict[str, str]) -> dict[str, Affine]:
    """The matrices of a module by their part: q, k, v, out, qkv or kv."""
    found: dict[str, Affine] = {}
    for name, affine in affines(module):
        last = name.removesuffix(".0").rpartition(".")[-1]
        for part, its_name in told.items():
            if its_name == name:
                found[part] = affine
        named = part_called(last)
        if named is not None and named not in told:
            found.setdefault(named, affine)
    if (library := library_layer(module)) is not None:
        found |= torch_own(library)
    elif isinstance(module, nn.MultiheadAttention):
        found.pop("qkv", None)  # a child's, of which nobody knows the parts
    found |= of_lists(module)
    if not {"q", "qkv"} & found.keys():
        found |= stacked(module)
    four = getattr(module, "linears", None)  # the Annotated Transformer's
    if isinstance(four, nn.ModuleList) and len(four) == 4:
        parts = zip(("q", "k", "v", "out"), four, strict=True)
        found |= {
            n: Affine(x.weight.mT, x.bias, (x.weight, x.bias))
            for n, x in parts
        }
    return found


def maps_of(
    module: nn.Module, told: dict[str, str], n_heads: int
) -> dict[str, Affine]:
    """The maps of x by their part, also those with an axis for heads."""
    found = by_word(module, told) | by_heads(module, n_heads)
    found |= by_told(module, told, n_heads, found)
    found |= biases_apart(found, dict(own_numbers(module)))
    wide = number(module, MODEL), number(module, WIDTHS)
    return found | of_whole(found, n_heads, *wide)


def projections(
    module: nn.Module,
    n_heads: int,
    packed: str,
    told: dict[str, str],
    order: str = "qkv",
    turned: bool = False,
) -> Projections | None:
    """The projections of a module; None if they are not to be recognised.

    Args:
        module: what holds them.
        n_heads: how many query heads it has.
        packed: how one matrix holds all three: "by part" (q, k, v) or "by
            head" (q, k, v of the first head, then of the next).
        told: the names of submodules for q, k, v, out, qkv and kv.
        order: in which that matrix holds them; "z" is a gate.
        turned: whether bare matrices are of (out, in), as in nn.Linear.
    """
    found = maps_of(module, told, n_heads)
    found |= on_their_side(module, found) if turned else {}
    if "q" not in found and "qkv" in found:
        d_q = queries_in(found)
        found |= unpacked(found["qkv"], n_heads, packed, order, d_q)
    if "k" not in found and "kv" in found:
        d_head = found["q"].W.shape[-1] // n_heads if "q" in found else 0
        found |= keys_and_values(found["kv"], d_head, packed)
    if not {"q", "k", "v"} <= found.keys():
        return None
    d_q, d_k = found["q"].W.shape[-1], found["k"].W.shape[-1]
    if d_q % n_heads or d_k % (d_q // n_heads):
        return None
    q, k, v = (found[part] for part in "qkv")
    n_kv_heads = d_k // (d_q // n_heads)
    out = found.get("out") or the_other(module, (q, k, v), turned)
    merged = v.W.shape[-1] // n_kv_heads * n_heads
    if out is not None and out.W.shape[0] != merged:
        out = None
    return Projections(q, k, v, out, n_heads, n_kv_heads, found.get("z"))


def on_their_side(
    module: nn.Module, found: dict[str, Affine]
) -> dict[str, Affine]:
    """Those of the matrices that are bare, with their two axes exchanged."""
    own = bare(module)
    return {
        part: one._replace(W=one.W.mT)
        for part, one in found.items()
        if id(one.whole[0]) in own
    }


def the_other(
    module: nn.Module, known: Sequence[Affine], turned: bool = False
) -> Affine | None:
    """The one matrix that is none of these, and takes what they bring."""
    own = {id(x) for one in known for x in one.whole if x is not None}
    bare = [
        (name, Affine(x, bias_beside(module, name, x), (x,)))
        for name, x in own_numbers(module)
        if x.ndim == 2 and part_called(name) is None
    ]
    for listed in (affines(module), bare):
        others = [
            one
            for _, one in listed
            if not own & {id(x) for x in one.whole if x is not None}
        ]
        if others and own:
            first = {"": others[0]}
            first |= on_their_side(module, first) if turned else {}
            return first[""] if len(others) == 1 else None
    return None


def number(module: Any, names: Sequence[str]) -> int | None:
    """The first of some attributes, of a module or its config."""
    configs = (getattr(module, name, None) for name in ("config", "args"))
    for holder in (module, *configs):
        for name in names:
            value = getattr(holder, name, None)
            if isinstance(value, int) and value > 0:
                return value
    return None


def heads_inside(module: nn.Module) -> int | None:
    """The number of heads that it, or the one that a part of it, tells."""
    found = {number(part, HEADS) for part in module.modules()} - {None}
    return number(module, HEADS) or (found.pop() if len(found) == 1 else None)
