"""Blocks against PyTorch's own, weights copied, in value and gradient."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from same import assert_same_layers
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.dot_product import fused_attention
from selfattn.layers import FeedForward, RMSNorm, SwiGLU, gelu
from selfattn.looking_inside import record_weights
from selfattn.masks import causal_mask, padding_mask, window_mask
from selfattn.multihead import KeysValues, MultiHeadAttention, pair_up
from selfattn.positions import alibi_bias, rope, rope_halves

BATCH, N, N_K, HEADS, D_FF = 2, 7, 11, 3, 17
D = HEADS * 4
BIASED = partial(MultiHeadAttention, projection_bias=True)


def tokens(n=N, batch=BATCH):
    return torch.randn(batch, n, D, dtype=torch.float64, requires_grad=True)


def stirred(module):
    """Every parameter at random: zeros and ones hide mistakes."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double()


def parts(ours, theirs):
    """Our parameters beside PyTorch's, each pair once."""
    decoder = isinstance(ours, DecoderBlock)
    pairs = pair_up(ours.attention, theirs.self_attn)
    if decoder:
        pairs += pair_up(ours.cross, theirs.multihead_attn)
    paths = [ours.add_norm_1, ours.add_norm_2]
    norms = [theirs.norm1, theirs.norm2]
    if decoder:
        paths, norms = [*paths, ours.add_norm_3], [*norms, theirs.norm3]
    for path, norm in zip(paths, norms, strict=True):
        pairs += [(path.norm.gain, norm.weight), (path.norm.shift, norm.bias)]
    for mine, other in (
        (ours.feed_forward.W_in, theirs.linear1),
        (ours.feed_forward.W_out, theirs.linear2),
    ):
        pairs += [(mine.weight, other.weight), (mine.bias, other.bias)]
    return pairs


def both(kind, pre, activation="relu"):
    """Ours and PyTorch's with the same weights."""
    torchs = {
        EncoderBlock: nn.TransformerEncoderLayer,
        DecoderBlock: nn.TransformerDecoderLayer,
    }[kind]
    theirs = stirred(
        torchs(
            D,
            HEADS,
            D_FF,
            dropout=0.0,
            activation=activation,
            batch_first=True,
            norm_first=pre,
        )
    )
    feed = FeedForward
    if activation == "gelu":
        feed = partial(FeedForward, activation=gelu)
    ours = kind(
        D, HEADS, D_FF, pre=pre, multihead=BIASED, feed_forward=feed
    ).double()
    pairs = parts(ours, theirs)
    copied = sum(mine.numel() for mine, _ in pairs)
    assert copied == sum(p.numel() for p in ours.parameters())
    for mine, other in pairs:
        mine.data.copy_(other)
    return ours, theirs


def assert_same_blocks(mine, other, inputs, ours, theirs):
    """In value, in the gradient of the inputs, and in that of each weight."""
    assert_same_layers(ours, theirs, mine, other, inputs, parts)
    for norm in (x for x in theirs.children() if hasattr(x, "eps")):
        assert norm.weight.abs().min() > 0  # its gradient now


pre_and_post = pytest.mark.parametrize("pre", [True, False])


@pre_and_post
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_the_encoder_block_is_pytorchs(pre, activation, masked, padded):
    ours, theirs = both(EncoderBlock, pre, activation)
    x = tokens()
    allowed = window_mask(N, N, 3) if masked else None
    real = padding_mask(torch.tensor([N, 4]), N) if padded else None
    mask = torch.ones(N, N, dtype=torch.bool)
    mask = mask if allowed is None else mask & allowed
    mask = mask if real is None else mask & real
    mine = ours(x, mask=mask)
    other = theirs(
        x,
        src_mask=None if allowed is None else ~allowed,
        src_key_padding_mask=None if real is None else ~real[:, 0, 0],
    )
    assert_same_blocks(mine, other, [x], ours, theirs)


@pre_and_post
@pytest.mark.parametrize("padded", [False, True])
def test_the_decoder_block_is_pytorchs(pre, padded):
    ours, theirs = both(DecoderBlock, pre)
    x, memory = tokens(), tokens(N_K)
    real = padding_mask(torch.tensor([N, 4]), N) if padded else None
    memory_real = padding_mask(torch.tensor([5, N_K]), N_K) if padded else None
    mine = ours(x, memory, mask=real, memory_mask=memory_real)
    other = theirs(
        x,
        memory,
        tgt_mask=~causal_mask(N, N),
        tgt_key_padding_mask=None if real is None else ~real[:, 0, 0],
        memory_key_padding_mask=None
        if memory_real is None
        else ~memory_real[:, 0, 0],
    )
    assert_same_blocks(mine, other, [x, memory], ours, theirs)
    open_ = ours(x, memory, causal=False)
    assert_close(open_, theirs(x, memory))


def test_padding_changes_no_bit_of_what_is_real():
    encoder = stirred(EncoderBlock(D, HEADS, D_FF, pre=True))
    decoder = stirred(DecoderBlock(D, HEADS, D_FF, pre=True))
    x, memory = tokens(), tokens(N_K)
    real = padding_mask(torch.tensor([4, 4]), N)
    changed = x.detach().clone()
    changed[:, 4:] = 9.0
    before = encoder(x, mask=real)[:, :4]
    assert torch.equal(encoder(changed, mask=real)[:, :4], before)
    memory_real = padding_mask(torch.tensor([5, 5]), N_K)
    other = memory.detach().clone()
    other[:, 5:] = 9.0
    before = decoder(x, memory, memory_mask=memory_real)
    after = decoder(x, other, memory_mask=memory_real)
    assert torch.equal(before, after)


VARIANTS = {
    "plain": {},
    "shared and rotated": {
        "multihead": partial(
            MultiHeadAttention, n_kv_heads=1, rotate=rope_halves
        ),
        "norm": RMSNorm,
        "feed_forward": SwiGLU,
    },
    "fused": {
        "multihead": partial(
            MultiHeadAttention, attend=fused_attention, rotate=rope
        )
    },
}
variant = pytest.mark.parametrize(
    "options", VARIANTS.values(), ids=VARIANTS.keys()
)


@pre_and_post
@variant
def test_token_by_token_is_all_at_once(pre, options, device):
    """What is kept grows, the rows of the whole come out one by one."""
    encoder = stirred(EncoderBlock(D, HEADS, D_FF, pre=pre, **options))
    decoder = stirred(DecoderBlock(D, HEADS, D_FF, pre=pre, **options))
    encoder, decoder = encoder.to(device), decoder.to(device)
    x, memory = tokens().to(device), tokens(N_K).to(device)
    bias = alibi_bias(HEADS, N, N, device=device)[None].double()
    across = decoder.cross.keys_values(memory)
    for block, seen in ((encoder, ()), (decoder, (across,))):
        told = () if not seen else (memory,)
        whole = block(x, *told, bias=bias, causal=True)
        rows, kept = [], None
        for i in range(N):
            new = x[:, i : i + 1]
            kept = block.remember(new, kept)
            row = bias[:, :, i : i + 1, : i + 1]
            rows.append(block(new, *seen, kept=kept, bias=row, causal=True))
        assert_close(torch.cat(rows, dim=1), whole)
        assert kept.k.shape == (BATCH, block.attention.n_kv_heads, N, 4)


@variant
def test_pieces_of_any_length_are_all_at_once_and_the_past_is_kept(options):
    block = stirred(EncoderBlock(D, HEADS, D_FF, pre=True, **options))
    x = tokens()
    whole = block(x, causal=True)
    first = block.remember(x[:, :3])
    before = [part.clone() for part in first]
    both_ways = [x[:, 3:], torch.randn_like(x[:, 3:])]
    for rest in both_ways:  # two ways to go on from one past
        made = block(rest, kept=block.remember(rest, first), causal=True)
        longer = torch.cat((x[:, :3], rest), dim=1)
        assert_close(made, block(longer, causal=True)[:, 3:])
    assert all(map(torch.equal, first, before))
    assert isinstance(first, KeysValues)
    assert_close(whole[:, :3], block(x[:, :3], causal=True))


def test_a_padded_past_stays_hidden():
    block = stirred(EncoderBlock(D, HEADS, D_FF, pre=True))
    x = tokens()
    real = torch.arange(N) >= torch.tensor([[2], [0]])
    mask = real[:, None, None]
    whole = block(x, mask=mask, causal=True)
    kept = block.remember(x[:, 5:], block.remember(x[:, :5]))
    new = block(x[:, 5:], kept=kept, mask=mask, causal=True)
    assert_close(new, whole[:, 5:])


def test_a_decoder_block_hides_the_future_unless_told_otherwise():
    block = stirred(DecoderBlock(D, HEADS, D_FF, pre=True))
    x, memory = tokens(), tokens(N_K)
    changed = x.detach().clone()
    changed[:, 4:] = 3.0
    before, after = block(x, memory), block(changed, memory)
    assert torch.equal(after[:, :4], before[:, :4])
    moved = block(changed, memory, causal=False) - block(
        x, memory, causal=False
    )
    assert moved[:, :4].abs().amax(-1).min() > 0
    told = block(x, memory.flip(0)) - before
    assert told.abs().amax(-1).min() > 0  # every token heard the memory


def test_dropout_drops_what_sublayers_made_in_training_alone():
    for kind, given in ((EncoderBlock, 1), (DecoderBlock, 2)):
        block = kind(D, HEADS, D_FF, pre=True, dropout=1.0).double()
        x = [tokens() for _ in range(given)]
        assert torch.equal(block(*x), x[0])
        assert not torch.equal(block.eval()(*x), x[0])


def test_each_part_is_made_by_what_is_handed_in():
    made = []

    class Watched(MultiHeadAttention):
        def __init__(self, *sizes):
            made.append(sizes)
            super().__init__(*sizes)

    block = DecoderBlock(
        D, HEADS, D_FF, pre=True, norm=nn.RMSNorm, multihead=Watched
    )
    assert made == [(D, HEADS), (D, HEADS)]
    norms = [m for m in block.modules() if isinstance(m, nn.RMSNorm)]
    assert [norm.weight.shape for norm in norms] == 3 * [(D,)]
    assert block.feed_forward.W_in.weight.shape == (D_FF, D)


def test_weights_are_recorded_also_with_a_cache():
    block = stirred(DecoderBlock(D, HEADS, D_FF, pre=True))
    x, memory = tokens(), tokens(N_K)
    with record_weights(block) as whole:
        block(x, memory)
    kept = block.remember(x[:, 6:], block.remember(x[:, :6]))
    with record_weights(block) as last:
        block(x[:, 6:], block.cross.keys_values(memory), kept=kept)
    assert [w.shape for w in last] == [(2, 3, 1, N), (2, 3, 1, N_K)]
    for a, b in zip(last, whole, strict=True):
        assert_close(a, b[:, :, 6:])


def test_what_the_layer_refuses_the_block_refuses():
    block = EncoderBlock(D, HEADS, D_FF, pre=True)
    with pytest.raises(ValueError, match="four axes"):
        block(torch.zeros(2, N, D), mask=torch.ones(2, N, N).bool())
    with pytest.raises(ValueError, match="n_heads must divide d_model"):
        EncoderBlock(D, 5, D_FF, pre=True)


def test_cross_attention_knows_no_distance_to_the_memory():
    """Rotated or not, what is told does not depend on the memory's order."""
    turning = partial(MultiHeadAttention, rotate=rope)
    block = stirred(DecoderBlock(D, HEADS, D_FF, pre=True, multihead=turning))
    x, memory = tokens(), tokens(N_K)
    assert_close(block(x, memory.flip(1)), block(x, memory))
    assert block.attention.rotate is rope


def test_a_block_learns():
    """Gradients reach every parameter of both blocks."""
    for kind, given in ((EncoderBlock, 1), (DecoderBlock, 2)):
        block = stirred(kind(D, HEADS, D_FF, pre=True))
        x = [tokens() for _ in range(given)]
        F.mse_loss(block(*x), torch.randn_like(x[0])).backward()
        for name, parameter in block.named_parameters():
            assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    "wrong",
    [
        {"multihead": MultiHeadAttention(8, 2)},
        {"feed_forward": FeedForward(8, 16)},
        {"multihead": lambda d, h: None},
        {"norm": nn.Identity()},
    ],
)
@pytest.mark.parametrize("block", [EncoderBlock, DecoderBlock])
def test_what_is_made_where_a_maker_belongs_is_named(block, wrong):
    [name] = wrong
    with pytest.raises(TypeError, match=f"{name} must make a module"):
        block(8, 2, 16, pre=True, **wrong)


def test_one_layer_for_both_looks_is_refused():
    """That the second does not rotate took the rotation off the first."""
    layer = MultiHeadAttention(8, 2)
    with pytest.raises(ValueError, match="multihead must make a new layer"):
        DecoderBlock(8, 2, 16, pre=True, multihead=lambda d, h: layer)
