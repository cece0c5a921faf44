"""Choosing the next token, by hand and by counting."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from selfattn.models import complete, greedy, keep_top_k, keep_top_p, sample
from selfattn.origins import AdditiveAttention, Translator

P = torch.tensor([0.5, 0.25, 0.15, 0.1])


def shares(**options):
    """How often each of four tokens is drawn, of 20,000."""
    generator = torch.Generator().manual_seed(0)
    logits = P.log().expand(2, 10_000, -1)
    drawn = sample(logits, generator=generator, **options)
    assert drawn.shape == (2, 10_000)
    return torch.bincount(drawn.flatten(), minlength=4) / 20_000


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.5, 0.25, 0.15, 0.1]),
        ({"top_k": 2}, [2 / 3, 1 / 3, 0, 0]),
        ({"top_p": 0.6}, [2 / 3, 1 / 3, 0, 0]),
        ({"top_p": 0.8}, [5 / 9, 2.5 / 9, 1.5 / 9, 0]),
        ({"temperature": 0.5}, [0.25, 0.0625, 0.0225, 0.01]),
        # Of the two that are left, the first makes up 2/3 already.
        ({"top_k": 2, "top_p": 0.66}, [1, 0, 0, 0]),
        # At temperature 1 two would be needed; at 1/2 the first has 0.72.
        ({"temperature": 0.5, "top_p": 0.7}, [1, 0, 0, 0]),
        ({"temperature": 1e6}, [0.25, 0.25, 0.25, 0.25]),
    ],
    ids=str,
)
def test_tokens_are_drawn_as_often_as_they_should(options, expected):
    """Within 4 deviations of a share of 1/2 among 20,000 draws, 0.014."""
    expected = torch.tensor(expected) / sum(expected)
    drawn = shares(**options)
    assert_close(drawn, expected, atol=0.0142, rtol=0)
    assert not drawn[expected == 0].any()


def test_one_generator_draws_the_same_again():
    logits = torch.randn(5, 7, 11)
    first, again = (
        sample(logits, generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    )
    assert torch.equal(first, again)
    assert first.shape == (5, 7)
    assert sample(logits[0, 0]).shape == ()


def test_greedy_is_what_the_others_come_to():
    logits = torch.randn(5, 11)
    expected = logits.argmax(dim=-1)
    assert torch.equal(greedy(logits), expected)
    assert torch.equal(sample(logits, top_k=1), expected)
    assert torch.equal(sample(logits, top_p=1e-6), expected)
    assert torch.equal(sample(logits, temperature=1e-4), expected)


def test_equals_are_kept_together_and_the_given_logits_are_left_alone():
    logits = torch.tensor([[2.0, 1.0, 2.0, 0.0]])
    before = logits.clone()
    assert keep_top_k(logits, 1).isfinite().tolist() == [[1, 0, 1, 0]]
    keep_top_p(logits, 0.5)
    sample(logits, temperature=2.0, top_k=1, top_p=0.5)
    assert torch.equal(logits, before)


def test_top_p_keeps_the_fewest_that_reach_it():
    """And the token that crosses p is among them."""
    for p in (0.05, 0.5, 0.73, 0.999):
        logits = torch.randn(40, 17)
        weights = logits.softmax(dim=-1)
        kept = keep_top_p(logits, p).isfinite()
        for weight, keep in zip(weights, kept, strict=True):
            ordered = sorted(weight[keep].tolist())
            assert sum(ordered) >= p - 1e-6
            assert sum(ordered[1:]) < p  # without the least it falls short
            left_out = weight[~keep]
            assert len(left_out) == 0 or left_out.max() <= ordered[0]


@pytest.mark.parametrize("number", [0.0, -1.0])
def test_temperatures_that_are_none_are_refused(number):
    with pytest.raises(ValueError, match=r"larger than 0 \(use `greedy`"):
        sample(P, temperature=number)


def test_a_temperature_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="temperature must be a number other"):
        sample(P, temperature=float("nan"))


def test_keeping_nothing_is_refused():
    with pytest.raises(ValueError, match="must be kept, but k=0"):
        keep_top_k(P, 0)
    for p in (0.0, -0.5, 1.5):
        with pytest.raises(ValueError, match=f"up to 1, but p={p}"):
            keep_top_p(P, p)


def counting(tokens, cache):
    """The next number of ten; it writes down what it is given."""
    said = [] if cache is None else cache
    return torch.eye(10)[(tokens[:, -1] + 1) % 10], [*said, tokens.tolist()]


def test_with_a_cache_it_is_given_what_is_new_and_without_all():
    seen = []

    def watched(tokens, cache):
        seen.append((tokens.tolist(), cache))
        return counting(tokens, cache)

    prompt = torch.tensor([[3, 4]])
    text = complete(watched, prompt, 3)
    assert text.tolist() == [[3, 4, 5, 6, 7]]
    assert seen == [
        ([[3, 4]], None),
        ([[5]], [[[3, 4]]]),
        ([[6]], [[[3, 4]], [[5]]]),
    ]
    seen.clear()
    assert torch.equal(complete(watched, prompt, 3, cached=False), text)
    assert seen == [
        ([[3, 4]], None),
        ([[3, 4, 5]], None),
        ([[3, 4, 5, 6]], None),
    ]
    assert prompt.tolist() == [[3, 4]]


def test_a_text_that_has_ended_waits_for_the_others():
    prompt = torch.tensor([[6], [2], [8]])
    text = complete(counting, prompt, 7, stop=9)
    assert text.tolist() == [
        [6, 7, 8, 9, 9, 9, 9, 9],
        [2, 3, 4, 5, 6, 7, 8, 9],
        [8, 9, 9, 9, 9, 9, 9, 9],
    ]
    early = complete(counting, prompt[[0, 2]], 7, stop=9)
    assert early.tolist() == [[6, 7, 8, 9], [8, 9, 9, 9]]
    ends_in_prompt = complete(counting, torch.tensor([[9]]), 2, stop=9)
    assert ends_in_prompt.tolist() == [[9, 0, 1]]  # only what is new ends it


def test_a_choice_is_made_of_logits():
    text = complete(
        counting, torch.tensor([[3]]), 2, choose=lambda x: x.argmin(dim=-1)
    )
    assert text.tolist() == [[3, 0, 0]]
    drawn = complete(
        lambda tokens, cache: (P.log().expand(2000, -1), None),
        torch.zeros(2000, 1, dtype=torch.long),
        1,
        choose=partial(sample, top_k=2),
    )
    share = (drawn[:, 1] == 0).float().mean().item()
    assert share == pytest.approx(2 / 3, abs=0.05)  # 4.7 deviations


def test_nothing_is_added_or_there_must_be_a_prompt():
    prompt = torch.tensor([[3, 4]])
    assert torch.equal(complete(counting, prompt, 0), prompt)
    with pytest.raises(ValueError, match=r"at least 1 token .*\(1, 0\)"):
        complete(counting, prompt[:, :0], 3)


def test_no_gradients_are_kept():
    weight = torch.randn(10, 10, requires_grad=True)

    def step(tokens, cache):
        logits = weight[tokens[:, -1]]
        assert not logits.requires_grad
        return logits, None

    complete(step, torch.tensor([[1]]), 2)


def test_a_recurrent_translator_goes_on_too():
    """The same loop for the model in which attention began."""
    model = Translator(11, 13, 8, attend=AdditiveAttention(8, 8, 5)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    source = torch.randint(11, (3, 7))
    step = partial(model.step, memory=model.read(source))
    begun = torch.zeros(3, 1, dtype=torch.long)
    text = complete(step, begun, 9)
    assert torch.equal(complete(step, begun, 9, cached=False), text)
    logits = model(source, text[:, :-1])
    assert torch.equal(logits.argmax(dim=-1), text[:, 1:])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_no_token_is_drawn_from_what_is_no_probability(bad):
    """PyTorch says "probability tensor contains", and no argument's name."""
    logits = torch.zeros(2, 3)
    logits[1] = bad
    with pytest.raises(ValueError, match=r"but a row .*logits is \(2, 3\)"):
        sample(logits)


def test_there_must_be_a_token_to_choose():
    for choose in (greedy, sample):
        with pytest.raises(ValueError, match=r"choose, but logits is \(2, 0"):
            choose(torch.zeros(2, 0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_top_p_keeps_in_half_precision_what_it_keeps_of_these_numbers(dtype):
    """Probabilities were added up in bfloat16, and came to p too soon."""
    logits = torch.randn(40, 300).to(dtype)
    kept = keep_top_p(logits, 0.9).isfinite()
    assert torch.equal(kept, keep_top_p(logits.double(), 0.9).isfinite())


def test_all_tokens_make_up_one():
    """Rounded sums came to 1 before the last tokens, which were dropped."""
    logits = torch.randn(3, 50_000)
    assert torch.equal(keep_top_p(logits, 1.0), logits)
