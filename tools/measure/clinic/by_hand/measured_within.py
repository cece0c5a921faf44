"""What layers of self-attention that are measured on say to a query.

Each function here is called as `queries` tells.
"""

import torch

from tools.measure.clinic.by_hand.pieces import (
    mixture,
    piece,
    pixel,
    shares,
    sized,
    squashed,
    turned,
)


def eager_function_outside(m, n_heads, given, i, seen):
    """Queries and keys have a size of one, then are turned; grouped."""
    x = given["hidden_states"]
    if not seen.any():
        return torch.full_like(x[i], torch.nan)
    kv_heads = m.k_proj.out_features // m.head_dim
    heads = []
    for head in range(n_heads):
        group = head * kv_heads // n_heads
        ask = piece(m.q_proj, head, n_heads)
        offer, tell = (
            piece(linear, group, kv_heads) for linear in (m.k_proj, m.v_proj)
        )
        q = turned(sized(ask(x[i]), m.q_norm), i, 1e4)
        keys = [
            turned(sized(offer(y), m.k_norm), j, 1e4) for j, y in enumerate(x)
        ]
        scores = [q @ k / len(q) ** 0.5 for k in keys]
        heads.append(mixture(shares(scores, seen), [tell(y) for y in x]))
    return piece(m.o_proj)(torch.cat(heads))


SLOPES = (1 / 16, 1 / 256, 1 / 4)  # of three heads: two of four, one of two


def slopes_by_head(m, n_heads, given, i, seen):
    """A key has the less the farther it is back, by its head's slope."""
    x = given["x"]
    heads = []
    for head in range(n_heads):
        ask, offer, tell = (
            piece(m.Wqkv, part * n_heads + head, 3 * n_heads)
            for part in range(3)
        )
        q = ask(x[i])
        scores = [
            q @ offer(y) / len(q) ** 0.5 - SLOPES[head] * (i - j)
            for j, y in enumerate(x)
        ]
        heads.append(mixture(shares(scores, seen), [tell(y) for y in x]))
    return piece(m.out_proj)(torch.cat(heads))


def cosines_with_a_learnt_temperature(m, n_heads, given, i, seen):
    """A cosine times a number of the head, and one for the distance."""
    x, rows = given["x"], 3 * n_heads
    width = m.qkv.in_features // n_heads
    longest = (len(m.bias_table) + 1) // 2
    heads = []
    for head in range(n_heads):
        ask, offer, tell = (
            piece(m.qkv, part * n_heads + head, rows) for part in range(3)
        )
        of_head = slice(head * width, (head + 1) * width)
        q = ask(x[i]) + m.q_bias[of_head]
        times = torch.exp(m.logit_scale[head, 0, 0]).clamp(max=100)
        scores = []
        for j, y in enumerate(x):
            k = offer(y)
            cosine = q @ k / ((q @ q) * (k @ k)) ** 0.5
            near = m.bias_table[i - j + longest - 1, head]
            scores.append(times * cosine + near)
        values = [tell(y) + m.v_bias[of_head] for y in x]
        heads.append(mixture(shares(scores, seen), values))
    return piece(m.proj)(torch.cat(heads))


def edges_add_to_scores(m, n_heads, given, i, seen):
    """An edge adds to the score of each head; who sees none is told none."""
    h = given["h"]
    if not seen.any():
        return piece(m.O_h)(torch.zeros_like(h[i]))
    heads = []
    for head in range(n_heads):
        ask, offer, tell = (
            piece(linear, head, n_heads) for linear in (m.Q, m.K, m.V)
        )
        q = ask(h[i])
        scores = [q @ offer(y) / len(q) ** 0.5 for y in h]
        if "e" in given:
            add = piece(m.proj_e, head, n_heads)
            scores = [
                score + add(edge)[0]
                for score, edge in zip(scores, given["e"][i], strict=True)
            ]
        heads.append(mixture(shares(scores, seen), [tell(y) for y in h]))
    return piece(m.O_h)(torch.cat(heads))


def residual_with_gamma(m, n_heads, given, i, seen):
    """A part of what is seen is added to what was there."""
    x = given["x"]
    ask, offer, tell = map(pixel, (m.query_conv, m.key_conv, m.value_conv))
    q = ask(x[i])
    weights = shares([q @ offer(y) for y in x], seen)
    return m.gamma * mixture(weights, [tell(y) for y in x]) + x[i]


def gated_nodes_in_pieces(m, n_heads, given, i, seen):
    """What each head says has a gate; keys lie before values."""
    x = given["nodes"]
    heads = []
    for head in range(n_heads):
        ask, gate = (
            piece(linear, head, n_heads) for linear in (m.lin_dst, m.lin_gate)
        )
        offer = piece(m.lin_src, head, 2 * n_heads)
        tell = piece(m.lin_src, n_heads + head, 2 * n_heads)
        q = ask(x[i])
        scores = [q @ offer(y) / len(q) ** 0.5 for y in x]
        said = mixture(shares(scores, seen), [tell(y) for y in x])
        heads.append(said * squashed(gate(x[i])))
    return piece(m.lin_out)(torch.cat(heads))


WITHIN = {
    "self-attention/cosines_with_a_learnt_temperature": (
        cosines_with_a_learnt_temperature
    ),
    "self-attention/eager_function_outside": eager_function_outside,
    "self-attention/edges_add_to_scores": edges_add_to_scores,
    "self-attention/gated_nodes_in_pieces": gated_nodes_in_pieces,
    "self-attention/residual_with_gamma": residual_with_gamma,
    "self-attention/slopes_by_head": slopes_by_head,
}
