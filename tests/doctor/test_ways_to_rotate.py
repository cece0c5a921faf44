"""The doctor on RoPE as others write it: how it is called is found out."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

BY = -1.0  # what a sine is multiplied by, where it turns the other way


def rates(d, base=10_000.0):
    return base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


def angles(n, d, offset=0):
    return torch.arange(offset, offset + n)[:, None] * rates(d)


def turned(x, cos, sin, by=1.0):
    """Halves make pairs; cosines and sines are as wide as x."""
    a, b = x.chunk(2, dim=-1)
    return x * cos.to(x) + by * torch.cat((-b, a), dim=-1) * sin.to(x)


def by_angle(x, half, by=1.0):
    whole = torch.cat((half, half), dim=-1)
    return turned(x, whole.cos(), whole.sin(), by)


def neighbours(x, half, by=1.0):
    cos, sin = half.cos().to(x), by * half.sin().to(x)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def whole_number_called_t(by):
    def rotate(x, t=0):
        where = torch.arange(t, t + x.shape[-2])
        return by_angle(x, where[:, None] * rates(x.shape[-1]), by)

    return rotate


def positions_called_pos(by):
    def rotate(x, pos):
        return neighbours(x, pos[:, None] * rates(x.shape[-1]), by)

    return rotate


def positions_of_texts(by):
    def rotate(x, position_ids):
        half = position_ids[:, None, :, None] * rates(x.shape[-1])
        return by_angle(x, half, by)

    return rotate


def length_asked_for(by):
    def rotate(x, seq_len):
        return by_angle(x, angles(seq_len, x.shape[-1]), by)

    return rotate


def two_tables(by):
    def rotate(x, cos, sin):
        return turned(x, cos, sin, by)

    return rotate


def two_letters(by):
    def rotate(x, c, s):
        a, b = x.chunk(2, dim=-1)
        s = by * s
        return torch.cat((a * c - b * s, b * c + a * s), dim=-1)

    return rotate


def queries_and_keys(by):
    def rotate(q, k, cos, sin):
        return turned(q, cos, sin), turned(k, cos, sin, by)

    return rotate


def tables_of_texts(by):
    def rotate(q, k, cos, sin, position_ids=None, unsqueeze_dim=1):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        return turned(q, cos, sin, by), turned(k, cos, sin)

    return rotate


def complex_numbers(by):
    def rotate(xq, xk, freqs_cis):
        found = []
        for x, sign in ((xq, by), (xk, 1.0)):
            pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
            cis = freqs_cis[None, :, None]
            cis = cis if sign > 0 else cis.conj()
            found.append(torch.view_as_real(pairs * cis).flatten(-2).to(x))
        return tuple(found)

    return rotate


def angles_first(by):
    def rotate(freqs, t):
        return neighbours(t, freqs[..., ::2], by)

    return rotate


def angles_behind(by):
    def rotate(x, theta):
        return by_angle(x, theta, by)

    return rotate


def both_waves_in_a_cache(by):
    def rotate(x, rope_cache):
        a, b = x[..., ::2], x[..., 1::2]
        cos, sin = rope_cache[None, :, None].unbind(-1)
        sin = by * sin
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(
            3
        )

    return rotate


class Tables(nn.Module):
    """It gives back cosines and sines alone."""

    def __init__(self, by):
        super().__init__()
        self.by = by
        self.register_buffer("inv_freq", rates(8))

    def forward(self, x, seq_len):
        half = angles(seq_len, 8)
        whole = torch.cat((half, half), dim=-1)
        return whole.cos().to(x), self.by * whole.sin().to(x)


class TablesByNumber(Tables):
    """As many rows as there are positions."""

    def forward(self, x, position_ids):
        half = position_ids[..., None] * self.inv_freq
        whole = torch.cat((half, half), dim=-1)
        return whole.cos().to(x), self.by * whole.sin().to(x)


class Fixed(nn.Module):
    """A table made in advance, for a width and a longest text."""

    def __init__(self, by, width=12, longest=64):
        super().__init__()
        self.by = by
        half = angles(longest, width)
        self.register_buffer("rows", half, persistent=False)

    def forward(self, x, offset=0):
        n = x.shape[-2]
        return by_angle(x, self.rows[offset : offset + n], self.by)


class OfPositions(Fixed):
    """Rows picked by number, so that -1 is the last."""

    def forward(self, x, input_pos):
        return by_angle(x, self.rows[input_pos], self.by)


class TokensSecond(Fixed):
    """(batch, tokens, heads, features), with rows picked."""

    def forward(self, x, start_pos=0):
        _, n, _, _ = x.shape
        where = self.rows[start_pos : start_pos + n, None]
        return neighbours(x, where, self.by)


class Pair(Fixed):
    """Queries and keys at once, from position 0."""

    def forward(self, q, k):
        n = q.shape[-2]
        half = self.rows[:n]
        return by_angle(q, half), by_angle(k, half, self.by)


def batched_only(by):
    def rotate(x, offset=0):
        _, n, d = x.shape
        return by_angle(x, angles(n, d, offset), by)

    return rotate


def single_only(by):
    def rotate(x, m=0):
        n, d = x.shape
        return neighbours(x, angles(n, d, m), by)

    return rotate


def keyword_only(by):
    def rotate(tensor, *, past_key_values_length=0):
        n, d = tensor.shape[-2:]
        return by_angle(tensor, angles(n, d, past_key_values_length), by)

    return rotate


def place_only(by):
    def rotate(tensor, start, /):
        n, d = tensor.shape[-2:]
        return neighbours(tensor, angles(n, d, start), by)

    return rotate


def named_by_nothing(by):
    def rotate(tensor, where):
        return neighbours(
            tensor, where[..., None] * rates(tensor.shape[-1]), by
        )

    return rotate


HALVES = {"pairs": "halves", "layout": "BHND"}
NEIGHBOURS = {"pairs": "neighbours", "layout": "BHND"}
SECOND = {"pairs": "neighbours", "layout": "BNHD"}
WRITTEN = (
    (whole_number_called_t, HALVES),
    (positions_called_pos, NEIGHBOURS),
    (positions_of_texts, HALVES),
    (length_asked_for, HALVES),
    (two_tables, HALVES),
    (two_letters, HALVES),
    (queries_and_keys, HALVES),
    (tables_of_texts, HALVES),
    (complex_numbers, SECOND),
    (angles_first, NEIGHBOURS),
    (angles_behind, HALVES),
    (both_waves_in_a_cache, SECOND),
    (Tables, HALVES),
    (TablesByNumber, HALVES),
    (Fixed, HALVES),
    (OfPositions, HALVES),
    (TokensSecond, SECOND),
    (Pair, HALVES),
    (batched_only, HALVES),
    (single_only, NEIGHBOURS),
    (keyword_only, HALVES),
    (place_only, NEIGHBOURS),
    (named_by_nothing, NEIGHBOURS),
)
KNOWN = {"float64", "float32"}


@pytest.mark.parametrize(
    ("make", "facts"), WRITTEN, ids=[make.__name__ for make, _ in WRITTEN]
)
def test_who_turns_right_is_not_ill_and_who_turns_wrong_is(make, facts):
    def examined(thing, **told):
        return examine(thing, kind="rope", time_limit=None, **told)

    for told in ({}, {**facts, "dtypes": sorted(KNOWN)}):
        report = examined(make(1.0), **told)
        assert report.passed, report
    report = examined(make(BY), **facts)
    assert report.findings and not report.different, report


def test_who_cannot_be_called_is_asked_how():
    def secret(x, one, two, three):
        raise RuntimeError("nobody knows how")

    for told in ({}, HALVES):
        report = examine(secret, kind="rope", time_limit=None, **told)
        assert "I could not call it" in report.question
        assert "one, two, three" in report.question


def test_who_raises_at_an_offset_alone_is_ill():
    def no_further(x, offset=0):
        return by_angle(x, angles(x.shape[-2], x.shape[-1]) / (offset < 1))

    report = examine(no_further, kind="rope", time_limit=None, **HALVES)
    assert not report.passed and not report.question


def written_in_place(x, where, theta, by):
    x = x.clone()
    half = where[:, None] * rates(x.shape[-1], theta)
    cos, sin = half.cos().to(x), by * half.sin().to(x)
    a, b = x[..., ::2].clone(), x[..., 1::2].clone()
    x[..., ::2] = a * cos - b * sin
    x[..., 1::2] = a * sin + b * cos
    return x


def base_called_theta(by):
    def rotate(x, theta=10_000):
        return written_in_place(x, torch.arange(x.shape[-2]), theta, by)

    return rotate


def base_before_an_offset(by):
    def rotate(x, rope_theta=10_000.0, offset=0):
        where = torch.arange(offset, offset + x.shape[-2])
        return written_in_place(x, where, rope_theta, by)

    return rotate


def base_behind_positions(by):
    def rotate(x, pos, freq_base=10_000.0, rotary="whole"):
        return written_in_place(x, pos, freq_base, by)

    return rotate


@pytest.mark.parametrize(
    "make", [base_called_theta, base_before_an_offset, base_behind_positions]
)
@pytest.mark.parametrize("told", [{}, NEIGHBOURS])
def test_a_base_with_a_default_is_no_table(make, told):
    """`theta=10000` was handed a table of angles: 9 of 12 probes failed."""
    examined = functools.partial(examine, kind="rope", time_limit=None)
    report = examined(make(1.0), **told)
    assert report.passed, report
    report = examined(make(BY), **{**NEIGHBOURS, **told})
    assert report.findings and not report.different, report
