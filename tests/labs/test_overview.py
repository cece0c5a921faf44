"""The lab of the overview: it is the package's, counted and measured anew."""

import json

import pytest
import torch
from page_numbers import settings_of

from selfattn import attention
from selfattn.cost import LiveBytes, flops
from selfattn.labs.overview import (
    BOUNDS,
    EXACT,
    INPUTS,
    LENGTHS,
    MEASURED,
    MEBIBYTES,
    MECHANISMS,
    TABLE,
    OverviewLab,
    chosen,
)
from tools.measure.experiments import _mechanisms, _overview_table, overview

NAMES = ("n", "causal", "inputs", "error", "mask", "memory")
EVERYWHERE = settings_of(
    NAMES,
    LENGTHS,
    [False, True],
    INPUTS,
    BOUNDS,
    [False, True],
    MEBIBYTES[::2],
)


def compare(results, settings):
    """Raise AssertionError unless the page's rows are the package's."""
    for values, theirs in zip(settings, results, strict=True):
        mine = chosen(**values)._asdict()
        mine["rows"] = [row._asdict() for row in mine["rows"]]
        assert theirs == mine, values


def test_it_chooses_as_the_package_at_every_setting(in_node, unopened):
    calls = [["compute", values] for values in EVERYWHERE]
    compare(in_node("overview", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("if (EXACT.includes(name)) return 0", "if (false) return 0"),
        ('known[causal ? "causal" : "any"]', 'known["any"]'),
        ('values.causal ? "causal" : "any"', '"any"'),
        ("STORED.lengths.indexOf(values.n)", "0"),
        ("values.memory * 2 ** 20", "values.memory * 2 ** 10"),
        ("error > bound", "error >= bound"),
        ("values.mask && !EXACT", "!EXACT"),
        ("what(name) < what(best)", "what(name) > what(best)"),
        ("of[name].error !== null", "true"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    some = EVERYWHERE[::7]
    with pytest.raises(AssertionError):
        compare(planted("overview", right, wrong, some), some)


def test_its_table_is_that_of_the_committed_runs():
    assert _overview_table.PLACE.read_text("utf-8") == (
        _overview_table.written(_overview_table.table())
    )
    assert json.loads(_overview_table.written(TABLE)) == TABLE


@pytest.mark.parametrize("causal", [False, True])
def test_its_costs_are_counted_anew(causal):
    n = LENGTHS[1]
    draw = torch.Generator().manual_seed(0)
    q, k, v = _mechanisms.normal(n, overview.D, draw)
    calls = _mechanisms.mechanisms(0)
    for name in MECHANISMS:
        row = chosen(**OverviewLab(n=n, causal=causal).values()).rows[
            MECHANISMS.index(name)
        ]
        if row.operations is None:
            with pytest.raises(ValueError):
                calls[name](q, k, v, causal=True)
            continue
        with LiveBytes() as memory, torch.no_grad():
            done = flops(lambda c=calls[name]: c(q, k, v, causal=causal))
        near = 0.1 if name.startswith("LSH") else 0  # a median over seeds
        assert done == pytest.approx(row.operations, rel=near)
        assert memory.peak == pytest.approx(row.bytes, rel=near)


def test_the_tables_of_attention_follow_their_formula():
    runs = overview_runs("count")
    for n in MEASURED:
        (run, *_) = [run for run in runs if run["n"] == n]
        for causal, order in ((False, ""), (True, ", causal")):
            told = [run[f"attention{order}, {x}"] for x in COSTS]
            assert told == [*_overview_table.tables_of(n, causal)]


COSTS = ("operations", "bytes")


def overview_runs(task):
    """The committed runs of a task."""
    runs = _overview_table.measured("overview")["runs"]
    return [run for run in runs if run["task"] == task]


def test_only_what_is_exact_takes_any_mask():
    q, k, v = torch.randn(3, 16, 8)
    mask = torch.ones(16, 16, dtype=torch.bool)
    calls = _mechanisms.mechanisms(0)
    assert set(EXACT) == {"attention", "flash"}
    for name in MECHANISMS:
        call = calls[name]
        if name in EXACT:
            same = call(q, k, v, causal=False, mask=mask)
            torch.testing.assert_close(same, attention(q, k, v))
        else:
            with pytest.raises((ValueError, TypeError)):
                call(q, k, v, causal=False, mask=mask)


def test_the_picture_is_told_in_words():
    told = OverviewLab(mask=True).describe()
    assert told.endswith("2 remain: attention, flash.")
    nothing = OverviewLab(mask=True, n=8192, memory=1).describe()
    assert nothing.endswith("0 remain: none.")


def test_the_still_picture_shows_the_operations():
    lab = OverviewLab(causal=True)
    ax = lab.figure().axes[0]
    wide = [bar.get_width() for bar in ax.patches]
    assert wide == [row.operations or 0 for row in lab.chosen().rows]


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(OverviewLab(), EVERYWHERE[::37])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("inputs=far&mask=true", {"inputs": "far", "mask": True}, ""),
        ("n=129", {}, "n must be one of 128, 512, 2048, 8192"),
        ("error=some", {}, "error must be one of"),
        ("d=3", {}, "no setting “d”"),
    ],
)
def test_a_link_is_mended(assert_link_is_mended, link, changed, complaint):
    assert_link_is_mended(OverviewLab(), link, changed, complaint)
