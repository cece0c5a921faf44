"""What sound layers with formulas of their own make, query by query.

Each function here takes a layer, how many heads it has, what one text is
called with, the place of a query, and which keys this query sees.
"""

import torch

from tools.measure.clinic.inputs import SORTS


def piece(linear, i=0, n=1):
    """One of n equal parts of a linear map, for a single token."""
    W = linear.weight.chunk(n)[i]
    if linear.bias is None:
        return lambda x: W @ x
    b = linear.bias.chunk(n)[i]
    return lambda x: W @ x + b


def shares(scores, seen):
    """The exponentials of what is seen, made to sum to one."""
    scores = torch.stack(scores)
    found = torch.exp(scores[seen] - scores[seen].max())
    weights = torch.zeros_like(scores)
    weights[seen] = found / found.sum()
    return weights


def mixture(weights, values):
    """The sum of all values, each times its weight."""
    return sum(w * v for w, v in zip(weights, values, strict=True))


def squashed(x):
    """Numbers between 0 and 1."""
    return 1 / (1 + torch.exp(-x))


def normed(x, norm):
    """Features with mean 0 and spread 1, then stretched and shifted."""
    far = x - x.sum() / len(x)
    spread = (far @ far / len(x) + norm.eps) ** 0.5
    return far / spread * norm.weight + norm.bias


def gated_with_bias(m, n_heads, given, i, seen):
    """A table is added to the scores; what each head says has a gate."""
    x, memory = given["q_x"][i], given["kv_x"]
    heads = []
    for head in range(n_heads):
        ask, offer, tell, gate = (
            piece(linear, head, n_heads)
            for linear in (m.linear_q, m.linear_k, m.linear_v, m.linear_g)
        )
        q = ask(x)
        scores = [q @ offer(y) / len(q) ** 0.5 for y in memory]
        if "pair_bias" in given:
            added = given["pair_bias"][head, i]
            scores = [s + b for s, b in zip(scores, added, strict=True)]
        said = mixture(shares(scores, seen), [tell(y) for y in memory])
        heads.append(said * squashed(gate(x)))
    return piece(m.linear_o)(torch.cat(heads))


def positions_added_to_keys(m, n_heads, given, i, seen):
    """Queries and keys know their positions; values do not."""
    x, memory = given["tgt"][i], given["memory"]
    if "query_pos" in given:
        x = x + given["query_pos"][i]
    placed = memory + given["pos"] if "pos" in given else memory
    heads = []
    for head in range(n_heads):
        ask, offer, tell = (
            piece(linear, head, n_heads)
            for linear in (m.q_content, m.k_content, m.v_content)
        )
        q = ask(x)
        scores = [q @ offer(y) / len(q) ** 0.5 for y in placed]
        heads.append(mixture(shares(scores, seen), [tell(y) for y in memory]))
    return piece(m.out_proj)(torch.cat(heads))


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


OWN = {
    "cross-attention/gated_with_bias": gated_with_bias,
    "cross-attention/positions_added_to_keys": positions_added_to_keys,
    "self-attention/gated_output": gated_output,
    "self-attention/null_key_and_value": null_key_and_value,
    "self-attention/relative_keys": relative_keys,
    "self-attention/talking_heads": talking_heads,
}


def of_text(described, given, text):
    """What a layer is called with, for one text of the batch alone."""
    mine = {}
    for name, words in described.items():
        axes = [word for word in words.split() if word not in SORTS]
        name = name.rstrip("?")
        if name in given and "b" in axes:
            mine[name] = given[name].select(axes.index("b"), text)
    return mine


def by_query(name, module, n_heads, described, given, seen):
    """What a layer makes of a call: (batch, queries, features)."""
    texts = []
    for text, rows in enumerate(seen):
        mine = of_text(described, given, text)
        said = [
            OWN[name](module, n_heads, mine, i, row)
            for i, row in enumerate(rows)
        ]
        texts.append(torch.stack(said))
    return torch.stack(texts)
