"""How others make padding masks: of what, how wide, and in which axes."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, kind="padding-mask", time_limit=None)
AT = functools.partial(torch.arange, dtype=torch.long)


def of_lengths_alone(lengths):
    return AT(int(lengths.max()))[None] < lengths[:, None]


def lists_of_lengths(lens):
    longest = int(max(lens))
    return [[j < int(one) for j in range(longest)] for one in lens]


def on_a_device(lengths, device):
    return AT(int(lengths.max()), device=device)[None] < lengths[:, None]


def width_first(max_len, lengths):
    return AT(max_len)[None] < lengths[:, None]


def of_a_batch(x, lengths):
    return AT(x.shape[1])[None] < lengths[:, None]


def padded_by_one(input_ids):
    return input_ids != 1


def padded_by_its_default(seq, pad_idx=3):
    return seq != pad_idx


def of_a_table(attention_mask):
    return (1.0 - attention_mask[:, None, None].float()) * -10_000.0


def a_row_a_query(lengths, n):
    return (AT(n)[None] < lengths[:, None])[:, None].expand(-1, n, n)


def of_heads_too(tokens):
    seen = (tokens != 0)[:, None, None]
    return seen.expand(-1, 1, tokens.shape[1], -1)


class Module(nn.Module):
    def forward(self, src, pad):
        return src == pad


ALL = {
    of_lengths_alone: {"mask": "keep", "axes": "BN", "of": "lengths"},
    lists_of_lengths: {"mask": "keep", "axes": "BN", "of": "lengths"},
    on_a_device: {"mask": "keep", "axes": "BN", "of": "lengths"},
    width_first: {"mask": "keep", "axes": "BN", "of": "lengths"},
    of_a_batch: {"mask": "keep", "axes": "BN", "of": "lengths"},
    padded_by_one: {"mask": "keep", "axes": "BN", "of": "tokens", "pad": 1},
    padded_by_its_default: {"mask": "keep", "axes": "BN", "of": "tokens"},
    of_a_table: {"mask": "add", "axes": "B11N", "of": "ones"},
    a_row_a_query: {"mask": "keep", "axes": "BNN", "of": "lengths"},
    of_heads_too: {"mask": "keep", "axes": "B1NN", "of": "tokens"},
    Module(): {"mask": "block", "axes": "BN", "of": "tokens"},
}


@pytest.mark.parametrize("maker", ALL)
def test_what_it_is_made_of_is_told_by_names(maker):
    report = here(maker, **ALL[maker])
    assert report.passed, report
    assert here(maker).passed


def test_what_is_wrong_is_found_in_any_form():
    def one_on(lengths):
        return AT(int(lengths.max()))[None] <= lengths[:, None]

    def by_the_first(x, lengths):
        seen = AT(x.shape[1])[None] < lengths[:1, None]
        return seen.expand(len(x), -1)

    def rows_for_columns(lengths, n):
        return a_row_a_query(lengths, n).mT

    def but_for_the_first_row(lengths, n):
        seen = a_row_a_query(lengths, n).clone()
        seen[:, 1:] = True
        return seen

    said = {"mask": "keep", "of": "lengths"}
    assert here(but_for_the_first_row, axes="BNN", **said).findings
    found = here(one_on, axes="BN", **said)
    assert found.mistake.name == "one too many", found
    found = here(by_the_first, axes="BN", **said)
    assert found.mistake.name == "first text for all", found
    found = here(rows_for_columns, axes="BNN", **said)
    assert found.findings


def test_who_is_told_a_width_is_as_wide():
    def not_used(lengths, n):
        return of_lengths_alone(lengths)

    found = here(not_used, mask="keep", axes="BN", of="lengths")
    assert found.mistake.name == "as wide as the longest"
    assert not found.different


def test_texts_may_be_padded_on_the_left():
    def on_the_left(lengths, n):
        return AT(n)[None] >= n - lengths[:, None]

    told = functools.partial(here, on_the_left, mask="keep", axes="BN")
    assert told(side="left").passed
    assert "side='left'" in told().different
    assert here(padded_by_one, side="left", pad=1).passed
    right = here(width_first, mask="keep", axes="BN", side="left")
    assert right.findings


def of_as_many_as(width, lengths):
    """An empty text keeps its first token."""
    return AT(width)[None] < lengths.clamp(min=1)[:, None]


def test_who_promises_empty_texts_is_asked_for_them():
    """By the promise the very question was lost, and it was healthy."""

    def told_a_width(lengths, n):
        return of_as_many_as(n, lengths)

    def told_none(lengths):
        return of_as_many_as(int(lengths.max()), lengths)

    for ill in told_a_width, told_none:
        report = here(ill, mask="keep", takes=["empty"])
        assert [f.probe.claim for f in report.findings] == [
            "a text may be empty"
        ]
        assert report.exit_code == 1, report
    for sound in width_first, of_lengths_alone:
        assert here(sound, mask="keep", takes=["empty"]).passed


def test_who_is_told_a_width_is_as_wide_whatever_else_he_promises():
    def not_used(lengths, n):
        return of_lengths_alone(lengths)

    report = here(not_used, mask="keep", axes="BN", takes=["empty"])
    assert report.mistake.name == "as wide as the longest"


def test_of_lengths_alone_nobody_is_asked_for_a_width():
    """Who does not show that he takes lengths alone was called ill."""

    def unnamed(*given):
        return of_lengths_alone(*given)

    said = {"mask": "keep", "axes": "BN", "of": "lengths"}
    wide = "a batch that is wider than its longest text"
    for maker in unnamed, of_lengths_alone:
        report = here(maker, **said)
        assert report.passed, report
        assert "how wide the batch is" in report.not_asked[wide]
    assert here(width_first, **said).not_asked == {}


def test_who_takes_more_than_lengths_is_asked_how_he_is_called():
    """It was told that he takes one argument, and he takes two."""
    report = here(
        width_by_place, mask="keep", axes="BN", of="lengths", arguments=1
    )
    assert "However I call it, it raises" in report.different, report


def width_by_place(lengths, n):
    return width_first(n, lengths)


def test_empty_texts_are_no_size_that_few_ask_for():
    """A batch may have one: told what the mask says, that is no extra."""

    def told_a_width(lengths, n):
        return of_as_many_as(n, lengths)

    report = here(told_a_width, mask="keep")
    assert (report.different, report.exit_code) == ("", 1)


def behind_a_type(lengths, dtype=torch.bool, n=7):
    return (torch.arange(n) < lengths[:, None]).to(dtype)


def width_by_name(lengths, *, n):
    return torch.arange(n) < lengths[:, None]


@pytest.mark.parametrize("maker", [behind_a_type, width_by_name])
def test_a_width_is_handed_over_as_what_it_is(maker):
    # It went where the type stands, or where nothing is taken by its place.
    report = here(maker)
    assert report.passed, report
    assert "dtype = 7" not in str(report)
