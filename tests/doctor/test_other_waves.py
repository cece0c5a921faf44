"""Rotations, tables and padding masks of others, who promise other things."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.positions import rope, rope_halves, sinusoidal

here = functools.partial(examine, time_limit=None)
rotation = functools.partial(here, kind="rope", pairs="neighbours")


def slower(x, offset=0):
    return rope(x, base=500_000.0, offset=offset)


def by_a_base(x, base, offset=0):
    return rope(x, base=base, offset=offset)


def by_its_default(x, theta=1e6, offset=0):
    return rope(x, base=theta, offset=offset)


def of_a_width(x, dim, offset=0):
    assert x.shape[-1] == dim
    return rope(x, offset=offset)


def in_a_tensor(x, offset):
    return rope(x, offset=int(offset.item()))


def places_called_offset(x, offset):
    """It wants the positions of all tokens, whatever it calls them."""
    assert isinstance(offset, torch.Tensor)
    rates = 10_000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = offset[..., None].double() * rates.double()
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return pairs.flatten(-2)


def after_its_length(seq_len, x):
    assert x.shape[-2] == seq_len
    return rope(x)


def tokens_first(x, start=0):
    _, _, _, _ = x.shape
    return rope(x.movedim(0, -2), offset=start).movedim(-2, 0)


@pytest.mark.parametrize(
    "patient, said",
    [
        (slower, {"base": 5e5}),
        (by_a_base, {}),
        (by_a_base, {"base": 1e6}),
        (by_its_default, {}),
        (of_a_width, {}),
        (in_a_tensor, {}),
        (places_called_offset, {"dtypes": ["float32"]}),
        (after_its_length, {}),
        (tokens_first, {"layout": "NBHD"}),
        (tokens_first, {}),
    ],
)
def test_a_rotation_may_have_another_base_and_other_arguments(patient, said):
    report = rotation(patient, **said)
    assert report.passed, report


def test_another_base_is_asked_after_and_a_thousand_is_a_slip():
    assert "base=…" in rotation(slower).different
    wrong = rotation(lambda x, offset=0: rope(x, base=1000.0, offset=offset))
    assert wrong.mistake.name == "base of a thousand"
    assert not wrong.different
    told = rotation(slower, base=1e6)
    assert told.mistake.name == "another base"
    assert not told.different


def test_with_another_base_what_is_wrong_has_its_name():
    def counted_from_one(x, offset=0):
        return rope(x, base=1e6, offset=offset + 1)

    def by_the_usual_base(x, offset=0):
        return rope(x, offset=offset)

    wrong = rotation(counted_from_one, base=1e6)
    assert wrong.mistake.name == "counted from one", wrong
    usual = rotation(by_the_usual_base, base=1e6)
    assert usual.mistake.name == "another base", usual


def test_half_of_the_features_may_be_turned_on_purpose():
    def half(x, offset=0):
        r = x.shape[-1] // 2
        return torch.cat((rope(x[..., :r], offset=offset), x[..., r:]), -1)

    of_eight = functools.partial(rotation, half, width=8)
    assert of_eight(part=0.5).passed
    assert "part=0.5" in of_eight().different


def test_one_feature_of_each_pair_that_is_left_is_no_design():
    def left(x, offset=0):
        _, b = x.chunk(2, dim=-1)
        turned, _ = rope_halves(x, offset=offset).chunk(2, dim=-1)
        return torch.cat((turned, b), dim=-1)

    report = here(left, kind="rope", pairs="halves")
    assert report.mistake.name == "one of each pair left", report
    assert not report.different


def of_places(positions, dim):
    table = sinusoidal(len(positions), dim)
    return table + 0 * positions[:, None]


def of_timesteps(timesteps, dim):
    table = of_places(timesteps, dim)
    return torch.cat((table[:, 1::2], table[:, 0::2]), dim=-1)


def a_column(n, d_model):
    return sinusoidal(n, d_model)[:, None]


def an_array(n, d_model):
    return sinusoidal(n, d_model).numpy()


def of_a_base(n, d_model, base):
    return sinusoidal(n, d_model, base=base)


class OfItsWidth(nn.Module):
    def forward(self, n):
        return sinusoidal(n, 8)


@pytest.mark.parametrize(
    "patient, said",
    [
        (of_places, {}),
        (of_timesteps, {"layout": "cosines first"}),
        (a_column, {}),
        (an_array, {}),
        (of_a_base, {}),
        (of_a_base, {"base": 500.0}),
        (OfItsWidth(), {}),
    ],
)
def test_a_table_may_be_called_otherwise(patient, said):
    report = here(patient, kind="sinusoidal", **said)
    assert report.passed, report


def test_what_is_wrong_with_such_a_table_is_found():
    def one_on(positions, dim):
        return of_places(torch.arange(len(positions) + 1), dim)[1:]

    class Faster(nn.Module):
        def forward(self, n):
            return sinusoidal(n, 8, base=1000.0)

    on = here(one_on, kind="sinusoidal")
    assert on.mistake.name == "counted from one", on
    faster = here(Faster(), kind="sinusoidal")
    assert faster.mistake.name == "base of a thousand", faster
    asked = here(lambda n, d: sinusoidal(n, d, base=500.0), kind="sinusoidal")
    assert asked.findings


def test_of_two_mistakes_the_surer_comes_first():
    """That the exponents end at 1 may be meant, unlike what is beside it."""

    def to_the_end_from_one(n, d_model):
        p = torch.arange(1, n + 1).double()[:, None]
        f = torch.arange(d_model) // 2 * 2
        angle = p * 10_000.0 ** (-f.double() / max(d_model - 2, 1))
        even = torch.arange(d_model) % 2 == 0
        return torch.where(even, angle.sin(), angle.cos()).float()

    table = functools.partial(here, to_the_end_from_one, kind="sinusoidal")
    report = table()
    assert report.mistake.name == "counted from one", report
    assert report.mistake.also.name == "reaching the base"
    told = table(ends="at 1")
    assert told.mistake.name == "counted from one", told
    assert told.mistake.also is None


def test_sizes_that_few_ask_for_are_asked_after_by_name():
    """Far out, float32 is off in the fourth digit; nobody promised more."""

    def in_float32(n, d_model):
        p = torch.arange(n).float()[:, None]
        rate = 10_000.0 ** (-torch.arange(0, d_model, 2).float() / d_model)
        waves = torch.stack(((p * rate).sin(), (p * rate).cos()), dim=-1)
        return waves.flatten(1)

    table = functools.partial(here, in_float32, kind="sinusoidal")
    assert "Nobody promised this" in table(layout="pairs").different
    told = table(layout="pairs", takes=["long"])
    assert told.findings
    assert not told.different


def added(base=10_000.0, wave=None):
    """A function that adds a table, and what it says that it adds."""
    table = sinusoidal(16, 6)
    made = sinusoidal(16, 6, base=base) if wave is None else wave(table)
    return lambda x: x + made[: x.shape[1]].to(x.dtype), table


def test_a_table_of_waves_that_is_another_has_a_name():
    function, table = added(base=1000.0)
    report = here(function, kind="positions", table=table, layout="BND")
    assert report.mistake.name == "base of a thousand", report

    def halves(table):
        return torch.cat((table[:, 0::2], table[:, 1::2]), dim=-1)

    function, table = added(wave=lambda t: halves(t[:, [1, 0, 3, 2, 5, 4]]))
    report = here(
        function, kind="positions", table=halves(table), layout="BND"
    )
    assert report.mistake.name == "sine and cosine exchanged", report


def test_who_must_be_told_where_tokens_stand_is_told():
    class Looked(nn.Module):
        def __init__(self, more=0):
            super().__init__()
            self.rows, self.more = nn.Embedding(20, 6), more

        def forward(self, x, position_ids):
            return x + self.rows((position_ids + self.more) % 20)

    for patient, right in ((Looked(), True), (Looked(more=1), False)):
        report = here(
            patient,
            kind="positions",
            table=patient.rows.weight.detach(),
            layout="BND",
        )
        wrong = [found.probe.claim for found in report.findings]
        assert ("token p gets row p" not in wrong) == right, report


def to_the_end(n, d_model, base=10_000.0, first=0, shortest=1.0):
    """Rates from 1 to that of the base itself."""
    f = 2 * (torch.arange(d_model, dtype=torch.float64) // 2)
    p = torch.arange(first, first + n, dtype=torch.float64)[:, None]
    angle = p / shortest * base ** (-f / max(d_model - 2, 1))
    even = torch.arange(d_model) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos()).float()


def test_a_base_that_is_told_leaves_the_exponents_as_they_were_told():
    def far(n, d_model):
        return to_the_end(n, d_model, 5e5)

    def far_from_one(n, d_model):
        return to_the_end(n, d_model, 5e5, first=1)

    told = {"base": 5e5, "ends": "at 1"}
    report = here(far, kind="sinusoidal", **told)
    assert report.passed, report
    report = here(far_from_one, kind="sinusoidal", **told)
    assert report.mistake.name == "counted from one", report
    usual = {"ends": "before 1", "base": 5e5}
    report = here(far, kind="sinusoidal", **usual)
    assert report.mistake.name == "reaching the base", report


def test_the_shortest_time_is_one_and_the_longest_is_the_base():
    def timing(n, d_model, min_timescale):
        return to_the_end(n, d_model, shortest=min_timescale)

    def both(n, d_model, min_timescale, max_timescale):
        return to_the_end(n, d_model, max_timescale / min_timescale)

    for thing, base in ((timing, None), (both, None), (both, 500.0)):
        told = {"base": base} if base else {}
        report = here(thing, kind="sinusoidal", ends="at 1", **told)
        assert report.passed, report
