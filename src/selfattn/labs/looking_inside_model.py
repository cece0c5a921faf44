"""The small model that the page runs: how it is made, kept and read again.

Two blocks of four heads foretell the next word of `selfattn.data.tales`. It
was trained by ``tools/measure/experiments/looking_inside.py``, which also
wrote its weights into the table beside this file: whole numbers of 16 bits
and, for each tensor, the power of two that they are multiples of. So Python
and the page read exactly the same numbers.
"""

import base64
import hashlib
import json
import math
import textwrap
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from selfattn import MultiHeadAttention, fused_attention
from selfattn.blocks import EncoderBlock
from selfattn.data.tales import LONGEST, WORDS
from selfattn.layers import LayerNorm
from selfattn.models import Decoder, Embedding
from selfattn.positions import LearnedPositions

WIDTH, N_HEADS, DEPTH, D_FF = 32, 4, 2, 64
STORED = Path(__file__).with_name("looking_inside_weights.json")
LARGEST, LINE = 2**15 - 1, 76  # of a number, of a line of letters


def small_decoder(depth: int = DEPTH) -> Decoder:
    """A new model of so many blocks, not trained.

    >>> model = small_decoder()
    >>> sum(p.numel() for p in model.parameters())
    20224
    """
    positions = LearnedPositions(LONGEST, WIDTH)
    heads = partial(MultiHeadAttention, attend=fused_attention)
    blocks = [
        EncoderBlock(WIDTH, N_HEADS, D_FF, pre=True, multihead=heads)
        for _ in range(depth)
    ]
    model = Decoder(
        Embedding(len(WORDS), WIDTH, positions=positions),
        blocks,
        norm=LayerNorm(WIDTH),
        tied=False,
    )
    for table in (model.embed.tokens.weight, positions.table):
        torch.nn.init.normal_(table, std=0.5)
    return model


def packed(model: Decoder) -> str:
    """The weights as JSON, of which `unpacked` is the inverse."""
    shapes, numbers = {}, bytearray()
    for name, weight in model.state_dict().items():
        largest = weight.abs().max().item()
        power = math.ceil(math.log2(largest / LARGEST))
        whole = (weight.double() / 2.0**power).round().to(torch.int16)
        shapes[name] = [power, *weight.shape]
        for number in whole.flatten().tolist():
            numbers += number.to_bytes(2, "little", signed=True)
    letters = base64.b64encode(numbers).decode("ascii")
    stored = {
        "words": WORDS,
        "shapes": shapes,
        "sha256": hashlib.sha256(numbers).hexdigest(),
        "numbers": textwrap.wrap(letters, LINE),
    }
    return json.dumps(stored, indent=0) + "\n"


def unpacked(text: str) -> dict[str, Tensor]:
    """The tensors of such a table, by name, in float32.

    Raises:
        ValueError: if the numbers are not those that were written.
    """
    stored = json.loads(text)
    numbers = bytearray(base64.b64decode("".join(stored["numbers"])))
    found = hashlib.sha256(numbers).hexdigest()
    if found != stored["sha256"]:
        raise ValueError(
            "stored weights must have the digest written beside them, "
            f"{stored['sha256']}, but theirs is {found}"
        )
    whole = torch.frombuffer(numbers, dtype=torch.int16)
    weights, start = {}, 0
    for name, (power, *shape) in stored["shapes"].items():
        end = start + math.prod(shape)
        weights[name] = whole[start:end].reshape(shape) * 2.0**power
        start = end
    return weights


def trained_model() -> Decoder:
    """The model of the page, with its trained weights, ready to look into.

    >>> from selfattn.data.tales import decode, encode
    >>> text = "the cat did not cross the road because it was too tired"
    >>> scores = trained_model()(encode(f". {text} . the")[None])[0, -1]
    >>> decode(scores.argmax()[None])
    'cat'
    """
    model = small_decoder()
    model.load_state_dict(unpacked(STORED.read_text("utf-8")))
    return model.eval().requires_grad_(requires_grad=False)
