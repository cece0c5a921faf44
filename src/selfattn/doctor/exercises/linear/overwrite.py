"""`overwrite(k, v, rate)`: a memory written by the delta rule."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

TEXT = {"k": "n d", "v": "n d_v", "rate": "n"}
SIZES = {"n": 5, "d": 3, "d_v": 2}


def between(inputs: Inputs) -> None:
    """Keys of length one, and rates between nothing and one."""
    inputs["k"] = torch.nn.functional.normalize(inputs["k"], dim=-1)
    inputs["rate"] = inputs["rate"].abs() / 2 + 0.1


def whole(inputs: Inputs) -> None:
    """Every rate is one."""
    between(inputs)
    inputs["rate"] = torch.ones_like(inputs["rate"])


def one_key(inputs: Inputs) -> None:
    """The same key again and again."""
    between(inputs)
    inputs["k"] = inputs["k"][:1].expand_as(inputs["k"]).clone()


def long_keys(inputs: Inputs) -> None:
    """Keys that are not of length one."""
    between(inputs)
    inputs["k"] = inputs["k"] * 0.7


def solution(k, v, rate):
    """What the key brings already is taken off the value, then written."""
    memory = k.new_zeros(k.shape[1], v.shape[1])
    for key, value, beta in zip(k, v, rate, strict=True):
        memory = memory + beta * key[:, None] * (value - key @ memory)
    return memory


@mistake
def only_added(k, v, rate):
    """A key that comes twice brings back the sum of both values.

    Cause: The value is added, and what its key brings already stays.
    Cure: Write the difference: value - key @ memory.
    """
    return (k * rate[:, None]).T @ v


@mistake
def added_up(k, v, rate):
    """What is wrong in the memory grows instead of being taken off.

    Cause: What the key brings is added to the value.
    Cure: It is taken off: value - key @ memory.
    """
    memory = k.new_zeros(k.shape[1], v.shape[1])
    for key, value, beta in zip(k, v, rate, strict=True):
        memory = memory + beta * key[:, None] * (value + key @ memory)
    return memory


@mistake
def rate_on_the_value_alone(k, v, rate):
    """At rates below one the old value is taken off wholly.

    Cause: The rate multiplies the value, not the difference.
    Cure: beta * (value - key @ memory).
    """
    memory = k.new_zeros(k.shape[1], v.shape[1])
    for key, value, beta in zip(k, v, rate, strict=True):
        memory = memory + key[:, None] * (beta * value - key @ memory)
    return memory


@mistake
def rate_on_what_was_there_alone(k, v, rate):
    """At rates below one the new value is written wholly.

    Cause: The rate multiplies what the key brings, not the difference.
    Cure: beta * (value - key @ memory).
    """
    memory = k.new_zeros(k.shape[1], v.shape[1])
    for key, value, beta in zip(k, v, rate, strict=True):
        memory = memory + key[:, None] * (value - beta * (key @ memory))
    return memory


@mistake
def no_rate(k, v, rate):
    """It is right at a rate of one.

    Cause: The rate is nowhere.
    Cure: Only the share `rate` of the difference is written.
    """
    memory = k.new_zeros(k.shape[1], v.shape[1])
    for key, value in zip(k, v, strict=True):
        memory = memory + key[:, None] * (value - key @ memory)
    return memory


@mistake
def everything_fades(k, v, rate):
    """Keys that have nothing to do with the new one lose, too.

    Cause: The whole memory is shrunk by 1 - rate: that is a gate.
    Cure: Take off only what this key brings: key[:, None] * (key @ memory).
    """
    memory = k.new_zeros(k.shape[1], v.shape[1])
    for key, value, beta in zip(k, v, rate, strict=True):
        memory = (1 - beta) * memory + beta * key[:, None] * value
    return memory


@mistake
def all_corrected_at_once(k, v, rate):
    """Later tokens are not corrected by what earlier corrections wrote.

    Cause: The differences are taken to the sums of plain values, not to
        the memory as it is when the token comes.
    Cure: One token after the other: read, take off, write.
    """
    before = (k @ k.T).tril(-1) @ (rate[:, None] * v)
    return (k * rate[:, None]).T @ (v - before)


@mistake
def backwards(k, v, rate):
    """The first value of a key wins, not the last.

    Cause: The tokens are written from the end.
    Cure: In their order: the last to write is right.
    """
    memory = k.new_zeros(k.shape[1], v.shape[1])
    triples = zip(k.flip(0), v.flip(0), rate.flip(0), strict=True)
    for key, value, beta in triples:
        memory = memory + beta * key[:, None] * (value - key @ memory)
    return memory


OVERWRITE = Exercise(
    "linear/overwrite",
    asks="S + β k (v - kᵀS)ᵀ, token by token",
    solution=solution,
    probes=(
        Probe(
            "each token corrects what its key brings",
            TEXT,
            SIZES,
            change=between,
            gradient=True,
        ),
        Probe(
            "at a rate of one the last value wins", TEXT, SIZES, change=whole
        ),
        Probe("a key may come again", TEXT, SIZES, change=one_key),
        Probe("keys may have any length", TEXT, SIZES, change=long_keys),
        Probe(
            "float64 stays float64",
            TEXT,
            SIZES,
            dtype=torch.float64,
            change=between,
        ),
    ),
    mistakes=(
        only_added,
        added_up,
        rate_on_the_value_alone,
        rate_on_what_was_there_alone,
        no_rate,
        everything_fades,
        all_corrected_at_once,
        backwards,
    ),
)
