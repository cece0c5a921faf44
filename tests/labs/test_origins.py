"""The lab on origins: its ways are the shortest, and the page's the same."""

import itertools
import random

import pytest
import torch
from page_numbers import compare_each

from selfattn.labs.origins import (
    ARCHITECTURES,
    FEWEST,
    MOST,
    OriginsLab,
    edges_to,
    seen,
)
from selfattn.origins import Convolution

KERNELS = [2, 3, 4, 5]


def any_setting(chance):
    """One of all settings."""
    n = chance.randint(FEWEST, MOST)
    output = chance.randint(0, n - 1)
    return {
        "architecture": chance.choice(ARCHITECTURES),
        "kernel": chance.choice(KERNELS),
        "n": n,
        "output": output,
        "token": chance.randint(0, output),
    }


def settings():
    """Every architecture with every kernel at both ends; 200 at random."""
    chance = random.Random(0)
    for architecture, kernel in itertools.product(ARCHITECTURES, KERNELS):
        for n in (FEWEST, MOST):
            for token in (0, n - 1):
                yield {
                    "architecture": architecture,
                    "kernel": kernel,
                    "n": n,
                    "output": n - 1,
                    "token": token,
                }
    for _ in range(200):
        yield any_setting(chance)


def compare(theirs, values):
    """Raise AssertionError unless the page has what the package has."""
    ours = seen(**values)
    for name in ("hops", "steps", "heard", "parameters", "operations"):
        assert theirs[name] == getattr(ours, name), name
    assert [tuple(node) for node in theirs["path"]] == ours.path
    edges = [(tuple(a), tuple(b)) for a, b in theirs["edges"]]
    assert edges == ours.edges


def test_the_page_computes_as_the_package(in_node, unopened):
    many = list(settings())
    calls = [["compute", values] for values in many]
    compare_each(compare, in_node("origins", calls), many)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("return distance + 1", "return distance"),
        ("? kernel ** layers : 1", "? kernel ** (layers - 1) : 1"),
        ("dense: n * n", "dense: n"),
        ("4 * n * n * WIDTH : 0", "2 * n * n * WIDTH : 0"),
        (".filter(([, j]) => j >= 0)", ""),
        ("Math.min(kernel - 1, ", "Math.min(kernel, "),
        ("hopsOf(architecture, n - 1, kernel)", "hops"),
    ],
)
def test_a_planted_mistake_is_seen(planted, right, wrong):
    sample = list(settings())[:120]
    theirs = planted("origins", right, wrong, sample)
    with pytest.raises(AssertionError):
        compare_each(compare, theirs, sample)


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    chance = random.Random(1)
    many = [any_setting(chance) for _ in range(200)]
    assert_links_bring_back(OriginsLab(), many)


def test_the_way_goes_along_edges_and_no_other_is_shorter():
    """Its hops are its edges; layer by layer, nothing arrives sooner."""
    for values in settings():
        now = seen(**values)
        edges = {*now.edges}
        assert now.path[0] == (0, values["token"])
        assert now.path[-1][1] == values["output"]
        assert len(now.path) - 1 == now.hops
        assert all(pair in edges for pair in itertools.pairwise(now.path))
        if now.hops > 1 and values["architecture"] != "recurrent":
            fewer = edges_to(
                values["architecture"],
                values["kernel"],
                values["n"],
                (now.hops - 1, values["output"]),
            )
            heard = {place for (layer, place), _ in fewer if layer == 0}
            assert values["token"] not in heard


@pytest.mark.parametrize("dilated", [False, True])
def test_what_is_heard_is_what_a_stack_of_convolutions_hears(dilated):
    """By the gradient of one output, with no weight that could hide it."""
    name = "dilated" if dilated else "convolution"
    for kernel, n in itertools.product(KERNELS, (5, 16)):
        now = seen(
            architecture=name, kernel=kernel, n=n, output=n - 1, token=0
        )
        model = Convolution(
            1, kernel=kernel, n_layers=now.hops, dilated=dilated, causal=True
        ).double()
        for layer in model.layers:
            torch.nn.init.ones_(layer.weight)
            torch.nn.init.zeros_(layer.bias)
        x = torch.rand(1, n, 1, dtype=torch.float64, requires_grad=True)
        [heard] = torch.autograd.grad(model(x)[0, -1].sum(), x)
        assert int((heard != 0).sum()) == now.heard == n


def test_fewer_tokens_take_the_output_and_the_token_along():
    lab = OriginsLab(n=12, output=11, token=9)
    lab.n = 5
    assert (lab.output, lab.token) == (4, 4)


def test_the_still_picture_and_its_words_are_of_this_setting():
    lab = OriginsLab(architecture="dilated", kernel=2, n=9, output=8, token=1)
    assert "9 tokens, connected by dilated" in lab.describe()
    assert "it is 3 hops" in lab.describe()
    (ax,) = lab.figure().axes
    assert list(ax.lines[-1].get_ydata()) == [0, 1, 2, 3]
    assert ax.lines[-1].get_xdata()[0] == 2
    assert ax.lines[-1].get_xdata()[-1] == 9
