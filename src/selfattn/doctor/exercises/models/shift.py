"""`next_loss(logits, text)`: the loss of each next token, on average."""

import torch
import torch.nn.functional as F

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe

N_TOKENS = 5


def next_loss(logits, text):
    """The solution."""
    return F.cross_entropy(logits[:, :-1].mT, text[:, 1:])


@mistake
def not_shifted(logits, text):
    """It is smallest for a model that repeats what it reads.

    Cause: The scores at a token are compared with that token.
    Cure: logits[:, :-1] with text[:, 1:].
    Thread: https://github.com/huggingface/transformers/issues/27517
    """
    return F.cross_entropy(logits.mT, text)


@mistake
def shifted_the_other_way(logits, text):
    """It asks for the token before.

    Cause: logits[:, 1:] are compared with text[:, :-1].
    Cure: The scores at t are about t + 1: logits[:, :-1], text[:, 1:].
    """
    return F.cross_entropy(logits[:, 1:].mT, text[:, :-1])


@mistake
def shifted_twice(logits, text):
    """It asks for the token after the next.

    Cause: Shifted here, and once more elsewhere.
    Cure: Once.
    Thread: https://github.com/huggingface/transformers/pull/37830
    """
    return F.cross_entropy(logits[:, :-2].mT, text[:, 2:])


@mistake
def rolled_round(logits, text):
    """The last position is asked for the first token.

    Cause: text.roll(-1) brings the first token to the end.
    Cure: Leave the last scores out: nothing follows them.
    """
    return F.cross_entropy(logits.mT, text.roll(-1, dims=1))


@mistake
def summed(logits, text):
    """It grows with the number of tokens.

    Cause: The losses were added up.
    Cure: Their mean, over all texts and positions.
    """
    return F.cross_entropy(logits[:, :-1].mT, text[:, 1:], reduction="sum")


@mistake
def sum_a_text(logits, text):
    """It grows with the length of a text.

    Cause: The losses of a text were added, and the mean taken over texts.
    Cure: Their mean, over all texts and positions.
    """
    return summed(logits, text) / len(text)


@mistake
def softmax_before_the_loss(logits, text):
    """It can hardly fall.

    Cause: cross_entropy takes scores, and was given chances.
    Cure: No softmax before it.
    """
    return next_loss(logits.softmax(dim=-1), text)


@mistake
def in_bits(logits, text):
    """You have the loss in bits.

    Cause: The logarithm to base 2 was taken.
    Cure: Nats: the natural logarithm, as in PyTorch.
    """
    return next_loss(logits, text) / torch.tensor(2.0).log()


@mistake
def the_last_token_alone(logits, text):
    """Only the end of each text is asked.

    Cause: The scores before the last token are all that is used.
    Cure: Every position but the last is asked for what follows.
    """
    return F.cross_entropy(logits[:, -2], text[:, -1])


def tokens(sizes):
    """Token numbers, (batch, n), in which no shift goes unnoticed."""
    i = torch.arange(sizes["batch"])[:, None]
    j = torch.arange(sizes["n"])[None, :]
    return (3 * i + j * j + j // 2) % N_TOKENS


TEXTS = {"logits": "batch n tokens", "text": tokens}
SIZES = {"batch": 2, "n": 7, "tokens": N_TOKENS}

NEXT_LOSS = Exercise(
    "models/next_loss",
    asks="the mean loss of the next token, (batch, n, n_tokens) -> a number",
    solution=next_loss,
    probes=(
        Probe(
            "the scores at t are compared with token t + 1",
            TEXTS,
            SIZES,
            gradient=True,
            fixed=("tokens", "n"),
        ),
        Probe("one text", TEXTS, SIZES | {"batch": 1}, fixed=("tokens", "n")),
        Probe(
            "float64 stays float64",
            TEXTS,
            SIZES,
            dtype=torch.float64,
            fixed=("tokens", "n"),
        ),
    ),
    mistakes=(
        not_shifted,
        shifted_the_other_way,
        shifted_twice,
        rolled_round,
        summed,
        sum_a_text,
        softmax_before_the_loss,
        in_bits,
        the_last_token_alone,
    ),
)
