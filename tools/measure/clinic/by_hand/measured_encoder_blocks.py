"""What encoder blocks make that are measured on, token by token.

Each function takes a block and what it is called with, by the same names.
"""

import torch

from tools.measure.clinic.by_hand.heads import (
    all_past,
    all_seen,
    each_head,
    heard,
    highway,
    slide,
    token_by_token,
)
from tools.measure.clinic.by_hand.pieces import (
    bent,
    levelled,
    piece,
    pixel,
    squashed,
    standard,
    turned,
    waves,
)


def patches_as_channels(m, patches, roi=None, pairs=None):
    """Neighbours are turned together; norms stand behind scaled sums."""
    b, n, _ = patches.shape
    seen = all_seen(patches, b, n, n)
    if roi is not None:
        seen = seen & roi[:, None]
    if pairs is not None:
        seen = seen & pairs
    ask, offer, tell = pixel(m.qk, 0, 2), pixel(m.qk, 1, 2), pixel(m.v)

    def by_place(x, place):
        """Each head's features, of which neighbours are turned."""
        halves = torch.cat((x[0::2], x[1::2]))
        return torch.stack(turned(halves, place, 100).chunk(2)).T.flatten()

    def say(text, i, row):
        x = patches[text]
        q = each_head(lambda part: by_place(part, i), ask(x[i]), 2)
        keys = [
            each_head(lambda part, j=j: by_place(part, j), offer(y), 2)
            for j, y in enumerate(x)
        ]
        told = pixel(m.proj)(heard(q, keys, [tell(y) for y in x], row, 2))
        y = levelled(x[i] + m.scale[0, :, 0] * told, m.norm_attn)
        fed = pixel(m.ffn[2])(bent(pixel(m.ffn[0])(y)))
        return levelled(y + m.scale[1, :, 0] * fed, m.norm_ffn)

    return token_by_token(say, seen)


def carried(carry, old, new):
    """A gated unit: what is old, replaced as far as it is let."""
    r, z, h = piece(carry.old)(old).chunk(3)
    r_new, z_new, h_new = piece(carry.new)(new).chunk(3)
    update = squashed(z + z_new - 1)
    fresh = torch.tanh(squashed(r + r_new) * h + h_new)
    return (1 - update) * old + update * fresh


def gated_baskets_of_maxouts(m, x, bias=None):
    """A unit carries each sublayer in; a norm stands behind it."""
    n, b, _ = x.shape
    (baskets, carry, norm), (maxout, carry_fed, norm_fed) = m.layers
    ask, offer, tell, join = (piece(linear) for linear in baskets.maps)
    grow, shrink = piece(maxout.grow), piece(maxout.shrink)

    def say(text, i, row):
        mine = x[:, text]
        keys, values = [offer(y) for y in mine], [tell(y) for y in mine]
        added = None if bias is None else bias[i]
        said = join(heard(ask(mine[i]), keys, values, row, 6, added=added))
        y = levelled(carried(carry, mine[i], said), norm)
        grown = grow(y)
        fed = [max(grown[f : f + 3]) for f in range(0, len(grown), 3)]
        fed = shrink(torch.stack(fed))
        return levelled(carried(carry_fed, y, fed), norm_fed)

    return token_by_token(say, all_seen(x, b, n, n)).transpose(0, 1)


def film(m, coverage, text):
    """By what coverage stretches and shifts: nothing if it is not told."""
    if coverage is None:
        return 0, 0, 0, 0
    return piece(m.film)(coverage[0, text]).chunk(4)


def reads_of_known_coverage(
    m, reads, lengths=None, coverage=None, banned=None
):
    """Neighbours are heard by a convolution too, unless pairs are told."""
    n, b, _ = reads.shape
    real = torch.ones(b, n, dtype=torch.bool, device=reads.device)
    if lengths is not None:
        real = torch.arange(n, device=reads.device) < lengths[:, None]
    seen = all_seen(reads, b, n, n) & real[:, None]
    if banned is not None:
        seen = seen & ~banned
    offer, tell = piece(m.w_kv, 0, 2), piece(m.w_kv, 1, 2)
    grow, shrink = piece(m.bottle[0]), piece(m.bottle[2])

    def say(text, i, row):
        x = reads[:, text]
        scale, shift, scale_fed, shift_fed = film(m, coverage, text)
        h = [standard(y) * (1 + scale) + shift for y in x]
        keys, values = [offer(y) for y in h], [tell(y) for y in h]
        told = piece(m.w_o)(heard(piece(m.w_q)(h[i]), keys, values, row, 2))
        if banned is None:
            there = [y * r for y, r in zip(h, real[text], strict=True)]
            told = told + slide(m.place, there, i, -2)
        y = x[i] + m.gamma_a * told
        fed = shrink(
            torch.tanh(grow(standard(y) * (1 + scale_fed) + shift_fed))
        )
        return y + m.gamma_f * fed

    return token_by_token(say, seen).transpose(0, 1)


def highways_for_a_phone(m, src, src_mask=None, src_key_padding_mask=None):
    """Only queries and keys know places; gates read what is not normed."""
    n, b, width = src.shape
    seen = all_seen(src, b, n, n)
    if src_mask is not None:
        seen = seen & ~src_mask
    if src_key_padding_mask is not None:
        seen = seen & ~src_key_padding_mask[:, None]
    # of all features, sines come first
    places = [
        waves(i, width).view(-1, 2).T.flatten().to(src) for i in range(n)
    ]

    def say(text, i, row):
        x = [levelled(y, m.norm1) for y in src[:, text]]
        placed = [y + place for y, place in zip(x, places, strict=True)]
        q = piece(m.q_lin)(placed[i])
        keys = [piece(m.k_lin)(y) for y in placed]
        values = [piece(m.v_lin)(y) for y in x]
        told = piece(m.out_lin)(heard(q, keys, values, row, 3))
        y = highway(m.carry1, src[i, text], told)
        grown = piece(m.linear1)(levelled(y, m.norm2)).clamp(min=0) ** 2
        return highway(m.carry2, y, piece(m.linear2)(grown))

    return token_by_token(say, seen).transpose(0, 1)


def past_by_kernel_and_attention(m, padding_mask, inputs):
    """Two sublayers read one norm: attention, and three tokens back."""
    b, n, _ = inputs.shape
    seen = all_past(inputs, b, n) & ~padding_mask[:, None]
    ask, offer, tell, join = (
        piece(linear)
        for linear in (
            m.query_dense,
            m.key_dense,
            m.value_dense,
            m.output_dense,
        )
    )

    def say(text, i, row):
        x = [levelled(y, m.layernorm, 1e-3) for y in inputs[text]]
        keys, values = [offer(y) for y in x], [tell(y) for y in x]
        attended = join(heard(ask(x[i]), keys, values, row, 4))
        hidden = padding_mask[text]
        real = [y * ~h for y, h in zip(x, hidden, strict=True)]
        kernel = slide(m.convolution.conv, real, i, -2).clamp(min=0)
        return inputs[text, i] + attended + piece(m.convolution.dense)(kernel)

    return token_by_token(say, seen)


def input_and_answer_joined(m, xs, masks=None):
    """A map of what was asked and what was heard is added."""
    b, n, _ = xs.shape
    seen = all_seen(xs, b, n, n)
    seen = seen if masks is None else seen & masks
    layer = m.self_attn

    def say(text, i, row):
        x = [levelled(y, m.norm_mha) for y in xs[text]]
        q = piece(layer.linear_q)(x[i])
        keys = [piece(layer.linear_k)(y) for y in x]
        values = [piece(layer.linear_v)(y) for y in x]
        told = piece(layer.linear_out)(heard(q, keys, values, row, 3))
        y = xs[text, i] + piece(m.join)(torch.cat((x[i], told)))
        grown = piece(m.feed_forward[0])(levelled(y, m.norm_ff))
        grown = grown * (grown + 3).clamp(0, 6) / 6
        return y + piece(m.feed_forward[3])(grown)

    return token_by_token(say, seen)


BLOCKS = {
    "encoder-block/gated_baskets_of_maxouts": gated_baskets_of_maxouts,
    "encoder-block/highways_for_a_phone": highways_for_a_phone,
    "encoder-block/input_and_answer_joined": input_and_answer_joined,
    "encoder-block/past_by_kernel_and_attention": past_by_kernel_and_attention,
    "encoder-block/patches_as_channels": patches_as_channels,
    "encoder-block/reads_of_known_coverage": reads_of_known_coverage,
}
