"""Hostile numbers: types, magnitudes, NaN and infinity, seen and hidden."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from hostile.feeding import Call, alternatives
from hostile.recipes import PLACES_IN_SCORES, ROUNDS_SUMS
from hostile.trials import (
    Case,
    in_dtype,
    in_float64,
    plain,
    poisons,
    with_gradients,
)
from hostile.verdicts import Trial, leaves

FLOATS = (torch.float32, torch.bfloat16, torch.float16)
NO_FLOATS = (
    *(torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool),
    *(torch.complex64, torch.complex128, torch.float8_e4m3fn),
)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.uint8)
NO_INTEGERS = (torch.float32, torch.float16, torch.complex64, torch.bool)
NO_BOOLS = (torch.float32, torch.int64, torch.uint8, torch.complex64)
MAGNITUDES = (1e4, 1e6, 1e8, 1e12, 1e20, 1e30)


def trials(case: Case) -> Iterator[Trial]:
    """Types first, then sizes of numbers, then what is no number."""
    yield from other_types(case)
    yield from halves(case)
    if case.call.floats():
        if case.call.target.name not in ROUNDS_SUMS:
            yield from magnitudes(case)
        yield from seen(case)
        yield from other_sequences(case)


def halves(case: Case) -> Iterator[Trial]:
    """All in another floating-point type; or one tensor alone."""
    if not (case.call.floats() or case.call.module):
        return
    for dtype in FLOATS:
        call = in_dtype(case.call, dtype)
        trial = case.trial(
            "a dtype",
            f"all in {dtype}",
            call,
            lambda call=call: with_gradients(call, plain),
            run=lambda call=call: with_gradients(call),
            dtype=dtype,
        )
        yield (
            trial
            if call.module is None
            else trial._replace(
                shaken=lambda seed, call=call: with_gradients(
                    rounded(call, seed), plain
                )
            )
        )
    for name, x in case.call.floats().items():
        dtype = case.rng.choice(FLOATS)
        call = case.call.having(**{name: x.to(dtype)})
        detail = f"{name} alone in {dtype}"
        yield case.trial(
            "a dtype", detail, call, lambda call=call: plain(call), dtype=dtype
        )


def rounded(call: Call, seed: int) -> Call:
    """In float64, each number off at random by what its type leaves out."""
    wide = in_float64(call)
    generator = torch.Generator().manual_seed(seed)

    def shake(x: Tensor, narrow: Tensor) -> Tensor:
        least = torch.finfo(narrow.dtype).eps / 2
        draw = torch.rand(x.shape, generator=generator, dtype=x.dtype)
        return x * (1 + least * (2 * draw - 1))

    floats = call.floats()
    given = {n: shake(x, floats[n]) for n, x in wide.floats().items()}
    with torch.no_grad():
        both = zip(
            wide.module.parameters(), call.module.parameters(), strict=True
        )
        for x, narrow in both:
            x.copy_(shake(x, narrow))
    return wide.having(**given)


def other_types(case: Case) -> Iterator[Trial]:
    """Whole numbers for floats, floats for whole numbers, complex ones."""
    for name, x in case.call.tensors().items():
        allowed = " ".join(
            " ".join(getattr(hint, "dtypes", ()))
            for hint in alternatives(case.call.target.hints.get(name))
        )
        refused = NO_FLOATS if x.is_floating_point() else NO_INTEGERS
        refused = NO_BOOLS if x.dtype == torch.bool else refused
        for dtype in refused:
            if str(dtype).removeprefix("torch.") not in allowed.split():
                wrong = {name: x.to(dtype)}
                yield case.nonsense("a dtype", f"{name} in {dtype}", **wrong)
        if x.dtype == torch.int64:
            for dtype in INTEGERS:
                call = case.call.having(**{name: x.to(dtype)})
                detail = f"{name} in {dtype}"
                yield case.trial("a dtype", detail, call, case.call.run)


def magnitudes(case: Case) -> Iterator[Trial]:
    """Numbers from 1e4 to 1e30, where float32 still tells the answer."""
    # Modules multiply x by itself: scores, variances. That must have a number.
    most = MAGNITUDES if case.call.module is None else MAGNITUDES[:4]
    for size in most:
        for detail, changed in enlarged(case, size):
            floats = {n: x.float() for n, x in changed.items()}
            call = in_dtype(case.call, torch.float32).having(**floats)
            if not all(x.isfinite().all() for x in call.floats().values()):
                continue
            yield case.trial(
                "a magnitude",
                f"{detail} {size:g}",
                call,
                lambda call=call: plain(call),
                dtype=torch.float32,
            )


def enlarged(
    case: Case, size: float
) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Arguments of that size. For a mechanism, such that rounding does not
    decide: values; or all keys alike; or one constant for all scores.
    """
    floats = case.call.floats()
    if not {"q", "k"} <= {*floats}:
        for name, x in floats.items():
            yield f"{name} times", {name: x * size}
        return
    if "v" in floats:
        yield "v times", {"v": floats["v"] * size}
    if call_of_places(case):
        return
    alike = torch.ones_like(floats["k"])
    ones = torch.ones_like(floats["q"])
    yield "all keys", {"q": ones, "k": alike * size}
    yield "all keys minus", {"q": ones, "k": alike * -size}
    yield "all queries", {"q": ones * size, "k": alike}


def call_of_places(case: Case) -> bool:
    """Whether keys that are alike still get other scores."""
    of = case.call.target.of
    return of is not None and of.__name__ in PLACES_IN_SCORES


def seen(case: Case) -> Iterator[Trial]:
    """NaN and infinity in one place, which everybody may feel who sees it."""
    for name, x in case.call.floats().items():
        if not x.numel():
            continue
        for poison in case.rng.sample([math.nan, math.inf, -math.inf], 2):
            at = tuple(case.rng.randrange(n) for n in x.shape)
            bad = x.clone()
            bad[at] = poison
            call = in_dtype(case.call.having(**{name: bad}), torch.float32)
            if case.is_mechanism:
                continue
            yield case.trial(
                "a number",
                f"{name} with {poison} at {at}",
                call,
                lambda call=call: plain(call),
                dtype=torch.float32,
            )


def other_sequences(case: Case) -> Iterator[Trial]:
    """What one sequence of a batch holds must not be felt by another."""
    tensors = case.call.tensors()
    sizes = {x.shape[0] for x in tensors.values() if x.ndim}
    n = case.sizes["batch"]
    if sizes != {n} or any(not batched(case, name) for name in tensors):
        return
    clean = case.call
    for poison in poisons(case.rng):
        for name, x in clean.floats().items():
            bad = x.clone()
            bad[1:] = poison
            call = clean.having(**{name: bad})
            yield case.trial(
                "a neighbour",
                f"{name} of the other sequences all {poison}",
                call,
                lambda: first_of(clean.run(), n),
                run=lambda call=call: first_of(call.run(), n),
            )


def batched(case: Case, name: str) -> bool:
    """Whether the first axis of an argument is the batch."""
    hints = alternatives(case.call.target.hints.get(name))
    dims = " ".join(getattr(hint, "dim_str", "") for hint in hints)
    return dims.startswith(("*#batch", "*batch", "batch"))


def first_of(result: Any, n: int) -> list[Any]:
    """What became of the first sequence."""
    return [
        x[0]
        for x in leaves(result)
        if isinstance(x, Tensor) and x.ndim and x.shape[0] == n
    ]
