"""Answers as readers wrote them to the exercises on positions.

Each of them was told its numbers were wrong, and not which mistake it was;
one was called right: it refused with an assertion, where a ValueError was
asked for.
"""

import ast
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from selfattn.doctor import examine
from selfattn.doctor.exercises.positions import rope as wrong
from selfattn.doctor.kinds.positions.rotary import steps
from selfattn.positions import halves_to_pairs, pairs_to_halves, rope

EXPONENTIAL = "exponential"


def speeds(d, how, dtype=torch.float32):
    """A reader's speeds, by a power or by an exponential."""
    twice = torch.arange(0, d, 2).to(dtype)
    if how == EXPONENTIAL:
        return torch.exp(-twice * math.log(10_000) / d)
    return 10_000 ** (-twice / d)


def table_of(speed_of, dtype, factor=1.0):
    """A reader's `sinusoidal`, with angles of a number type."""

    def sinusoidal(n, d_model, start):
        p = torch.arange(start, start + n, dtype=dtype)[:, None]
        angle = factor * p * speed_of(d_model)
        waves = torch.stack((angle.sin(), angle.cos()), dim=-1)
        return waves.flatten(-2)[:, :d_model].float()

    return sinusoidal


def rotation_of(speed_of, dtype, factor=1.0):
    """A reader's `rope_halves`, with angles of a number type."""

    def rope_halves(x, offset):
        p = torch.arange(offset, offset + x.shape[-2], dtype=dtype)
        angle = factor * p[:, None] * speed_of(x.shape[-1])
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    return rope_halves


def exact(d):
    """The speeds as they should be."""
    return speeds(d, "power", torch.float64)


def doubled(d):
    """Speeds with 4i/d for an exponent."""
    return exact(d) ** 2


def rounded(d):
    """Speeds of whole exponents."""
    return 10_000.0 ** -(torch.arange(0, d, 2) // d).double()


ANSWERS = [
    (lambda d: speeds(d, "power"), torch.float32, 1, "float32"),
    (lambda d: speeds(d, "power"), torch.float64, 1, "float32"),
    (lambda d: speeds(d, EXPONENTIAL), torch.float32, 1, "float32"),
    (lambda d: speeds(d, EXPONENTIAL), torch.float64, 1, "float32"),
    (doubled, torch.float64, 1, "exponent doubled"),
    (rounded, torch.float64, 1, "one speed for all"),
    (exact, torch.float64, math.pi / 180, "in degrees"),
    (exact, torch.float64, 2 * math.pi, "whole turns"),
    (exact, torch.float64, 1, None),
]


@pytest.mark.parametrize(("speed_of", "dtype", "factor", "name"), ANSWERS)
@pytest.mark.parametrize(
    ("exercise", "answer"), [("sinusoidal", table_of), ("halves", rotation_of)]
)
def test_wrong_angles_are_named(
    exercise, answer, speed_of, dtype, factor, name
):
    """Four ways to float32, a doubled and a whole exponent, two units."""
    made = answer(speed_of, dtype, factor)
    report = examine(made, exercise=f"positions/{exercise}")
    assert report.passed == (name is None)
    if name is not None:
        assert name in report.mistake.name


@pytest.mark.parametrize(
    ("raised", "name"),
    [
        (AssertionError, "another error"),
        (IndexError, "another error"),
        (ValueError, None),
    ],
)
def test_a_short_table_is_refused_by_a_value_error(raised, name):
    """An assertion passed where the page asks for a `ValueError`."""

    def add_positions(x, table):
        if x.shape[1] > len(table):
            raise raised("too short")
        return x + table[: x.shape[1]]

    report = examine(add_positions, exercise="positions/batch_axis")
    assert (report.mistake and report.mistake.name) == name
    assert report.passed == (name is None)


def test_clockwise_scores_know_the_distance_with_the_other_sign():
    """They were said to come out the same."""
    clockwise = wrong.turned_the_other_way.answer
    one, two = (torch.randn(6).double().expand(5, 6) for _ in range(2))
    scores = clockwise(one, 0) @ clockwise(two, 0).T
    assert_close(clockwise(one, 100) @ clockwise(two, 100).T, scores)
    right = rope(one) @ rope(two).T
    assert_close(scores, right.T)
    assert not torch.allclose(scores, right)


def test_what_is_mirrored_changes_every_other_sign_and_may_change_lengths():
    """It was said to change every sign, and to be a reflection."""
    x = torch.randn(5, 6).double()
    forms = [made for name, made in steps.FORMS if name is wrong.mirrored]
    kept = []
    for form in forms:
        made = steps.turned(replace(steps.USUAL, **form), x, 0)
        assert_close(made[0, 0::2], x[0, 0::2])
        assert_close(made[0, 1::2], -x[0, 1::2])
        kept.append(torch.allclose(made.norm(dim=-1), x.norm(dim=-1)))
    assert kept == [False, True]
    assert_close(
        wrong.mirrored.answer(x, 0),
        steps.turned(replace(steps.USUAL, **forms[0]), x, 0),
    )
    assert "every other sign" in wrong.mirrored.symptom


def speeds_by(how, d):
    """A reader's speeds in float32: by which formula."""
    twice = torch.arange(0, d, 2)
    if how == "one over":
        return 1.0 / (10_000 ** (twice.float() / d))
    return speeds(d, how)


def rotated(x, angle, like):
    """The pairs of x, turned in the number type that they come to."""
    cos, sin = angle.cos().to(like), angle.sin().to(like)
    a, b = x[..., 0::2], x[..., 1::2]
    both = (a * cos - b * sin, a * sin + b * cos)
    return torch.stack(both, dim=-1).flatten(-2)


def promoted(x, p, speed):
    """Cosines in float32 that are not converted."""
    return rotated(x, p[:, None] * speed, torch.float32)


def in_float32(x, p, speed):
    """All of it in float32, and so left."""
    return rotated(x.float(), p[:, None] * speed, torch.float32)


def and_back(x, p, speed):
    """All of it in float32, and the output converted, as in LLaMA."""
    return in_float32(x, p, speed).type_as(x)


def by_complex_numbers(x, p, speed):
    """The same, with a complex number for each pair."""
    angle = torch.outer(p, speeds(x.shape[-1], "power"))
    turns = torch.polar(torch.ones_like(angle), angle)
    pairs = x.float().reshape(*x.shape[:-1], -1, 2).contiguous()
    made = torch.view_as_real(torch.view_as_complex(pairs) * turns)
    return made.flatten(-2).type_as(x)


def exactly(x, p, speed):
    """Right, but for the last step."""
    return not_converted(x, p, speed).float()


def not_converted(x, p, speed):
    """Angles in float64, whose cosines are not converted."""
    angle = p.double()[:, None] * exact(x.shape[-1])
    return rotated(x, angle, torch.float64)


@pytest.mark.parametrize("how", ["power", EXPONENTIAL, "one over"])
@pytest.mark.parametrize(
    ("turn", "name", "words"),
    [
        (promoted, "float32 throughout", "A bfloat16 x comes back as float32"),
        (in_float32, "float32 comes back", "comes back as float32, whatever"),
        (exactly, "float32 comes back", "comes back as float32, whatever"),
        (and_back, "float32 and back", "computed in float32"),
        (by_complex_numbers, "float32 and back", "computed in float32"),
        (not_converted, "float64 comes back", "comes back as float64"),
    ],
)
def test_a_number_type_that_changes_on_the_way_is_named(
    turn, name, words, how
):
    """Of float32 throughout “angles in float32” was told, and its failure,
    a bfloat16 that came back as float32, only after that.
    """

    def halves(x, offset):
        p = torch.arange(offset, offset + x.shape[-2]).float()
        made = turn(halves_to_pairs(x), p, speeds_by(how, x.shape[-1]))
        return pairs_to_halves(made)

    report = examine(halves, exercise="positions/halves")
    assert not report.passed
    assert report.mistake and report.mistake.name.startswith(name)
    assert words in " ".join(str(report).split())


BOOK = Path(__file__).parents[2] / "book" / "positions.ipynb"
SHOWN = {
    "sinusoidal_loop": "sinusoidal",
    "sinusoidal_lines": "sinusoidal",
    "rope_lines": "halves",
}


def shown_on_the_page(name):
    """A function as the chapter shows it, before its exercises."""
    for cell in json.loads(BOOK.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        for part in tree.body:
            if isinstance(part, ast.FunctionDef) and part.name == name:
                space = {"torch": torch, "math": math}
                exec(compile(ast.Module([part], []), name, "exec"), space)
                return space[name]
    raise LookupError(name)


@pytest.mark.parametrize(("name", "exercise"), SHOWN.items())
def test_what_the_page_shows_is_no_answer_as_it_stands(name, exercise):
    """All of them were right, copied from above."""
    shown = shown_on_the_page(name)
    report = examine(shown, exercise=f"positions/{exercise}")
    assert not report.passed
    if name == "rope_lines":
        assert report.mistake.name == "neighbours paired"


@pytest.mark.parametrize("make", ["sinusoidal_loop", "sinusoidal_lines"])
@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (lambda table, n, d, start: table(n, d), "start ignored"),
        (
            lambda table, n, d, start: table(n, d)[start:],
            "ended at n",
        ),
        (
            lambda table, n, d, start: table(start + n, d),
            "rows before the start kept",
        ),
        (lambda table, n, d, start: table(start + n, d)[start:], None),
    ],
)
def test_rows_from_another_start_are_named(make, rows, name):
    table = shown_on_the_page(make)

    def sinusoidal(n, d_model, start):
        return rows(table, n, d_model, start)

    report = examine(sinusoidal, exercise="positions/sinusoidal")
    assert report.passed == (name is None)
    if name is not None:
        assert report.mistake.name == name


def halves_by(join, a, b, angle):
    """A pair of halves, turned, and joined in some way."""
    cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return join((a * cos - b * sin, a * sin + b * cos))


def behind(two):
    return torch.cat(two, dim=-1)


def beside(two):
    return torch.stack(two, dim=-1).flatten(-2)


@pytest.mark.parametrize(
    ("part", "join", "name"),
    [
        (lambda x: x.chunk(2, dim=-1), behind, None),
        (
            lambda x: x.chunk(2, dim=-1),
            beside,
            "put back as neighbours",
        ),
        (
            lambda x: (x[..., 0::2], x[..., 1::2]),
            behind,
            "taken as neighbours",
        ),
        (
            lambda x: (x[..., 0::2], x[..., 1::2]),
            beside,
            "neighbours paired",
        ),
    ],
)
def test_who_takes_neighbours_for_halves_is_told_so(part, join, name):
    def rope_halves(x, offset):
        p = torch.arange(offset, offset + x.shape[-2]).double()
        angle = p[:, None] * exact(x.shape[-1])
        return halves_by(join, *part(x), angle)

    report = examine(rope_halves, exercise="positions/halves")
    assert report.passed == (name is None)
    if name is not None:
        assert report.mistake.name == name
