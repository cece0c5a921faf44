"""More of what strangers found: in what functions of theirs answer, in files,
clocks and memories that are not what they are taken for.

As in `test_strangers`, each is a single story.
"""

import importlib.util
import itertools
import linecache
import math
import os
import signal
from functools import partial

import pytest
import torch
from safetensors.torch import save_file

from hostile.scenes import gpt2_weights, t5_weights
from selfattn.cost import seconds
from selfattn.data.sequences import sequence_batches
from selfattn.models import Embedding, Encoder, load_gpt2, load_t5
from selfattn.models.beams import beam_search
from selfattn.models.generate import (
    complete,
    keep_top_k,
    keep_top_p,
    sample,
)
from selfattn.origins import AdditiveAttention, Memory, Translator
from selfattn.positions import T5Bias
from selfattn.source import show_source

PROMPT = torch.tensor([[3, 4], [1, 2]])


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


# How a text goes on

UNRANKED = {
    "sparse": torch.Tensor.to_sparse,
    "of one byte": partial(torch.Tensor.to, dtype=torch.float8_e5m2),
    "nested": lambda x: torch.nested.nested_tensor([*x], layout=torch.jagged),
    "elsewhere": partial(torch.Tensor.to, device="meta"),
}
ways_on = pytest.mark.parametrize(
    "go_on",
    [complete, partial(beam_search, n_beams=2)],
    ids=["complete", "beam_search"],
)


@ways_on
@pytest.mark.parametrize("kind", UNRANKED)
def test_logits_that_pytorch_cannot_rank(go_on, kind):
    """It told so itself, of `amax`, `cat` and backends."""

    def step(tokens, cache):
        return UNRANKED[kind](torch.eye(10)[tokens[:, -1]]), None

    with pytest.raises(ValueError, match=r"logits.* must .*but it is"):
        go_on(step, PROMPT, 3)


@pytest.mark.parametrize("kind", ["sparse", "elsewhere"])
def test_tokens_that_cannot_be_put_behind_the_others(kind):
    def choose(logits):
        return UNRANKED[kind](logits.argmax(-1))

    def step(tokens, cache):
        return torch.eye(10)[tokens[:, -1]], None

    with pytest.raises(ValueError, match=r"choose .*must.*but it|choose must"):
        complete(step, PROMPT, 3, choose=choose)


@pytest.mark.parametrize("top_p", [-1, 0.0, 2.0])
def test_a_share_is_called_what_its_caller_calls_it(top_p):
    """`sample` was told that p is wrong, of which it has none."""
    with pytest.raises(ValueError, match=f"up to 1, but top_p={top_p}"):
        sample(torch.eye(3), top_p=top_p)


@pytest.mark.parametrize(
    "row", [[math.nan, 1.0, 2.0], [math.inf, 1.0, 2.0], [-math.inf] * 3]
)
@pytest.mark.parametrize("keep", [keep_top_k, keep_top_p])
def test_of_what_cannot_be_ranked_none_is_kept(keep, row):
    """All three were: NaN is the largest, and no share of infinity."""
    with pytest.raises(ValueError, match="without NaN and plus infinity"):
        keep(torch.tensor([[0.0, 1.0, 2.0], row]), 1)


@ways_on
def test_a_text_to_which_nothing_is_added_is_a_new_one(go_on):
    """It was the prompt itself: whoever wrote into the one changed both."""

    def step(tokens, cache):
        raise AssertionError("nothing is to be added")

    prompt = PROMPT.clone()
    made = go_on(step, prompt, 0)
    tokens = getattr(made, "tokens", made)
    assert torch.equal(tokens.view(2, 2), PROMPT)
    tokens.zero_()
    assert torch.equal(prompt, PROMPT)


# What is added


def test_nothing_is_added_that_is_nowhere():
    """PyTorch told of a copy out of meta, which nobody had asked for."""
    tokens = torch.tensor([[1, 2, 0]])

    def positions(n, offset=0):
        return torch.ones(n, 4, device="meta")

    def relative(n_q, n_k):
        return torch.ones(2, n_q, n_k, device="meta")

    embed = Embedding(5, 4, positions=positions)
    with pytest.raises(ValueError, match="positions makes must hold numbers"):
        embed(tokens)
    assert embed.to("meta")(tokens.to("meta")).is_meta
    with pytest.raises(ValueError, match="relative makes must hold numbers"):
        Encoder(Embedding(5, 4), [], relative=relative)(tokens)


# Files


def test_nobody_waits_for_a_pipe(tmp_path):
    """It hung: whoever opens a pipe waits until somebody writes into it."""
    os.mkfifo(tmp_path / "pipe")
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # ends what hangs; Python's own handlers wait, too
        try:
            load_gpt2(tmp_path / "pipe")
        except ValueError as error:
            os._exit(0 if "is no file" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("\ud800", "no such file is there"),
        ("a\0b", "no such file is there"),
        ("none", "no such file is there"),
        (".", "what is there is no file"),
        ("/dev/null", "what is there is no file"),
    ],
)
def test_a_name_that_is_no_file(name, told):
    """The first was a UnicodeEncodeError; of the last two it was said that
    nothing is there.
    """
    with pytest.raises(ValueError, match=f"read as one: {told}"):
        load_gpt2(name)


def test_a_file_goes_by_any_name_that_a_system_has(tmp_path):
    path = tmp_path / "ünï 名.safetensors"
    save_file(gpt2_weights(), path)
    assert load_gpt2(path, n_heads=2).blocks


@pytest.mark.parametrize("causal, reach", [(True, 4), (False, 2)])
def test_buckets_that_end_too_near_are_refused_when_they_are_made(
    causal, reach, tmp_path
):
    """They were when first asked: of T5, after the whole file was read."""
    with pytest.raises(ValueError, match="those must end before max_distance"):
        T5Bias(2, causal=causal, n_buckets=8, max_distance=reach)
    T5Bias(2, causal=causal, n_buckets=8, max_distance=reach + 1)(3, 3)
    with pytest.raises(ValueError, match="n_buckets must be even"):
        T5Bias(2, n_buckets=7)
    path = tmp_path / "t5.safetensors"
    save_file(t5_weights(), path)
    with pytest.raises(ValueError, match=r"of .*t5\.safetensors it cannot"):
        load_t5(path, max_distance=1)


# What was read, and where it is


def read_by(model):
    return model.read(torch.tensor([[1, 2, 0]]))


ELSEWHERE = partial(torch.Tensor.to, device="meta")


@pytest.mark.parametrize("attend", [None, AdditiveAttention(4, 4, 4)])
@pytest.mark.parametrize(
    "bend, says",
    [
        (torch.Tensor.double, "have the type of the layer"),
        (ELSEWHERE, "be where the layer is"),
    ],
)
def test_a_memory_of_another_kind_is_named(attend, bend, says):
    """It was told that the writer must get what it got, or nothing at all."""
    model = Translator(5, 5, 4, attend=attend)
    states, summary, mask = read_by(model)
    for name, memory in {
        "states": Memory(bend(states), summary, mask),
        "summary": Memory(states, bend(summary), mask),
    }.items():
        with pytest.raises(ValueError, match=f"memory.{name} must {says}"):
            model.step(torch.tensor([[1]]), memory=memory)


@pytest.mark.parametrize(
    "bend, says",
    [
        (ELSEWHERE, "state must be where memory.summary is"),
        (torch.Tensor.to_sparse, "state must be a dense tensor"),
    ],
)
def test_a_state_that_a_writer_cannot_go_on_from(bend, says):
    model = Translator(5, 5, 4)
    memory = read_by(model)
    with pytest.raises(ValueError, match=says):
        model.step(torch.tensor([[1]]), bend(memory.summary), memory=memory)


@pytest.mark.parametrize(
    "answer",
    [
        torch.Tensor.float,
        torch.Tensor.bool,
        torch.Tensor.to_sparse,
        ELSEWHERE,
        lambda x: x.numpy(),
    ],
)
def test_what_is_answered_is_tokens(answer):
    """As the task promises of its targets; any tensor was handed on."""
    with pytest.raises(ValueError, match=r"answer .*but it"):
        next(sequence_batches(answer, 2, seed=0, n=3))


# Clocks, and what has no source


@pytest.mark.parametrize(
    "ticks", [(5.0, 4.0), (math.inf, math.inf), (0, 1e999)]
)
def test_a_clock_that_goes_back_or_nowhere(ticks):
    """The least of several tries was -1 second, or NaN."""
    clock = itertools.cycle(ticks).__next__
    with pytest.raises(ValueError, match="clock must tell finite seconds"):
        seconds(lambda: None, repeats=1, clock=clock)


def made_of_text():
    made = {}
    exec("def unwritten(): pass", made)
    return made["unwritten"]


@pytest.mark.parametrize(
    "thing",
    [len, int, math, made_of_text(), partial(print, 1), torch.nn.ReLU()],
    ids=["in C", "a type", "a module", "of text", "bound", "a layer"],
)
def test_what_has_no_source_in_python(thing):
    """`inspect` told so, in words of its own that name nothing of ours."""
    with pytest.raises(ValueError, match=r"thing must .*no source is found"):
        show_source(thing)


# Sources that cannot be read


def test_a_source_that_is_none_is_refused_in_words(tmp_path):
    """A wrapper of itself, and a file that was left half written since."""

    def around(x):
        return x

    around.__wrapped__ = around
    path = tmp_path / "half_written.py"
    path.write_text("def f(x):\n    return x\n", "utf-8")
    spec = importlib.util.spec_from_file_location("half_written", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    path.write_text('def f(x):\n    """Left\n', "utf-8")
    linecache.checkcache()
    for thing in (around, made.f):
        with pytest.raises(ValueError, match="no source is found of"):
            show_source(thing)
