"""The sound blocks say what is written by hand of them, token by token.

What is written is in `tools.measure.clinic.by_hand`, for all that are measured
on and for some of the others.
"""

import pytest
import torch

from tools.measure.clinic.by_hand.written import BLOCKS, formula_of
from tools.measure.clinic.oracle import trials
from tools.measure.clinic.patients import patient, stirred, styles

KINDS = ("encoder-block", "decoder-block")
STYLES = {f"{s.kind}/{s.name}": s for s in styles() if s.kind in KINDS}


def first(said):
    """What a block says, without its weights."""
    return said[0] if isinstance(said, tuple) else said


def block_of(name):
    """A block with numbers that show mistakes, its patient and formula."""
    style = STYLES[name]
    made = patient(style.text)
    return stirred(made.thing), made, formula_of(style, made)


@pytest.mark.parametrize("name", BLOCKS)
@torch.no_grad()
def test_blocks_say_what_is_written_of_them(name):
    block, made, formula = block_of(name)
    for given, _ in trials(made, STYLES[name].kind, torch.float64, 12):
        torch.testing.assert_close(
            formula(block, **given),
            first(block(**given)),
            rtol=1e-9,
            atol=1e-9,
            equal_nan=True,
        )


@pytest.mark.parametrize("name", BLOCKS)
@torch.no_grad()
def test_blocks_say_so_in_float32_too(name):
    block, made, formula = block_of(name)
    block.float()
    for given, by in trials(made, STYLES[name].kind, torch.float32, 8):
        if by.loud > 4:
            continue  # what is loud is not as exact
        torch.testing.assert_close(
            formula(block, **given),
            first(block(**given)),
            rtol=1e-4,
            atol=1e-4,
            equal_nan=True,
        )


@pytest.mark.parametrize("name", BLOCKS)
@torch.no_grad()
def test_a_number_of_any_matrix_counts(name):
    block, made, formula = block_of(name)
    calls = [
        given
        for given, by in trials(made, STYLES[name].kind, torch.float64, 16)
        if by.loud == 1
    ]
    written = [formula(block, **given) for given in calls]
    matrices = {n: p for n, p in block.named_parameters() if p.ndim > 1}
    for weight, values in matrices.items():
        for place in (0, values.numel() // 2, -1):
            values.view(-1)[place] += 2
            gaps = [
                (first(block(**given)) - said).abs().nan_to_num(0).max()
                for given, said in zip(calls, written, strict=True)
            ]
            values.view(-1)[place] -= 2
            assert max(gaps) > 1e-3, (weight, place)


def test_arguments_may_come_in_their_order():
    block, made, formula = block_of(
        "encoder-block/past_by_kernel_and_attention"
    )
    (given, _), *_ = trials(made, "encoder-block", torch.float64, 1)
    hidden, x = given["padding_mask"], given["inputs"]
    expected = formula(block, inputs=x, padding_mask=hidden)
    assert torch.equal(formula(block, hidden, x), expected)


def test_all_that_are_measured_on_are_written():
    own = {
        name
        for name, style in STYLES.items()
        if style.half == "measure"
        and patient(style.text).facts.get("formula") == "own"
    }
    assert own and own <= BLOCKS.keys()
    assert BLOCKS.keys() <= STYLES.keys()
