"""How others call what makes their causal masks, and what they promise."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.masks import arguments
from selfattn.masks import causal_mask

here = functools.partial(
    examine, kind="causal-mask", time_limit=None, alignment="last"
)


def after_a_past(n, past):
    return torch.ones(n, past + n).tril(past).bool()


def from_a_start(start_pos, n):
    seen = torch.full((n, start_pos + n), -torch.inf)
    return seen.triu(start_pos + 1)


def keys_first(kv_len, q_len):
    return torch.ones(q_len, kv_len).tril(kv_len - q_len).bool()


def for_a_batch(batch_size, n):
    return torch.ones(n, n).tril().bool().expand(batch_size, 1, n, n)


def in_a_type(seq_len, dtype, device):
    lowest = torch.finfo(dtype).min
    return torch.full((seq_len, seq_len), lowest, device=device).triu(1)


def filled(n, fill_value):
    return torch.full((n, n), fill_value).triu(1)


def by_name_alone(*, seq_len):
    return torch.ones(seq_len, seq_len).tril().bool()


def as_long_as_tokens(x):
    return torch.ones(x.size(1), x.size(1)).tril().bool()


def of_a_shape(shape):
    texts, n = shape
    return torch.ones(n, n).tril().bool()[None, None].expand(1, texts, n, n)


def of_places(position):
    return position[:, None] >= position


def a_list(n):
    return [[j <= i for j in range(n)] for i in range(n)]


def an_array(n):
    return np.tril(np.ones((n, n), dtype=bool))


class Kept(nn.Module):
    """Rows of a square that is kept."""

    def __init__(self):
        super().__init__()
        self.register_buffer("square", torch.ones(16, 16).tril().bool())

    def forward(self, q_len, k_len):
        return self.square[k_len - q_len : k_len, :k_len]


ALL = {
    after_a_past: "keep",
    from_a_start: "add",
    keys_first: "keep",
    for_a_batch: "keep",
    in_a_type: "add",
    filled: "add",
    by_name_alone: "keep",
    as_long_as_tokens: "keep",
    of_a_shape: "keep",
    of_places: "keep",
    a_list: "keep",
    an_array: "keep",
    Kept(): "keep",
}


@pytest.mark.parametrize("maker", ALL)
def test_what_it_is_handed_is_read_off(maker):
    report = here(maker, mask=ALL[maker])
    assert report.passed, report
    assert here(maker).passed


def test_what_it_is_handed_is_no_excuse():
    def one_on(n, past):
        return torch.ones(n, past + n).tril(past + 1).bool()

    def only_the_first_text(batch, n):
        seen = torch.ones(n, n).tril().bool().repeat(batch, 1, 1, 1)
        seen[1:] = True
        return seen

    report = here(one_on, mask="keep")
    assert report.mistake.name == "one too many", report
    assert here(only_the_first_text, mask="keep").findings


def test_a_second_number_that_may_be_left_out_is_tried():
    def counted_back(n, past=0):
        return torch.ones(n, past + n).tril(-past).bool()

    assert here(counted_back, mask="keep", arguments=1).passed
    assert not here(counted_back, mask="keep").passed


def test_a_table_without_rows_is_promised_by_name():
    """Of no queries, lists make no table; nobody asks them for one."""

    def of_lists(n_q, n_k):
        more = n_k - n_q
        return torch.tensor(
            [[0.0] * (more + i + 1) + [-torch.inf] * (n_q - i - 1)
             for i in range(n_q)]
        )  # fmt: skip

    report = here(of_lists, mask="add")
    assert report.passed, report
    told = here(of_lists, mask="add", takes=["length", "rowless"])
    assert told.findings
    assert not told.different


def test_queries_before_every_key_are_promised_by_name():
    def at_most_the_keys(n_q, n_k):
        row = torch.arange(n_q)[:, None] + max(n_k - n_q, 0)
        return torch.arange(n_k) <= row

    report = here(at_most_the_keys, mask="keep")
    assert "Nobody promised this" in report.different
    told = here(at_most_the_keys, mask="keep", takes=["length", "early"])
    assert told.findings
    assert not told.different


def test_who_cannot_be_called_is_asked_how():
    """That it takes other arguments is no mistake of what it computes."""

    def of_what_is_kept(n, d_model, kept):
        return kept[:n, :d_model]

    report = examine(
        of_what_is_kept, kind="sinusoidal", time_limit=None, layout="pairs"
    )
    assert "However I call it, it raises" in report.different


def test_a_diagonal_left_out_is_one_slip_and_no_other_triangle():
    """Below the diagonal, True rather allows too little than forbids."""

    def strict(n_q, n_k):
        return torch.ones(n_q, n_k).tril(n_k - n_q - 1).bool()

    assert here(strict).mistake.name == "not itself"
    told = here(strict, mask="block")
    assert told.mistake.name == "from the other side"


def test_the_other_triangle_may_keep_its_diagonal():
    def lower_for_upper(n):
        return torch.full((n, n), -torch.inf).tril(1)

    def behind_zeros(n, past):
        return torch.cat((torch.zeros(n, past), lower_for_upper(n)), dim=1)

    for maker in (lower_for_upper, behind_zeros):
        report = here(maker, mask="add")
        assert report.mistake.name == "from the other side", report


def test_names_tell_what_an_argument_is():
    told = {
        "n": "size",
        "seq_len": "size",
        "q_len": "queries",
        "src_len": "keys",
        "past_key_values_length": "past",
        "bsz": "batch",
        "num_heads": "heads",
    }
    assert {name: arguments.role(name) for name in told} == told


def keys_behind_a_type(n_q, dtype=torch.bool, n_k=None):
    return causal_mask(n_q, n_q if n_k is None else n_k).to(dtype)


def test_the_keys_are_handed_over_behind_what_is_left_out():
    report = here(keys_behind_a_type)
    assert report.passed, report
    assert "it takes one number" not in str(report), report
