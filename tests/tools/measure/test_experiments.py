"""The experiments give what is committed: one seed is trained anew."""

import json
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import SimpleNamespace

import pytest
import torch

from selfattn.measurements import measured
from tools.measure import experiments
from tools.measure.experiments import __main__ as command
from tools.measure.experiments.__main__ import place, run_all
from tools.measure.provenance import RESULTS, ROOT, as_json

CHAPTERS = experiments.chapters()


@pytest.fixture(params=CHAPTERS)
def chapter(request):
    return request.param


@pytest.fixture
def experiment(chapter):
    return experiments.load(chapter)


def expected_keys(experiment):
    """Every run that there must be, as a sorted list of its settings."""
    return sorted(
        json.dumps({"seed": seed, **setting}, sort_keys=True)
        for setting in experiment.SETTINGS
        for seed in experiment.SEEDS
    )


def test_there_is_an_experiment():
    assert "dot_product" in CHAPTERS


def test_every_setting_was_run_with_every_seed(chapter, experiment):
    assert len(experiment.SEEDS) >= 5
    names = {"seed"}.union(*experiment.SETTINGS)
    runs = [
        json.dumps({n: run[n] for n in names & run.keys()}, sort_keys=True)
        for run in measured(chapter)["runs"]
    ]
    assert sorted(runs) == expected_keys(experiment)


def test_a_measurement_says_where_it_comes_from(chapter, experiment):
    result = measured(chapter)
    assert result["about"] == experiment.ABOUT
    assert (
        result["command"] == f"python -m tools.measure.experiments {chapter}"
    )
    later = result.get("later", [])
    for where in (result, *later):
        assert re.fullmatch("[0-9a-f]{40}", where["provenance"]["commit"])
        assert {"torch", "python", "threads"} <= where["provenance"].keys()
    assert sum(added["runs"] for added in later) < len(result["runs"])


def test_runs_that_were_added_say_where_they_were_made():
    """Fifteen runs stood under a commit and a processor of earlier ones."""
    later = measured("origins")["later"]
    assert [added["runs"] for added in later] == [15, 90]
    runs, new = measured("origins")["runs"], 105
    experiment = experiments.load("origins")
    added = [
        {"seed": seed, **setting}
        for setting in experiment.SETTINGS[-new // len(experiment.SEEDS) :]
        for seed in experiment.SEEDS
    ]
    for setting, run in zip(added, runs[-new:], strict=True):
        assert setting.items() <= run.items()


@pytest.mark.usefixtures("unchecked")
def test_one_seed_trained_anew_gives_the_committed_numbers(
    chapter, experiment
):
    seed, setting = experiment.SEEDS[0], experiment.SMALLEST
    assert setting in experiment.SETTINGS
    (committed,) = [
        run
        for run in measured(chapter)["runs"]
        if {"seed": seed, **setting}.items() <= run.items()
    ]
    for name, number in experiment.run(seed, **setting).items():
        assert number == pytest.approx(
            committed[name], abs=experiment.TOLERANCE
        )


@pytest.fixture
def one_thread():
    """As the experiments are run: small steps wait for a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("unchecked")
def test_an_undivided_layer_gets_there_in_ten_times_the_steps(one_thread):
    experiment = experiments.load("scaling")
    setting = {
        "arm": "none",
        "start": "unit",
        "d_k": 64,
        "optimizer": "SGD",
        "rate": 0.03,
    }
    longer = {**setting, "steps": 4000}
    assert longer in experiment.SETTINGS
    assert experiment.run(0, **setting)["right"] < 0.7
    # On some processors one or two of the 32 names are still confused.
    assert experiment.run(0, **longer)["right"] > 0.9


def test_cycles_of_three_come_to_a_tie_and_two_of_three_are_kept():
    experiment = experiments.load("dot_product")
    setting = {"cycle": 3, "rate": 0.1, "steps": 120}
    tied = experiment.run(0, arm="shared", **setting)
    assert tied["found"] == pytest.approx(1 / 3, abs=0.02)
    assert tied["largest"] < 0.4 and tied["in cycle"] > 0.9
    kept = experiment.run(0, arm="shared, from two of three", **setting)
    assert kept["found"] == pytest.approx(2 / 3, abs=0.02)
    assert kept["largest"] > 0.99
    assert kept["loss"] > tied["loss"] + 0.05
    left = experiment.run(0, arm="shared, softly from two", **setting)
    assert left["found"] < 0.36 and left["largest"] < 0.4


@pytest.mark.usefixtures("unchecked")
def test_an_mlp_reads_two_digits_out_of_a_head_that_is_kept():
    experiment = experiments.load("multihead")
    (setting,) = (x for x in experiment.SETTINGS if "kept" in x["arm"])
    kept = experiment.run(0, **setting)
    assert kept["both before"] < 0.3 < 0.9 < kept["both"]
    assert kept["smaller share"] < kept["larger share"]


def test_another_seed_is_another_run():
    experiment = experiments.load("dot_product")
    setting = experiment.SMALLEST
    one, other = experiment.run(0, **setting), experiment.run(1, **setting)
    assert one != other


def test_the_file_holds_one_run_a_line_and_can_be_read_back():
    result = {"about": "…", "runs": [{"seed": 0, "x": 0.5}, {"seed": 1}]}
    text = as_json(result)
    assert json.loads(text) == result
    assert '\n  {"seed": 0, "x": 0.5},\n' in text


def test_what_was_broken_off_goes_on_from_there(tmp_path, capsys):
    asked = []

    def run(seed, *, rate):
        asked.append((seed, rate))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return {"right": seed + rate}

    experiment = SimpleNamespace(
        SEEDS=range(2), SETTINGS=[{"rate": 0.1}, {"rate": 0.3}], run=run
    )
    kept = tmp_path / "new" / "kept.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run_all(experiment, kept)
    assert "2 of 4, 0 minutes left" in capsys.readouterr().err
    with kept.open("a") as file:
        file.write('{"seed": 0, "ra')  # as when the power fails
    runs = run_all(experiment, kept)
    assert asked == [(0, 0.1), (1, 0.1), (0, 0.3), (0, 0.3), (1, 0.3)]
    assert [run["right"] for run in runs] == [0.1, 1.1, 0.3, 1.3]
    assert runs == [json.loads(x) for x in kept.read_text().splitlines()]


def test_make_experiments_runs_every_chapter(monkeypatch):
    """It once named none, and was told so by its own parser."""
    written = []

    def write(chapter, mapped):
        (came,) = mapped(abs, [-3])
        written.append((chapter, came))
        return RESULTS / f"{chapter}.json"

    monkeypatch.setattr(command, "write", write)
    made = (ROOT / "Makefile").read_text("utf-8")
    (words,) = re.findall(r"-m tools\.measure\.experiments(.*)\n", made)
    command.main(words.split())
    assert written == [(chapter, 3) for chapter in CHAPTERS]


def test_several_at_once_come_to_the_same(tmp_path):
    experiment = experiments.load("devices")
    few = SimpleNamespace(
        SEEDS=(3, 1), SETTINGS=[experiment.SMALLEST], run=experiment.run
    )
    alone = run_all(few, tmp_path / "alone.jsonl")
    with ProcessPoolExecutor(2, get_context("spawn")) as several:
        assert run_all(few, tmp_path / "two.jsonl", several.map) == alone


def test_what_children_run_stands_where_they_find_it(tmp_path):
    """A child does not import what runs as __main__: nothing was run."""
    found = []

    def mapped(run, wanted):
        found.append(run.func.__module__)
        return map(run, wanted)

    experiment = SimpleNamespace(
        SEEDS=(0,), SETTINGS=[{}], run=lambda seed: {}
    )
    run_all(experiment, tmp_path / "kept.jsonl", mapped)
    assert found == [experiments.__name__]


def test_what_is_kept_is_of_the_package_as_it_is(monkeypatch, tmp_path):
    experiment = experiments.load("masks")
    before = place(experiment)
    (tmp_path / "new.py").write_text("")
    monkeypatch.setattr(command, "PACKAGE", tmp_path)
    assert place(experiment) != before


def test_an_unknown_chapter_is_told_which_there_are():
    with pytest.raises(ValueError, match=r"dot_product.*not for 'nothing'"):
        experiments.load("nothing")
