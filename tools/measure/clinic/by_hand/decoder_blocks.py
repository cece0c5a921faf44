"""What some sound decoder blocks make, token by token.

Each function takes a block and what it is called with, by the same names.
"""

import math

import torch

from tools.measure.clinic.by_hand.heads import (
    all_past,
    all_seen,
    asked,
    heard,
    highway,
    swished,
    token_by_token,
)
from tools.measure.clinic.by_hand.pieces import (
    bent,
    levelled,
    piece,
    squashed,
)


def memory_first_through_a_gate(m, x, media, media_mask=None):
    """What was seen and a network come in by gates, before the past."""
    b, n, _ = x.shape
    seen = all_seen(x, b, n, media.shape[1])
    seen = seen if media_mask is None else seen & media_mask
    ask, join = piece(m.attn.to_q), piece(m.attn.to_out)
    offer, tell = piece(m.attn.to_kv, 0, 2), piece(m.attn.to_kv, 1, 2)

    def network(layers, y):
        """Its norm comes first."""
        return piece(layers[3])(bent(piece(layers[1])(levelled(y, layers[0]))))

    def look(text, i, row):
        q = ask(levelled(x[text, i], m.attn.norm))
        keys, values = ([f(y) for y in media[text]] for f in (offer, tell))
        told = join(heard(q, keys, values, row, 2, math.nan))
        y = x[text, i] + told * torch.tanh(m.attn_gate)
        return y + network(m.ff, y) * torch.tanh(m.ff_gate)

    looked = token_by_token(look, seen)

    def say(text, i, row):
        h = [levelled(y, m.lm_norm) for y in looked[text]]
        y = looked[text, i] + asked(m.lm_attn, h[i], h, row, 2)
        return y + network(m.lm_ff, y)

    return token_by_token(say, all_past(x, b, n))


def factors_through_a_gate(m, factors, prices):
    """Gates let in what history and factors say; a norm behind each."""
    b, n, _ = prices.shape

    def let_in(gate, old, new):
        share = squashed(piece(gate.open)(torch.cat((old, new))))
        return levelled(old + share * new, gate.norm)

    def ask(layer, x, others, row):
        keys = [piece(layer.kv, 0, 2)(y) for y in others]
        values = [piece(layer.kv, 1, 2)(y) for y in others]
        return piece(layer.o)(heard(piece(layer.q)(x), keys, values, row, 2))

    def say(text, i, row):
        y = prices[text, i]
        y = let_in(m.gates[0], y, ask(m.history, y, prices[text], row))
        everyone = torch.ones_like(factors[text, :, 0]).bool()
        told = ask(m.exposure, y, factors[text], everyone)
        y = let_in(m.gates[1], y, told)
        fed = swished(piece(m.wide, 0, 2)(y)) * piece(m.wide, 1, 2)(y)
        return let_in(m.gates[2], y, piece(m.narrow)(fed))

    return token_by_token(say, all_past(prices, b, n))


def gates_for_every_sublayer(m, target, source, source_ignore=None):
    """What a gate lets in of each sublayer, it takes off what was there."""
    b, n, _ = target.shape
    real = all_seen(source, b, 1, source.shape[1])[:, 0]
    real = real if source_ignore is None else ~source_ignore

    def say(text, i, row):
        h = [levelled(y, m.norms[0]) for y in target[text]]
        told = asked(m.past, h[i], h, row, 3)
        y = highway(m.gates[0].gate, target[text, i], told)
        h = levelled(y, m.norms[1])
        told = asked(m.source, h, source[text], real[text], 3)
        y = highway(m.gates[1].gate, y, told)
        h = piece(m.network[0])(levelled(y, m.norms[2]))
        h = torch.where(h > 0, h, torch.exp(h) - 1)
        return highway(m.gates[2].gate, y, piece(m.network[2])(h))

    return token_by_token(say, all_past(target, b, n))


def memory_and_past_in_one_softmax(m, x, memory, real=None):
    """One softmax over all that is real of a memory, then over the past."""
    b, n, _ = x.shape
    seen = all_seen(x, b, n, memory.shape[1])
    seen = seen if real is None else seen & real[:, None]
    seen = torch.cat((seen, all_past(x, b, n)), dim=-1)

    def say(text, i, row):
        h = [levelled(y, m.norm_x) for y in x[text]]
        noted = [levelled(y, m.norm_memory) for y in memory[text]]
        keys, values = (
            [
                *(piece(m.memory_key_value, part, 2)(y) for y in noted),
                *(piece(m.own_key_value, part, 2)(y) for y in h),
            ]
            for part in range(2)
        )
        told = heard(piece(m.query)(h[i]), keys, values, row, 2)
        y = x[text, i] + piece(m.output)(told)
        h = piece(m.network[0])(levelled(y, m.norm_network))
        h = h * torch.tanh(torch.logaddexp(h, torch.zeros_like(h)))
        return y + piece(m.network[2])(h)

    return token_by_token(say, seen)


BLOCKS = {
    "decoder-block/factors_through_a_gate": factors_through_a_gate,
    "decoder-block/gates_for_every_sublayer": gates_for_every_sublayer,
    "decoder-block/memory_and_past_in_one_softmax": (
        memory_and_past_in_one_softmax
    ),
    "decoder-block/memory_first_through_a_gate": memory_first_through_a_gate,
}
