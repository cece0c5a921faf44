"""What is measured of a model of tales, on models that are known."""

import math

import pytest
import torch

from selfattn.labs.looking_inside_model import small_decoder, trained_model
from selfattn.looking_inside import record_weights
from tools.measure.experiments import _probes, looking_inside

NAMES = [f"{block}.{head}" for block in (1, 2) for head in (1, 2, 3, 4)]


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def texts():
    return _probes.texts(0, batches=2)


def test_who_knows_nothing_loses_as_by_chance(texts):
    def blind(tokens):
        return torch.zeros(*tokens.shape, 42)

    for kind, chance in (("echo", 42), ("agreement", 2), ("coreference", 42)):
        found = looking_inside.asked_loss(blind, texts[kind])
        assert found["loss"] == pytest.approx(math.log(chance), abs=1e-5)


def test_looks_one_back_are_the_diagonal_below(texts):
    model = trained_model()
    found = looking_inside.looks(model, texts["echo"], before=True)
    below = []
    for tale in texts["echo"]:
        with record_weights(model) as weights:
            model(tale.tokens)
        table = torch.cat(weights, dim=1)  # (texts, heads, n, n)
        below.append(table.diagonal(-1, -2, -1).mean(dim=(0, 2)))
    torch.testing.assert_close(found, torch.stack(below).mean(dim=0))


def test_of_the_pages_model_it_says_what_the_page_says(texts):
    model, tales = trained_model(), texts["echo"]
    found = looking_inside.by_head(model, "echo", tales)
    alone = [looking_inside.lost(model, [name], tales) for name in NAMES]
    assert found["echo induction heads"] == found["echo induction rank"] == 1
    assert found["echo induction block"] == 2
    assert found["echo without induction"] == pytest.approx(alone[4])
    assert found["echo without induction heads"] == pytest.approx(alone[4])
    assert found["echo without induction heads, summed"] == pytest.approx(
        alone[4]
    )
    assert found["echo previous block"] == 1
    assert found["echo without previous"] == pytest.approx(alone[2])
    assert found["echo previous rank"] == 2
    assert found["echo without worst"] == pytest.approx(max(alone))
    assert found["echo previous idle"] < found["echo previous weight"]


def test_as_many_that_look_least_are_the_others(texts):
    model, tales = trained_model(), texts["agreement"]
    weight = torch.tensor([0.4, 0.1, 0.5, 0.0, 0.2, 0.6, 0.05, 0.3])
    without = torch.arange(8.0)
    found = looking_inside.together(model, weight, without, tales)
    whole = looking_inside.asked_loss(model, tales)["loss"]
    assert found["{} heads"] == 3  # the eighth has no more than .3

    def lost(*names):
        return pytest.approx(looking_inside.lost(model, [*names], tales))

    assert found["without {} heads"] == lost("1.1", "1.3", "2.2")
    assert found["without as many, not {}"] == lost("1.2", "1.4", "2.3")
    summed = 0 + 2 + 5 - 2 * whole
    assert found["without {} heads, summed"] == pytest.approx(summed)


def test_a_probe_reads_positions_at_once_and_neighbours_after_a_block():
    torch.manual_seed(0)
    for model in (trained_model(), small_decoder()):
        found = _probes.probes(model, 0)
        assert found["position at 0"] > 0.99
        assert found["previous word at 0"] < 0.2
        assert found["previous word at 1"] > found["previous word at 0"]
        assert found["who at 0"] < 0.2 < 0.6 < found["who at 1"]
