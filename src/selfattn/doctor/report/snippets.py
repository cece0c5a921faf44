"""Code to copy and run: the smallest input on which an answer fails."""

import math
import textwrap
from collections.abc import Sequence

import torch
from torch import Tensor

from selfattn.doctor.patient import Call
from selfattn.doctor.probes import Inputs
from selfattn.doctor.report.record import Difference

WIDTH = 78
PLAIN = (Tensor, bool, int, float, str, torch.dtype, torch.Size)
MAX_SHOWN, MAX_LINES = 60, 60  # numbers; a snippet with more is no help


def snippet(
    inputs: Inputs, by_name: tuple[str, ...], name: str, found: Difference
) -> str:
    """Code to copy that shows a failure; nothing if it would be too long."""
    if not inputs:
        return ""
    plain = tuple(n for n in inputs if n not in by_name)
    named = {n: x for n, x in inputs.items() if n in by_name}
    call = Call(tuple(inputs[n] for n in plain), named)
    return snippet_of_calls([call], (name,), found, plain)


def snippet_of_calls(
    calls: Sequence[Call],
    code: Sequence[str],
    found: Difference,
    plain: Sequence[str] = (),
) -> str:
    """The same, of every call that was made; ``plain`` names its arguments.

    ``code`` holds the lines that come first, and then the name to call.
    """
    *setup, name = code
    lines: list[str] = []
    inputs = [named(call, plain) for call in calls]
    kept = {n for given in inputs for n, x in given.items() if is_kept(x)}
    back = f"_, {', '.join(sorted(kept))} = " if kept else ""
    for call, given in zip(calls, inputs, strict=True):
        written = {n: as_code(x) for n, x in given.items() if not is_kept(x)}
        if None in written.values():
            return ""
        lines += [f"{key} = {code}" for key, code in written.items()]
        listed = [f"{n}={n}" if n in call.named else n for n in given]
        lines.append(f"{back}{name}({', '.join(listed)})")
    lines = [*setup, *lines, *result(found)]
    if len(lines) > MAX_LINES:
        return ""
    return "\n".join(wrapped(line) for line in lines)


def named(call: Call, plain: Sequence[str]) -> dict[str, object]:
    """What a call was given, each by its name, or else by a number."""
    missing = range(len(plain), len(call.arguments))
    names = [*plain, *(f"x{i + 1}" for i in missing)]
    return dict(zip(names, call.arguments, strict=False)) | {**call.named}


def is_kept(x: object) -> bool:
    """Whether it is no plain input, but a cache that a call gave back."""
    return x is not None and not isinstance(x, PLAIN)


def result(found: Difference) -> list[str]:
    """What comes out and what should, as comments."""
    short = found.expected is not None and found.expected.numel() <= MAX_SHOWN
    if found.yours is None or found.expected is None or not short:
        return [f"# {found.sentence}"]
    what = "gradient" if found.sort == "gradient" else "yours"
    for places in (4, 8, 16):  # as many as it takes to see a difference
        yours = rounded(found.yours, places)
        expected = rounded(found.expected, places)
        if yours != expected:
            break
    return [f"# {what}: {yours}", f"# expected: {expected}"]


def wrapped(line: str) -> str:
    """A line of code or a comment, set in, and broken where it is long."""
    return textwrap.fill(
        line,
        WIDTH,
        initial_indent="    ",
        subsequent_indent="    # " if line[0] == "#" else " " * 8,
    )


def as_code(x: object) -> str | None:
    """Code that makes an input; None if it would be too long.

    >>> as_code(torch.tensor([[1.0, 0.5]]))
    'torch.tensor([[1.0, 0.5]])'
    >>> as_code(float("-inf"))
    "float('-inf')"
    """
    if isinstance(x, float) and not math.isfinite(x):
        return f"float('{x}')"
    if not isinstance(x, Tensor):
        return repr(x)
    if x.numel() > MAX_SHOWN:
        return None
    plain = x.dtype in (torch.float32, torch.bool, torch.int64)
    dtype = "" if plain else f", dtype={x.dtype}"
    turned = not x.is_contiguous() and x.mT.is_contiguous()
    listed = str((x.mT if turned else x).tolist())
    for word in ("inf", "nan"):
        listed = listed.replace(word, f"torch.{word}")
    return f"torch.tensor({listed}{dtype}){'.mT' * turned}"


def rounded(x: Tensor, places: int = 4) -> str:
    """The numbers of a tensor, to so many places, or its truths as they are.

    >>> rounded(torch.tensor([1 / 3, -1e-9]))
    '[0.3333, 0.0]'
    >>> rounded(torch.tensor([True, False]))
    '[True, False]'
    """
    if x.dtype == torch.bool:
        return str(x.tolist())
    return str((x.double().round(decimals=places) + 0.0).tolist())
