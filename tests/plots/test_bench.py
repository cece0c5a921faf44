"""The figure of the races shows every run where it was measured."""

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
