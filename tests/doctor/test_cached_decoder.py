"""The doctor on caches: in chunks as in one pass, whatever it computes."""

import pytest
import torch
from torch import nn

from selfattn.blocks import EncoderBlock
from selfattn.doctor import complaints, examine
from selfattn.doctor.kinds.cached_decoder.kind import for_decoder
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import rope_halves


def test_every_mistake_is_named_in_vectors_as_well():
    """Words are the example of the kind, and tested with all others."""
    assert complaints(for_decoder(6)) == []


def turned(d_model, n_heads):
    return MultiHeadAttention(d_model, n_heads, rotate=rope_halves)


def our_step(block, x, kept):
    kept = block.remember(x, kept)
    return block(x, kept=kept, causal=True), kept


def hasty_step(block, x, kept):
    """It attends as if the new tokens were all there are."""
    return block(x, causal=True), block.remember(x, kept)


def unmasked_step(block, x, kept):
    kept = block.remember(x, kept)
    return block(x, kept=kept, causal=False), kept


def step_among_texts(block, x, kept):
    """Its cache has room for one text."""
    if kept is not None:
        kept = type(kept)(*(t[:1].expand_as(t) for t in kept))
    return our_step(block, x, kept)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (our_step, None),
        (hasty_step, "cache not read"),
        (unmasked_step, "not causal"),
        (step_among_texts, "first text for all"),
    ],
)
def test_a_block_of_ours_is_healthy_and_its_misuse_has_a_name(call, name):
    torch.manual_seed(0)
    block = EncoderBlock(8, 2, 16, pre=True, multihead=turned)
    report = examine(
        block, kind="cached-decoder", d_model=8, call=call, time_limit=None
    )
    assert report.passed == (name is None), report
    assert (report.mistake and report.mistake.name) == name, report


class Leftover(nn.Module):
    """It keeps its cache to itself, and never empties it."""

    def __init__(self):
        super().__init__()
        self.block, self.kept = EncoderBlock(8, 2, 16, pre=True), None

    def forward(self, x, cache):
        if self.kept is not None and len(self.kept.k) != len(x):
            self.kept = None
        output, self.kept = our_step(self.block, x, self.kept)
        return output, True


def test_a_cache_that_is_never_emptied_is_found():
    torch.manual_seed(0)
    report = examine(
        Leftover(), kind="cached-decoder", d_model=8, time_limit=None
    )
    asked = [finding.probe.claim for finding in report.findings]
    assert "a new text starts anew" in asked


class Lengthy(MultiHeadAttention):
    """What asks for its truth, or its length, asks too much."""

    def __len__(self):
        raise TypeError("Lengthy does not support len()")


def test_the_first_attention_of_a_stack_is_not_asked_whether_it_is_true():
    torch.manual_seed(0)
    stack = Leftover()
    stack.block = EncoderBlock(8, 2, 16, pre=True, multihead=Lengthy)
    report = examine(stack, kind="cached-decoder", d_model=8, time_limit=None)
    asked = [finding.probe.claim for finding in report.findings]
    assert "a new text starts anew" in asked


def test_words_are_taken_as_well():
    torch.manual_seed(0)
    table = nn.Embedding(2, 8)
    block = EncoderBlock(8, 2, 16, pre=True, multihead=turned)

    def call(block, x, kept):
        return our_step(block, table(x), kept)

    report = examine(block, kind="cached-decoder", call=call, time_limit=None)
    assert report.passed, report


def test_a_class_of_decoders_is_none_and_is_not_called_ill():
    """It was called like one: its constructor got the words for `self`."""
    report = examine(Leftover, kind="cached-decoder")
    assert report.exit_code == 2
    assert report.question.startswith("Leftover is a class, and a decoder")
