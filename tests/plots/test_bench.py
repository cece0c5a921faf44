"""The figures of the races show every run where it was measured."""

import pytest
from matplotlib.figure import Figure

from selfattn.plots import bench


def line(who, n, speed):
    return {"who": who, "n": n, "speed": speed}


def test_every_speed_is_drawn_over_its_length():
    runs = [
        line("theirs", 256, 1.0),
        line("ours", 256, 0.5),
        line("theirs", 1024, 1.0),
        line("ours", 1024, 7.0),
        line("others", 1024, 3.0),
    ]
    ax = bench.speeds(Figure().subplots(), runs)
    drawn = {
        drawn.get_label(): list(zip(*drawn.get_data(), strict=True))
        for drawn in ax.lines
    }
    assert drawn["ours"] == [(256, 0.5), (1024, 7.0)]
    assert drawn["others"] == [(1024, 3.0)]
    assert [y for _, y in drawn["theirs"]] == [1, 1]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_who_raced_has_a_row_with_a_mark_for_each_pass():
    def run(who, which, speed, memory):
        told = {"who": who, "pass": which, "speed": speed, "memory": memory}
        return told | {"low": speed / 2, "high": speed * 2}

    groups = {
        "long": [
            run("theirs", "forward", 1.0, 1.0),
            run("ours", "forward", 3.0, 0.5),
            run("theirs", "training", 1.0, 1.0),
            run("ours", "training", 5.0, 0.25),
        ],
        "short": [
            run("theirs", "forward", 1.0, 1.0),
            run("others", "forward", 0.7, 11.0),
        ],
    }
    axes = Figure().subplots(1, 2)
    bench.races(axes, groups)
    wanted = (
        {(3.0, 1, "o"), (5.0, 1, "s"), (0.7, 3, "o")},
        {(0.5, 1, "o"), (0.25, 1, "s"), (11.0, 3, "o")},
    )
    for ax, marks in zip(axes, wanted, strict=True):
        drawn = [one for one in ax.lines if one.get_marker() in {"o", "s"}]
        points = {
            (*one.get_xdata(), *one.get_ydata(), one.get_marker())
            for one in drawn
            if len(one.get_xdata())
        }
        assert points == marks
        names = [name.get_text() for name in ax.get_yticklabels()]
        assert names == ["long", "ours", "short", "others"]
        assert ax.get_xscale() == "log" and ax.yaxis_inverted()


def test_shares_are_stacked_by_kind_and_end_at_the_whole():
    told = {
        "ours": {"aten::mm": 0.25, "aten::bmm": 0.125, "aten::copy_": 0.5},
        "theirs": {"aten::addmm": 0.5, "aten::baddbmm": 0.25, "Lsh": 0.125},
    }
    ax = bench.shares(Figure().subplots(), told)
    wide = [[bar.get_width() for bar in kind] for kind in ax.containers]
    assert wide == [[0.25, 0.5], [0.125, 0.25], [0.625, 0.25]]
    left = [[bar.get_x() for bar in kind] for kind in ax.containers]
    assert left == [[0, 0], [0.25, 0.5], [0.375, 0.75]]
    assert pytest.approx([1, 1]) == [
        bar.get_x() + bar.get_width() for bar in ax.containers[-1]
    ]


def test_a_row_has_a_mark_for_memory_given_back_and_one_for_kept():
    def run(who, memory, middle, bench="some"):
        told = {"bench": bench, "who": who, "race": "full", "memory": memory}
        return told | {"to_mine": [middle / 2, middle, 1.5 * middle]}

    ours = run("ours", "", 1.0) | {"to_mine": [1, 1, 1]}
    lines = [
        ours | {"memory": "given back"},
        run("theirs", "given back", 0.25),
        run("theirs", "given back", 2.0, "other"),
        ours | {"memory": "kept"},
        run("theirs", "kept", 0.8),
        run("theirs", "kept", 4.0, "other"),
    ]
    ax = bench.memory_kept(Figure().subplots(), lines)
    marks = [
        (*one.get_xdata(), *one.get_ydata(), one.get_markerfacecolor())
        for one in ax.lines
        if one.get_marker() == "o" and len(one.get_xdata())
    ]
    hollow = [mark[:2] for mark in marks if mark[2] == "none"]
    assert hollow == [(4.0, 0), (0.5, 1)]
    assert [mark[:2] for mark in marks if mark[2] != "none"] == [
        (1.25, 0),
        (0.25, 1),
    ]
    names = [name.get_text() for name in ax.get_yticklabels()]
    # One library races in two benches, under one name: one hid the other.
    assert names == ["some, full: theirs", "other, full: theirs"]
