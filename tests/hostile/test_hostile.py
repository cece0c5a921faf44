"""Nobody's input gets anything but what is right, or an error in words.

First the harness itself: it must see each kind of failure, and whatever is
public. Then a fixed sample of its trials; `make hostile` runs all of them.
"""

import subprocess
import sys
import time
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
import torch

from hostile import of_modes, scenes, verdicts
from hostile.callables import is_public, names_used, targets
from hostile.campaign import case_of, run_one
from hostile.trials import with_gradients
from hostile.twins import TWINS, twin_of
from hostile.verdicts import Trial, judged
from selfattn.masks import window_mask

ROOT = Path(__file__).parents[2]
X = torch.tensor([1.0, 2.0])


def spoils():
    X.add_(0)
    X[0] = 5.0
    return X


def verdict(run, expected=None, **options):
    return judged(Trial("a kind", "a detail", run, expected, **options))[0]


def test_each_failure_is_seen():
    """And what is no failure is not called one."""
    x = torch.tensor([1.0, 2.0])
    assert verdict(lambda: x, lambda: x.clone()) == "right"
    assert verdict(lambda: x + 1e-3, lambda: x) == "wrong"
    assert verdict(lambda: x[None], lambda: x) == "wrong"
    assert verdict(lambda: x * torch.nan, lambda: x) == "wrong"
    assert verdict(lambda: x) == "accepted nonsense"
    assert verdict(lambda: x @ torch.ones(3)) == "obscure error"
    assert verdict(lambda: 1 + "text") == "obscure error"


def test_what_rounding_moves_as_far_is_no_mistake():
    """The gradient of a ReLU in bfloat16, its input a rounding from zero."""

    def shaken(seed):
        return X * (1.0 if seed % 2 else 1.5)

    def here(run, reach=shaken):
        return verdict(run, lambda: X, dtype=torch.bfloat16, shaken=reach)

    assert here(lambda: 1.5 * X) == "right"
    assert here(lambda: 3.5 * X) == "wrong"
    assert here(lambda: 1.5 * X, lambda seed: X) == "wrong"
    assert here(lambda: X * torch.nan) == "wrong"
    assert here(lambda: X[None] * 1.5) == "wrong"


def test_twice_the_error_of_pytorchs_own_is_allowed_and_no_more():
    """Of each result by itself, and of those that are finite."""

    def here(factor, others):
        return verdict(
            lambda: [factor * X, X],
            lambda: [X, X],
            dtype=torch.bfloat16,
            rival=lambda: others,
        )

    assert here(1.9, [1.5 * X, X]) == "right"
    assert here(2.1, [1.5 * X, X]) == "wrong"
    assert here(1.9, [X, 1.5 * X]) == "wrong"
    assert here(torch.nan, [1.5 * X, X]) == "wrong"


@pytest.mark.parametrize("name", TWINS)
def test_pytorchs_twin_of_a_block_computes_the_same(name):
    """And the trial under autocast is held to it, with its gradients."""
    target = next(one for one in targets() if one.name == name)
    case = case_of(target, Random(1))
    call = case.call
    for x in call.module.parameters():
        torch.nn.init.normal_(x, std=0.4)
    for mine, other in zip(
        with_gradients(call), with_gradients(call, twin_of(call)), strict=True
    ):
        torch.testing.assert_close(mine, other)
    autocast = [t for t in of_modes.trials(case) if t.rival]
    assert [t.detail.split()[-1] for t in autocast] == [
        "torch.bfloat16",
        "torch.float16",
    ]
    for trial in autocast:
        ours, theirs = trial.run(), trial.rival()
        assert any(
            not torch.equal(*pair) for pair in zip(ours, theirs, strict=True)
        )


def test_an_error_is_clear_if_the_package_raises_it_and_names_the_argument():
    def refuses():
        return window_mask(4, 4, 0)

    assert verdict(refuses, names=("window",)) == "refused clearly"
    assert verdict(refuses, names=("stride",)) == "obscure error"

    def raised_elsewhere():
        raise ValueError("window must be at least 1, but it is 0")

    assert verdict(raised_elsewhere, names=("window",)) == "obscure error"


def test_an_argument_that_is_modified_is_seen():
    assert verdict(spoils, lambda: X, watched=(X,)) == "wrong"


def test_what_does_not_end_is_seen(monkeypatch):
    monkeypatch.setattr(verdicts, "PATIENCE", 1)
    assert verdict(lambda: time.sleep(30)) == "hang"


def test_a_new_function_is_public_by_what_is_written_of_it():
    module = ModuleType("selfattn.layers")

    def doubled(x):
        """Twice x.

        Args:
            x: anything.
        """
        return 2 * x

    doubled.__module__ = module.__name__
    assert is_public(module, "doubled", doubled, names_used())
    assert not is_public(module, "_doubled", doubled, names_used())
    doubled.__doc__ = "Twice x."
    assert is_public(module, "doubled", doubled, names_used())  # unused
    used = names_used()
    used["doubled"] = 1
    assert not is_public(module, "doubled", doubled, used)


@pytest.fixture
def a_world_that_ends():
    """What a campaign opens in this process is closed with its test.

    It was not: where a process went on with `test_contract`, whose world is
    its own, all of that was red; in any other order all was green.
    """
    yield
    scenes.leave()


@pytest.mark.usefixtures("a_world_that_ends")
def test_whatever_is_public_is_fed():
    """Two functions were public and not tried: a sample had not met them."""
    for target in targets():
        assert case_of(target, Random(1)).call.target is target


@pytest.mark.usefixtures("a_world_that_ends")
def test_what_cannot_be_fed_is_a_failure():
    def mixed(recipe_less: bytes):
        return recipe_less

    target = targets()[0]._replace(
        name="layers.mixed",
        call=mixed,
        of=None,
        parameters={"recipe_less": None},
        hints={"recipe_less": bytes},
    )
    [outcome] = run_one(target.name, target, seed=1, quick=True)
    assert outcome.verdict == "obscure error"
    assert "give it a recipe" in outcome.why


@pytest.mark.parametrize("part", ["attention", "forward", "mask", "batches"])
def test_the_parts_of_the_package_are_found(part):
    assert sum(part in target.name for target in targets()) > 9


def test_a_sample_of_hostile_inputs_is_met_well():
    """In a process of its own: here, jaxtyping would speak first."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tools.measure.hostile"),
            *("--quick", "--processes", "1"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(done.stdout.rsplit("\n", 2)[-2].split()[0]) > 50
