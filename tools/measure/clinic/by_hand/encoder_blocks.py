"""What some sound encoder blocks make, token by token.

Each function takes a block and what it is called with, by the same names.
"""

import math

import torch

from tools.measure.clinic.by_hand.heads import (
    all_past,
    all_seen,
    each_head,
    heard,
    slide,
    swished,
    token_by_token,
)
from tools.measure.clinic.by_hand.pieces import (
    bent,
    levelled,
    of_size_one,
    piece,
    pixel,
    standard,
    turned,
    turned_by,
)


def batch_norms_for_routes(m, h, mask=None):
    """Each head has its own matrices; features are normed by what is kept."""
    b, n, _ = h.shape
    seen = all_seen(h, b, n, n)
    seen = seen if mask is None else seen & ~mask
    layer = m.mha

    def kept(x, norm):
        norm = norm.normalizer
        spread = (norm.running_var + 1e-5) ** 0.5
        return (x - norm.running_mean) / spread * norm.weight + norm.bias

    def say(text, i, row):
        y = h[text, i]
        for head in range(3):
            q = h[text, i] @ layer.W_query[head]
            keys = [x @ layer.W_key[head] for x in h[text]]
            values = [x @ layer.W_val[head] for x in h[text]]
            y = y + heard(q, keys, values, row, 1) @ layer.W_out[head]
        y = kept(y, m.bn1)
        fed = piece(m.ff[2])(piece(m.ff[0])(y).clamp(min=0))
        return kept(y + fed, m.bn2)

    return token_by_token(say, seen)


def deep_norms(m, x, attn_mask=None):
    """Before a norm, what was there counts as the fourth root of twelve."""
    b, n, _ = x.shape
    seen = all_seen(x, b, n, n)
    seen = seen if attn_mask is None else seen & attn_mask
    ask, offer = piece(m.attn.to_qk, 0, 2), piece(m.attn.to_qk, 1, 2)
    tell, join = piece(m.attn.to_v), piece(m.attn.to_out)
    grow, shrink = piece(m.ffn[0]), piece(m.ffn[2])

    def say(text, i, row):
        keys, values = ([f(y) for y in x[text]] for f in (offer, tell))
        told = join(heard(ask(x[text, i]), keys, values, row, 2))
        y = levelled(12**0.25 * x[text, i] + told, m.attn_norm)
        return levelled(12**0.25 * y + shrink(bent(grow(y))), m.ffn_norm)

    return token_by_token(say, seen)


def norm_of_what_is_added(m, x):
    """What is added has a size of one; so have all queries and keys."""
    b, n, _ = x.shape
    layer, network = m.attention, m.feed_forward

    def sized(y, norm):
        return of_size_one(y, 1e-6) * norm.weight

    def placed(y, place):
        return each_head(lambda part: turned(part, place, 500_000), y, 4)

    def say(text, i, row):
        q = placed(sized(piece(layer.w_q)(x[text, i]), layer.q_norm), i)
        keys = [
            placed(sized(piece(layer.w_k)(y), layer.k_norm), j)
            for j, y in enumerate(x[text])
        ]
        values = [piece(layer.w_v)(y) for y in x[text]]
        told = piece(layer.w_out)(heard(q, keys, values, row, 4))
        y = x[text, i] + sized(told, m.attention_norm)
        fed = swished(piece(network.w1)(y)) * piece(network.w3)(y)
        return y + sized(piece(network.w2)(fed), m.feed_forward_norm)

    return token_by_token(say, all_past(x, b, n))


def mixed_with_the_first_embedding(m, x, x0):
    """An embedding comes back in; of four pairs, two are turned backwards."""
    b, n, _ = x.shape
    eps = torch.finfo(x.dtype).eps
    keep, again = m.lambdas
    mixed = keep * x + again * x0
    ask, offer, tell = (piece(linear) for linear in m.attn.qkv)

    def placed(y, place):
        angles = [-place, -place / 1024, 0, 0]
        return each_head(
            lambda part: turned_by(of_size_one(part, eps), angles), y, 2
        )

    def say(text, i, row):
        h = [of_size_one(y, eps) for y in mixed[text]]
        keys = [placed(offer(y), j) for j, y in enumerate(h)]
        values = [tell(y) for y in h]
        told = heard(placed(ask(h[i]), i), keys, values, row, 2)
        y = mixed[text, i] + piece(m.attn.proj)(told)
        grown = piece(m.mlp.fc)(of_size_one(y, eps)).clamp(min=0) ** 2
        return y + piece(m.mlp.proj)(grown)

    return token_by_token(say, all_past(x, b, n))


def convolutional_network(m, enc_input, mask=None):
    """The network hears neighbours; what is no token is zero before it."""
    b, n, _ = enc_input.shape
    real = all_seen(enc_input, b, 1, n)[:, 0]
    real = real if mask is None else ~mask
    layer, network = m.slf_attn, m.pos_ffn

    def listen(text, i, row):
        x = enc_input[text]
        keys = [piece(layer.w_ks)(y) for y in x]
        values = [piece(layer.w_vs)(y) for y in x]
        told = heard(piece(layer.w_qs)(x[i]), keys, values, row, 2, math.nan)
        y = levelled(piece(layer.fc)(told) + x[i], layer.layer_norm)
        return y if real[text, i] else torch.zeros_like(y)

    listened = token_by_token(listen, real[:, None].expand(-1, n, -1))

    def say(text, i, _):
        x = listened[text]
        hidden = slide(network.w_1, x, i, -1).clamp(min=0)
        y = levelled(pixel(network.w_2)(hidden) + x[i], network.layer_norm)
        return y if real[text, i] else torch.zeros_like(y)

    return token_by_token(say, all_seen(enc_input, b, n, n))


def modulated_by_a_condition(m, x, c=None):
    """A condition shifts and stretches bare norms, and gates sublayers."""
    b, n, _ = x.shape
    ask, offer, tell = (piece(m.attn.qkv, part, 3) for part in range(3))
    grow, shrink = piece(m.mlp[0]), piece(m.mlp[2])

    def bend(y):
        """As `bent`, nearly: with a tanh."""
        steep = (2 / math.pi) ** 0.5 * (y + 0.044715 * y**3)
        return y * (1 + torch.tanh(steep)) / 2

    def say(text, i, row):
        told = piece(m.modulation[1])
        six = m.modulation[1].bias if c is None else told(swished(c[text]))
        shift, scale, gate, shift_fed, scale_fed, gate_fed = six.chunk(6)
        h = [standard(y) * (1 + scale) + shift for y in x[text]]
        keys, values = ([f(y) for y in h] for f in (offer, tell))
        said = piece(m.attn.proj)(heard(ask(h[i]), keys, values, row, 3))
        y = x[text, i] + gate * said
        fed = shrink(bend(grow(standard(y) * (1 + scale_fed) + shift_fed)))
        return y + gate_fed * fed

    return token_by_token(say, all_seen(x, b, n, n))


def scaled_sublayers(m, x):
    """Each feature of what is added has a factor."""
    b, n, _ = x.shape
    ask, offer, tell = (piece(m.attn.qkv, part, 3) for part in range(3))

    def say(text, i, row):
        h = [levelled(y, m.norm1, 1e-6) for y in x[text]]
        keys, values = ([f(y) for y in h] for f in (offer, tell))
        told = piece(m.attn.proj)(heard(ask(h[i]), keys, values, row, 4))
        y = x[text, i] + m.ls1.gamma * told
        grown = bent(piece(m.mlp.fc1)(levelled(y, m.norm2, 1e-6)))
        return y + m.ls2.gamma * piece(m.mlp.fc2)(grown)

    return token_by_token(say, all_seen(x, b, n, n))


def macaron(m, x, mask=None):
    """Half of a network, attention, half of another one, and a norm."""
    b, n, _ = x.shape
    seen = all_seen(x, b, n, n)
    seen = seen if mask is None else seen & ~mask[:, None]
    layer = m.attn

    def half_step(network, y):
        norm, grow, _, _, shrink, _ = network.sequential
        fed = piece(shrink)(swished(piece(grow)(levelled(y, norm))))
        return y + fed / 2

    def say(text, i, row):
        steps = [half_step(m.ff1, y) for y in x[text]]
        h = [levelled(y, layer.layer_norm) for y in steps]
        keys = [piece(layer.key_proj)(y) for y in h]
        values = [piece(layer.value_proj)(y) for y in h]
        q = piece(layer.query_proj)(h[i])
        told = heard(q, keys, values, row, 3, math.nan)
        y = steps[i] + piece(layer.out_proj)(told)
        return levelled(half_step(m.ff2, y), m.norm)

    return token_by_token(say, seen)


BLOCKS = {
    "encoder-block/batch_norms_for_routes": batch_norms_for_routes,
    "encoder-block/convolutional_network": convolutional_network,
    "encoder-block/deep_norms": deep_norms,
    "encoder-block/macaron": macaron,
    "encoder-block/mixed_with_the_first_embedding": (
        mixed_with_the_first_embedding
    ),
    "encoder-block/modulated_by_a_condition": modulated_by_a_condition,
    "encoder-block/norm_of_what_is_added": norm_of_what_is_added,
    "encoder-block/scaled_sublayers": scaled_sublayers,
}
