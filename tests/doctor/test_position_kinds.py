"""The doctor on RoPE, on tables of positions, and on who adds them."""

import functools

import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.self_test import bank
from selfattn.positions import rope, rope_halves, sinusoidal


def examined(thing, kind, **facts):
    return examine(thing, kind=kind, time_limit=None, **facts)


def tokens_before_heads(x, position_ids):
    turned = rope_halves(x.transpose(1, 2), offset=int(position_ids[0]))
    return turned.transpose(1, 2)


def test_pairs_layout_and_offset_of_rope_are_found_out():
    for thing, pairs, layout in (
        (rope, "neighbours", "BHND"),
        (rope_halves, "halves", "BHND"),
        (tokens_before_heads, "halves", "BNHD"),
    ):
        report = examined(thing, "rope")
        assert report.passed, report
        assert report.facts == {"pairs": pairs, "layout": layout}


def test_rope_without_an_offset_is_asked_for_none():
    report = examined(lambda x: rope(x), "rope")
    assert report.passed
    assert any("stands elsewhere" in what for what in report.not_asked)


def test_rope_is_held_to_what_was_said():
    report = examined(rope_halves, "rope", pairs="neighbours")
    assert report.mistake.name == "halves paired"
    report = examined(tokens_before_heads, "rope", layout="BHND")
    assert not report.passed


def halves(n, d_model):
    both = sinusoidal(n, d_model)
    return torch.cat((both[:, 0::2], both[:, 1::2]), dim=-1)


def width_first(d_model, n):
    return sinusoidal(n, d_model)[None]


def test_a_table_may_have_another_order_and_another_call():
    for thing, layout in (
        (sinusoidal, "pairs"),
        (halves, "halves"),
        (width_first, "pairs"),
    ):
        report = examined(thing, "sinusoidal")
        assert report.passed, report
        assert report.facts["layout"] == layout
    report = examined(halves, "sinusoidal", layout="pairs")
    assert report.mistake.name == "sines first"


class Added(nn.Module):
    """As in many a tutorial: the tokens' axis is the first."""

    def __init__(self):
        super().__init__()
        self.register_buffer("pe", sinusoidal(50, 6)[:, None])
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(x + self.pe[: x.shape[0]])


def test_positions_along_the_batch_have_a_name():
    report = examined(Added(), "positions", layout="BND")
    assert report.mistake.name == "positions count the texts"
    assert examined(Added(), "positions", layout="NBD").passed
    unsaid = examined(Added(), "positions")
    assert unsaid.passed and unsaid.facts["layout"] == "NBD"


def looked_up(params, x):
    return x + params["rows"][torch.arange(x.shape[1])]


def test_a_table_is_found_where_a_function_holds_it():
    table = torch.arange(24.0).reshape(4, 6)
    of_params = functools.partial(looked_up, {"rows": table})
    for thing in (of_params, lambda x: x + table[: x.shape[1]]):
        report = examined(thing, "positions")
        assert report.passed, report
    wrong = examined(lambda x: x + table[1 : x.shape[1] + 1], "positions")
    assert wrong.mistake.name == "counted from one"


def test_a_table_that_cannot_be_found_is_asked_for():
    two = nn.ParameterList([torch.zeros(3, 4), torch.zeros(3, 4)])
    for thing in (nn.ReLU(), two, torch.relu):
        assert "Say table=" in examined(thing, "positions").question
    table = torch.arange(24.0).reshape(4, 6)
    report = examined(
        lambda x: x + table[range(x.shape[1])], "positions", table=table
    )
    assert report.passed, report


def test_probes_of_a_module_claim_what_they_ask():
    """A text of five, a table of seven: "a table too short is refused"."""
    asked = bank(find_kind("positions")).probes
    assert [p.sizes["n"] for p in asked if p.refused] == [8]
    assert [p.claim for p in asked if "refused" in p.claim] == [
        p.claim for p in asked if p.refused
    ]


def of_even_widths(n, d):
    """Counted in pairs: there is no room for a half one."""
    angle = torch.arange(n)[:, None] * 1e4 ** (-torch.arange(0, d, 2) / d)
    table = torch.zeros(n, d)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


def test_a_table_that_raises_for_odd_widths_refuses_them():
    report = examine(
        of_even_widths, kind="sinusoidal", layout="pairs", dtypes="float32"
    )
    assert "an odd number of features" in report.not_asked
    assert report.mistake is None or "odd" not in report.mistake.name
    told = examine(of_even_widths, kind="sinusoidal", takes=["odd"])
    assert told.exit_code == 1, told
