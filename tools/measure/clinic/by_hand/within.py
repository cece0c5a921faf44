"""What sound layers of self-attention with own formulas say to a query.

Each function here is called as `queries` tells.
"""

import math

import torch

from tools.measure.clinic.by_hand.pieces import (
    mixture,
    normed,
    piece,
    shares,
    sized,
    squashed,
    turned,
    waves,
)


def gated_output(m, n_heads, given, i, seen):
    """Each head's mixture has a size of one; gates come first in the map."""
    x = given["u"]
    heads = []
    for head in range(n_heads):
        gate, ask, offer, tell = (
            piece(m.in_proj, part * n_heads + head, 4 * n_heads)
            for part in range(4)
        )
        q = ask(x[i])
        scores = [q @ offer(y) / len(q) ** 0.5 for y in x]
        said = mixture(shares(scores, seen), [tell(y) for y in x])
        size = (said @ said / len(said) + 1e-5) ** 0.5
        said = said / size * m.out_norm.weight
        heads.append(said * squashed(gate(x[i])))
    return piece(m.out_proj)(torch.cat(heads))


def null_key_and_value(m, n_heads, given, i, seen):
    """Every query sees one more key; all heads have the same keys."""
    x = [normed(y, m.norm) for y in given["x"]]
    offer, tell = piece(m.to_kv, 0, 2), piece(m.to_kv, 1, 2)
    keys = [m.null_kv[0], *(offer(y) for y in x)]
    values = [m.null_kv[1], *(tell(y) for y in x)]
    seen = torch.cat((torch.tensor([True]), seen))
    heads = []
    for head in range(n_heads):
        q = piece(m.to_q, head, n_heads)(x[i])
        scores = [q @ k / len(q) ** 0.5 for k in keys]
        heads.append(mixture(shares(scores, seen), values))
    return normed(piece(m.to_out[0])(torch.cat(heads)), m.to_out[1])


def relative_keys(m, n_heads, given, i, seen):
    """To keys and values is added what their distance, at most 2, has."""
    x = given["x"]
    far = [max(-2, min(2, j - i)) + 2 for j in range(len(x))]
    of_keys = m.relative_position_k.embeddings_table[far]
    of_values = m.relative_position_v.embeddings_table[far]
    heads = []
    for head in range(n_heads):
        ask, offer, tell = (
            piece(linear, head, n_heads) for linear in (m.fc_q, m.fc_k, m.fc_v)
        )
        q = ask(x[i])
        keys = [offer(y) + r for y, r in zip(x, of_keys, strict=True)]
        values = [tell(y) + r for y, r in zip(x, of_values, strict=True)]
        scores = [q @ k / len(q) ** 0.5 for k in keys]
        heads.append(mixture(shares(scores, seen), values))
    return piece(m.fc_o)(torch.cat(heads))


def talking_heads(m, n_heads, given, i, seen):
    """The heads' scores are mixed for each key, and their weights again."""
    x = given["x"]
    ask, offer, tell = (
        [
            piece(m.qkv, part * n_heads + head, 3 * n_heads)
            for head in range(n_heads)
        ]
        for part in range(3)
    )
    scores = []
    for head in range(n_heads):
        q = ask[head](x[i])
        scores.append([q @ offer[head](y) / len(q) ** 0.5 for y in x])
    mix, mix_again = piece(m.proj_l), piece(m.proj_w)
    mixed = [mix(torch.stack(of)) for of in zip(*scores, strict=True)]
    weights = [shares(list(of), seen) for of in zip(*mixed, strict=True)]
    mixed = [mix_again(torch.stack(of)) for of in zip(*weights, strict=True)]
    heads = []
    for head in range(n_heads):
        there = [
            of[head] * tell[head](y)
            for of, y, real in zip(mixed, x, seen, strict=True)
            if real
        ]
        heads.append(sum(there))
    return piece(m.proj)(torch.cat(heads))


def difference_of_two_softmaxes(m, n_heads, given, i, seen):
    """Of one half's weights, those of the other are taken off, times λ."""
    x = given["x"]
    taken_off = (
        torch.exp(m.lambda_q1 @ m.lambda_k1)
        - torch.exp(m.lambda_q2 @ m.lambda_k2)
        + 0.8
        - 0.6 * math.exp(-0.3)
    )
    heads = []
    for head in range(n_heads):
        halves = []
        for half in (2 * head, 2 * head + 1):
            q = piece(m.q_proj, half, 2 * n_heads)(x[i])
            offer = piece(m.k_proj, half, 2 * n_heads)
            scores = [q @ offer(y) / len(q) ** 0.5 for y in x]
            halves.append(shares(scores, seen))
        tell = piece(m.v_proj, head, n_heads)
        weights = halves[0] - taken_off * halves[1]
        said = sized(mixture(weights, [tell(y) for y in x]), m.subln)
        heads.append(said * (0.2 + 0.6 * math.exp(-0.3)))
    return piece(m.out_proj)(torch.cat(heads))


def distances_by_a_shift(m, n_heads, given, i, seen):
    """A key has a score for its word and one for how far back it stands."""
    x = given["x"]
    if not seen.any():  # it says nothing, but for what the last map adds
        return piece(m.linear_out)(torch.zeros_like(x[i]))
    heads = []
    for head in range(n_heads):
        ask, offer, tell, place = (
            piece(linear, head, n_heads)
            for linear in (m.linear_q, m.linear_k, m.linear_v, m.linear_pos)
        )
        q = ask(x[i])
        of_word, of_place = q + m.pos_bias_u[head], q + m.pos_bias_v[head]
        scores = [
            (of_word @ offer(y) + of_place @ place(waves(i - j, len(y))))
            / len(q) ** 0.5
            for j, y in enumerate(x)
        ]
        heads.append(mixture(shares(scores, seen), [tell(y) for y in x]))
    return piece(m.linear_out)(torch.cat(heads))


def learnt_sinks(m, n_heads, given, i, seen):
    """Beside the keys stands a score of the head's own, with no value."""
    x = given["x"]
    n_rows = m.qkv.out_features // m.config.head_dim
    kv_heads = (n_rows - n_heads) // 2
    heads = []
    for head in range(n_heads):
        group = n_heads + head * kv_heads // n_heads
        ask, offer, tell = (
            piece(m.qkv, row, n_rows)
            for row in (head, group, group + kv_heads)
        )
        q = turned(ask(x[i]), i, 150_000)
        keys = [turned(offer(y), j, 150_000) for j, y in enumerate(x)]
        scores = [q @ k / len(q) ** 0.5 for k in keys]
        also = torch.cat((seen, torch.tensor([True])))
        weights = shares([*scores, m.sinks[head]], also)[:-1]
        heads.append(mixture(weights, [tell(y) for y in x]))
    return piece(m.out)(torch.cat(heads))


def vectors_for_points(m, n_heads, given, i, seen):
    """A difference makes a score for each feature, and so do all others."""
    x = given["x"]
    ask, offer, tell = (piece(m.to_qkv, part, 3) for part in range(3))
    widen, narrow = piece(m.attn_mlp[0]), piece(m.attn_mlp[2])
    q, values = ask(x[i]), [tell(y) for y in x]
    scores = [narrow(widen(q - offer(y)).clamp(min=0)) for y in x]
    said = []
    for f in range(len(q)):
        weights = shares([score[f] for score in scores], seen)
        said.append(mixture(weights, [value[f] for value in values]))
    return piece(m.out)(torch.stack(said))


def sigmoids_instead(m, n_heads, given, i, seen):
    """A weight is a sigmoid, and smaller the more keys there are."""
    x = given["x"]
    n_seen = int(seen.sum())
    heads = []
    for head in range(n_heads):
        ask, offer, tell = (
            piece(m.in_proj, part * n_heads + head, 3 * n_heads)
            for part in range(3)
        )
        q = ask(x[i])
        scores = [q @ offer(y) / len(q) ** 0.5 for y in x]
        weights = [
            squashed(score - math.log(n_seen)) * real
            for score, real in zip(scores, seen, strict=True)
        ]
        heads.append(mixture(weights, [tell(y) for y in x]))
    return piece(m.out_proj)(torch.cat(heads))


def gate_and_pair_bias(m, n_heads, given, i, seen):
    """Kernels have an axis for heads; each pair of tokens has a number."""
    x = given["m_act"]
    told = m.output_b
    for head in range(n_heads):
        q = x[i] @ m.query_w[:, head]
        scores = [q @ (y @ m.key_w[:, head]) / len(q) ** 0.5 for y in x]
        if "nonbatched_bias" in given:
            added = given["nonbatched_bias"][head, i]
            scores = [s + b for s, b in zip(scores, added, strict=True)]
        values = [y @ m.value_w[:, head] for y in x]
        gate = x[i] @ m.gating_w[:, head] + m.gating_b[head]
        said = mixture(shares(scores, seen), values) * squashed(gate)
        told = told + said @ m.output_w[head]
    return told


WITHIN = {
    "self-attention/difference_of_two_softmaxes": difference_of_two_softmaxes,
    "self-attention/distances_by_a_shift": distances_by_a_shift,
    "self-attention/gate_and_pair_bias": gate_and_pair_bias,
    "self-attention/gated_output": gated_output,
    "self-attention/learnt_sinks": learnt_sinks,
    "self-attention/null_key_and_value": null_key_and_value,
    "self-attention/relative_keys": relative_keys,
    "self-attention/sigmoids_instead": sigmoids_instead,
    "self-attention/talking_heads": talking_heads,
    "self-attention/vectors_for_points": vectors_for_points,
}
