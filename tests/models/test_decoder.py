"""The decoder: the cache changes nothing, whatever tells the positions."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import EncoderBlock
from selfattn.dot_product import fused_attention
from selfattn.layers import LayerNorm, RMSNorm, SwiGLU
from selfattn.masks import padding_mask
from selfattn.models import Decoder, Embedding, complete
from selfattn.multihead import KeysValues, MultiHeadAttention
from selfattn.positions import (
    LearnedPositions,
    T5Bias,
    alibi_bias,
    rope,
    sinusoidal,
)

BATCH, N, N_TOKENS, D, HEADS, D_FF = 2, 7, 23, 24, 6, 11

KINDS = {
    "learned": {"positions": LearnedPositions(13, D)},
    "sinusoidal": {"positions": partial(sinusoidal, d_model=D)},
    "rope": {
        "multihead": partial(MultiHeadAttention, n_kv_heads=2, rotate=rope),
        "norm": RMSNorm,
        "feed_forward": SwiGLU,
    },
    "t5": {"relative": T5Bias(HEADS, causal=True, n_buckets=6)},
    "alibi": {
        "relative": partial(alibi_bias, HEADS),
        "multihead": partial(MultiHeadAttention, attend=fused_attention),
    },
    "post": {"positions": LearnedPositions(13, D), "pre": False},
}
kinds = pytest.mark.parametrize("kind", KINDS)


def decoder(kind="learned", **more):
    options = {"pre": True} | KINDS[kind]
    embed = Embedding(N_TOKENS, D, positions=options.pop("positions", None))
    relative = options.pop("relative", None)
    blocks = [EncoderBlock(D, HEADS, D_FF, **options) for _ in range(2)]
    model = Decoder(
        embed, blocks, norm=LayerNorm(D), relative=relative, **more
    )
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.double()


def tokens(n=N):
    return torch.randint(N_TOKENS, (BATCH, n))


@kinds
def test_token_by_token_is_all_at_once(kind, device):
    model, text = decoder(kind).to(device), tokens().to(device)
    logits, cache = [], None
    for i in range(N):
        one, cache = model.step(text[:, i : i + 1], cache)
        logits.append(one)
    whole = model(text)
    assert_close(torch.stack(logits, dim=1), whole)
    assert [kept.k.shape[-2] for kept in cache] == [N, N]


@kinds
def test_a_prompt_at_once_and_the_rest_in_pieces(kind):
    model, text = decoder(kind), tokens()
    whole = model(text)
    first, cache = model.step(text[:, :4])
    assert_close(first, whole[:, 3])
    before = [part.clone() for kept in cache for part in kept]
    last, _ = model.step(text[:, 4:], cache)
    assert_close(last, whole[:, -1])
    # From the same cache another way, as if it had never been used.
    other = torch.cat((text[:, :4], tokens(2)), dim=1)
    last, _ = model.step(other[:, 4:], cache)
    assert_close(last, model(other)[:, -1])
    after = [part for kept in cache for part in kept]
    assert all(map(torch.equal, after, before))


@kinds
def test_positions_are_told(kind):
    """The same tokens in another order say something else at the end."""
    model, text = decoder(kind), tokens()
    text[:, :3] = torch.tensor([3, 1, 4])
    other = text.clone()
    other[:, :3] = torch.tensor([4, 1, 3])
    moved = (model(other) - model(text))[:, -1]
    assert moved.abs().amax() > 1e-3


def test_it_is_its_parts_one_after_another():
    model, text = decoder(), tokens()
    x = model.embed(text)
    mask = padding_mask(torch.tensor([N, 4]), N)
    for block in model.blocks:
        x = block(x, mask=mask, causal=True)
    assert_close(
        model(text, mask=mask), model.norm(x) @ model.embed.tokens.weight.T
    )


def test_the_future_changes_no_bit_of_the_past():
    model, text = decoder(), tokens()
    before = model(text)
    text[:, 4:] = 0
    after = model(text)
    assert torch.equal(after[:, :4], before[:, :4])
    assert (after != before)[:, 4:].any(dim=-1).all()


def test_scores_are_tied_to_the_embedding_or_not():
    tied, own = decoder(), decoder(tied=False)
    assert tied.head.weight is tied.embed.tokens.weight
    assert own.head.weight is not own.embed.tokens.weight
    n_tied, n_own = (
        sum(p.numel() for p in model.parameters()) for model in (tied, own)
    )
    assert n_own - n_tied == N_TOKENS * D


def test_past_the_last_learned_position_it_stops():
    model = decoder()
    with pytest.raises(ValueError, match="offset=13 and n=1"):
        complete(model.step, tokens(), 8)
    assert complete(model.step, tokens(), 7).shape == (BATCH, 14)


def test_it_learns_to_count_and_goes_on_counting():
    """Sequences that step by 1, 2 or 3, modulo 11: told by two tokens."""
    torch.manual_seed(1)
    blocks = [EncoderBlock(32, 4, 64, pre=True) for _ in range(2)]
    embed = Embedding(11, 32, positions=LearnedPositions(12, 32))
    model = Decoder(embed, blocks, norm=LayerNorm(32))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    places = torch.arange(12)
    for _ in range(120):
        start, by = torch.randint(11, (48, 1)), torch.randint(1, 4, (48, 1))
        text = (start + by * places) % 11
        logits = model(text[:, :-1])[:, 1:]
        loss = F.cross_entropy(logits.flatten(0, 1), text[:, 2:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.1  # of ln 11 = 2.4
    prompt = torch.tensor([[5, 7], [9, 10], [2, 5]])
    by = (prompt[:, 1:] - prompt[:, :1]) % 11
    expected = (prompt[:, :1] + by * places[:10]) % 11
    assert torch.equal(complete(model.step, prompt, 8), expected)


@pytest.mark.parametrize(
    "bend",
    [
        lambda cache: cache[:1],
        lambda cache: [*cache, cache[0]],
        lambda cache: [],
        lambda cache: [None, None],
        lambda cache: [cache[0].k, cache[1].k],
        lambda cache: [
            cache[0],
            KeysValues(cache[1].k[:, :, 1:], cache[1].v[:, :, 1:]),
        ],
    ],
    ids=["less", "more", "none", "None", "tensors", "unequal"],
)
def test_a_cache_that_is_none_of_this_model_is_refused(bend, unchecked):
    """One block more was ignored; unequal lengths put tokens elsewhere."""
    blocks = [EncoderBlock(8, 2, 12, pre=True) for _ in range(2)]
    model = Decoder(Embedding(11, 8), blocks)
    tokens = torch.tensor([[3, 1, 4]])
    _, cache = model.step(tokens)
    with pytest.raises(ValueError, match="KeysValues of each block, of equal"):
        model.step(tokens[:, :1], bend(cache))


def test_an_unknown_token_is_named():
    """PyTorch says "index out of range in self", and not which."""
    model = Decoder(Embedding(11, 8), [EncoderBlock(8, 2, 12, pre=True)])
    with pytest.raises(ValueError, match=r"0 to 10, but they go from -1 to 3"):
        model(torch.tensor([[3, -1]]))
    small = torch.tensor([[3, 1]], dtype=torch.int32)
    assert torch.equal(model(small), model(small.long()))


def test_after_no_token_nothing_comes_next():
    with pytest.raises(ValueError, match=r"at least 1 token.*\(2, 0\)"):
        decoder().step(tokens(0))
