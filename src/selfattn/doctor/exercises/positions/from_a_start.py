"""`sinusoidal(n, d_model, start)`: some rows of the Transformer's table."""

from dataclasses import replace

import torch

from selfattn.doctor.exercise import Exercise, Mistake, mistake
from selfattn.doctor.exercises.positions import sinusoidal as tables
from selfattn.doctor.probes import Probe
from selfattn.positions import sinusoidal


def rows(n, d_model, start):
    """The inputs of a probe: three numbers."""
    return {**tables.sizes(n, d_model), "start": lambda _: start}


def cut(known: Mistake) -> Mistake:
    """The mistake of a whole table, in the rows that are asked for."""

    def answer(n, d_model, start):
        whole = known.answer(start + n, d_model)
        return whole[start:]

    return replace(known, answer=answer)


@mistake
def start_ignored(n, d_model, start):
    """Right as long as the first row is that of position 0.

    Cause: The start is not used.
    Cure: Positions are torch.arange(start, start + n).
    """
    return sinusoidal(n, d_model)


@mistake
def ended_at_n(n, d_model, start):
    """There are fewer rows than were asked for.

    Cause: Positions are torch.arange(start, n), but n is how many rows there
        are, not where they end.
    Cure: torch.arange(start, start + n).
    """
    return sinusoidal(n, d_model)[start:]


@mistake
def start_added_to_the_angles(n, d_model, start):
    """Your first pair is right, and the slower ones start too far on.

    Cause: The start is added to the angles, not to the positions: slow pairs
        have hardly moved by then.
    Cure: Add it before the speeds are multiplied:
        torch.arange(start, start + n).
    """
    p = torch.arange(n, dtype=torch.float64)[:, None]
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = start + p * 10_000.0 ** (-pair / d_model)
    waves = torch.stack((angle.sin(), angle.cos()), dim=-1)
    return waves.flatten(-2)[:, :d_model].float()


@mistake
def start_subtracted(n, d_model, start):
    """Right as long as the first row is that of position 0.

    Cause: The start is subtracted from the positions.
    Cure: The first row stands at the start, so add it.
    """
    return sinusoidal(n, d_model, offset=-start)


@mistake
def rows_before_the_start_kept(n, d_model, start):
    """There are more rows than were asked for.

    Cause: The table goes from 0 to start + n, and its beginning was not cut
        off.
    Cure: torch.arange(start, start + n).
    """
    return sinusoidal(start + n, d_model)


def on_its_side(n, d_model, start):
    """Rows are features."""
    return sinusoidal(n, d_model, offset=start).mT


def with_a_batch(n, d_model, start):
    """There is one axis too many."""
    return sinusoidal(n, d_model, offset=start)[None]


SHAPES = {
    tables.on_its_side: on_its_side,
    tables.with_a_batch: with_a_batch,
}

SINUSOIDAL = Exercise(
    "positions/sinusoidal",
    asks="a float32 table (n, d_model): the rows from position start on",
    solution=lambda n, d_model, start: sinusoidal(n, d_model, offset=start),
    probes=(
        Probe("two features are sin p and cos p", rows(3, 2, 0)),
        Probe("of six features, each pair has an angle", rows(5, 6, 0)),
        Probe("there may be more positions than features", rows(11, 4, 0)),
        Probe("there may be more features than positions", rows(3, 16, 0)),
        Probe("an odd last feature is a sine alone", rows(5, 7, 0)),
        Probe("a single feature is sin p", rows(5, 1, 0)),
        Probe("a single position is 0, 1, 0, 1", rows(1, 4, 0)),
        Probe("the first row is that of position start", rows(5, 6, 3)),
        Probe("a start may be larger than n", rows(2, 6, 7)),
        # The numbers lie between -1 and 1, and float32 keeps seven digits of
        # them; angles in float32 are wrong by 4e-4 out there.
        Probe(
            "position 5000 is as right as position 5",
            rows(2, 64, 5000),
            tolerance=2e-5,
        ),
    ),
    mistakes=(
        *(
            replace(known, answer=SHAPES[known])
            if known in SHAPES
            else cut(known)
            for known in tables.MISTAKES
        ),
        start_ignored,
        ended_at_n,
        start_added_to_the_angles,
        start_subtracted,
        rows_before_the_start_kept,
    ),
)
