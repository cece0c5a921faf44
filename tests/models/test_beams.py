"""Beam search against a search of everything, and against transformers'."""

import itertools
import math

import pytest
import torch
import transformers

from selfattn.blocks import EncoderBlock
from selfattn.models import Decoder, Embedding, complete
from selfattn.models.beams import beam_search
from selfattn.positions import LearnedPositions

N_TOKENS, D = 5, 8


@pytest.fixture
def model():
    torch.manual_seed(0)
    block = EncoderBlock(D, 2, 16, pre=True)
    made = Decoder(Embedding(N_TOKENS, D), [block]).eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made.double()


def score_of(model, text, n):
    """The sum of the logarithms of the tokens' probabilities, from n on."""
    logs = model(text[None]).log_softmax(dim=-1)[0, n - 1 : -1]
    return logs.gather(1, text[n:, None]).sum().item()


@torch.no_grad()
def test_enough_beams_find_the_best_of_all_texts(model):
    prompt = torch.tensor([[1, 4], [0, 2]])
    found = beam_search(model.step, prompt, 3, n_beams=N_TOKENS**2)
    for row in range(2):
        texts = [
            torch.cat((prompt[row], torch.tensor(rest)))
            for rest in itertools.product(range(N_TOKENS), repeat=3)
        ]
        best = max(texts, key=lambda text: score_of(model, text, 2))
        assert torch.equal(found.tokens[row, 0], best)
        first = found.scores[row, 0].item()
        assert first == pytest.approx(score_of(model, best, 2), abs=1e-5)
    assert (found.scores.diff(dim=1) <= 0).all()


@torch.no_grad()
def test_one_beam_is_greedy_and_the_cache_changes_nothing(model):
    prompt = torch.randint(N_TOKENS, (3, 4))
    one = beam_search(model.step, prompt, 6, n_beams=1)
    assert torch.equal(one.tokens[:, 0], complete(model.step, prompt, 6))
    many = [
        beam_search(model.step, prompt, 6, n_beams=4, cached=cached)
        for cached in (True, False)
    ]
    assert torch.equal(many[0].tokens, many[1].tokens)
    assert (many[0].scores[:, 0] >= one.scores[:, 0] - 1e-9).all()


@torch.no_grad()
def test_a_text_that_has_ended_stays_as_it_is(model):
    prompt = torch.randint(N_TOKENS, (3, 2))
    free = beam_search(model.step, prompt, 5, n_beams=4)
    stop = int(free.tokens[0, 0, 3])  # the likeliest text has it
    found = beam_search(model.step, prompt, 5, n_beams=4, stop=stop)
    texts = found.tokens[..., 2:].flatten(0, 1).tolist()
    ended = [text for text in texts if stop in text]
    assert all(set(t[t.index(stop) :]) == {stop} for t in ended)
    assert any(text.count(stop) > 1 for text in ended)
    for text, score in zip(found.tokens[0], found.scores[0], strict=True):
        at = [*text[2:].tolist(), stop].index(stop)  # what comes after is free
        wanted = score_of(model, text[: 3 + at], 2)
        assert score.item() == pytest.approx(wanted, abs=1e-5)


@torch.no_grad()
def test_texts_that_have_all_ended_are_not_gone_on_with():
    """A model with places for eight tokens was asked for a ninth, though
    every beam had ended at the fourth: an error instead of the texts.
    """
    embed = Embedding(N_TOKENS, D, positions=LearnedPositions(8, D))
    model = Decoder(embed, [EncoderBlock(D, 2, 16, pre=True)]).eval()
    asked = []

    def step(tokens, cache):
        asked.append(tokens.shape)
        logits, cache = model.step(tokens, cache)
        logits[:, 3] += 40.0 * (len(asked) > 2)
        return logits, cache

    prompt = torch.tensor([[0, 1], [2, 4]])
    found = beam_search(step, prompt, 30, n_beams=3, stop=3)
    assert len(asked) == 3 and found.tokens.shape == (2, 3, 32)
    assert (found.tokens[..., 4:] == 3).all()
    assert found.scores.isfinite().all()


@pytest.mark.parametrize("cached", [True, False])
def test_an_ended_text_is_not_gone_on_with_to_fill_the_beams(cached):
    """Where a step allows few tokens, the beams were filled with what has
    no probability: texts that went on behind their end.
    """

    def step(tokens, cache):
        logits = torch.full((len(tokens), 4), -math.inf)
        logits[:, 3] = 1.0
        logits[tokens[:, -1] == 0, 1] = 2.0
        return logits, None

    found = beam_search(
        step, torch.tensor([[0]]), 3, n_beams=4, stop=3, cached=cached
    )
    assert found.tokens[0].tolist() == [[0, 1, 3, 3], [0, 3, 3, 3]]
    wanted = torch.tensor([2.0, 1.0]).log_softmax(-1)
    assert torch.allclose(found.scores[0], wanted)
    # The second row has one way on where the first has two.
    both = beam_search(step, torch.tensor([[0], [2]]), 2, n_beams=4, stop=3)
    assert both.tokens.tolist() == [
        [[0, 1, 3], [0, 3, 3]],
        [[2, 3, 3], [2, 3, 3]],
    ]
    assert both.scores[1].tolist() == [0.0, -math.inf]


@torch.no_grad()
def test_it_finds_what_transformers_finds():
    torch.manual_seed(1)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=11,
            n_positions=29,
            n_embd=24,
            n_layer=1,
            n_head=3,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    prompt = torch.randint(11, (3, 4))
    expected = theirs.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=7,
        num_beams=4,
        num_return_sequences=4,
        do_sample=False,
        length_penalty=0.0,
        pad_token_id=0,
    )

    def step(tokens, cache):
        return theirs(tokens).logits[:, -1], None

    found = beam_search(step, prompt, 7, n_beams=4, cached=False)
    assert torch.equal(found.tokens.flatten(0, 1), expected)


@torch.no_grad()
def test_what_cannot_be_begun_is_refused(model):
    with pytest.raises(ValueError, match="at least 1 token"):
        beam_search(model.step, torch.zeros(2, 0).long(), 1, n_beams=2)
    few = beam_search(model.step, torch.zeros(2, 1).long(), 1, n_beams=9)
    assert few.tokens.shape == (2, N_TOKENS, 2)  # no more than there are


def test_no_texts_go_on_to_be_none(model):
    """An empty batch ended in PyTorch's error, of an ambiguous view."""
    found = beam_search(model.step, torch.ones(0, 1).long(), 3, n_beams=2)
    assert found.tokens.shape == (0, 2, 4) and found.scores.shape == (0, 2)


@pytest.mark.parametrize("default", [torch.float16, torch.float64])
def test_the_default_type_decides_nothing(default):
    """The scores' first zeros had it, and with it all that was added."""
    logits = torch.randn(5, 5)

    def step(tokens, cache):
        return logits[tokens[:, -1]], None

    prompt = torch.tensor([[0], [3]])
    expected = beam_search(step, prompt, 6, n_beams=3)
    torch.set_default_dtype(default)
    try:
        found = beam_search(step, prompt, 6, n_beams=3)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found.tokens, expected.tokens)
    assert found.scores.dtype == expected.scores.dtype == torch.float32


def test_logits_in_half_precision_are_summed_in_float32():
    """In bfloat16 the sums of 300 steps could not tell two texts apart."""
    logits = torch.tensor([0.0, 0.0625]).bfloat16()

    def step(tokens, cache):
        return logits.expand(len(tokens), 2), None

    found = beam_search(step, torch.zeros(1, 1).long(), 300, n_beams=2)
    wide = logits.double().log_softmax(dim=-1)
    assert found.scores.dtype == torch.float32
    assert (found.scores[0, 0] - 300 * wide[1]).abs() < 1e-3
    assert (
        found.tokens[0, 0, 1:].all()
        and found.scores[0, 0] > found.scores[0, 1]
    )
