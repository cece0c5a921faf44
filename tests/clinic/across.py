"""What sound layers of cross-attention with own formulas say to a query.

Each function here is called as `queries` tells.
"""

import torch
from clinic.pieces import mixture, normed, piece, shares, sized, squashed


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


def slots_compete(m, n_heads, given, i, seen):
    """Of each input a slot has a share; these make its weights."""
    inputs = [normed(y, m.norm_input) for y in given["inputs"]]
    slots = [normed(slot, m.norm_slots) for slot in given["slots"]]
    questions = [piece(m.to_q)(slot) for slot in slots]
    mine = []
    for y in inputs:
        k = piece(m.to_k)(y)
        scores = [q @ k / len(q) ** 0.5 for q in questions]
        everyone = torch.ones(len(slots)).bool()
        mine.append(shares(scores, everyone)[i] + m.eps)
    weights = [share / sum(mine) for share in mine]
    return mixture(weights, [piece(m.to_v)(y) for y in inputs])


def embeddings_of_a_prompt(m, n_heads, given, i, seen):
    """Queries and keys have a size of one; two heads share each key."""
    x, prompt = given["x"][i], given["prompt"]
    kv_heads = m.wk.out_features // (m.wq.out_features // n_heads)
    heads = []
    for head in range(n_heads):
        group = head * kv_heads // n_heads
        offer, tell = (
            piece(linear, group, kv_heads) for linear in (m.wk, m.wv)
        )
        q = sized(piece(m.wq, head, n_heads)(x), m.q_norm)
        keys = [sized(offer(y), m.k_norm) for y in prompt]
        scores = [q @ k / len(q) ** 0.5 for k in keys]
        heads.append(mixture(shares(scores, seen), [tell(y) for y in prompt]))
    return piece(m.wo)(torch.cat(heads))


def latents_see_themselves_too(m, n_heads, given, i, seen):
    """Keys are those of a picture, and behind them those of all latents."""
    picture = [normed(y, m.norm_media) for y in given["x"]]
    latents = [normed(y, m.norm_latents) for y in given["latents"]]
    memory, n = [*picture, *latents], len(latents)
    seen = torch.cat((seen, torch.ones(n).bool()))
    heads = []
    for head in range(n_heads):
        q = piece(m.to_q, head, n_heads)(latents[i])
        offer = piece(m.to_kv, head, 2 * n_heads)
        tell = piece(m.to_kv, n_heads + head, 2 * n_heads)
        scores = [q @ offer(y) / len(q) ** 0.5 for y in memory]
        heads.append(mixture(shares(scores, seen), [tell(y) for y in memory]))
    return piece(m.to_out)(torch.cat(heads))


ACROSS = {
    "cross-attention/embeddings_of_a_prompt": embeddings_of_a_prompt,
    "cross-attention/gated_with_bias": gated_with_bias,
    "cross-attention/latents_see_themselves_too": latents_see_themselves_too,
    "cross-attention/positions_added_to_keys": positions_added_to_keys,
    "cross-attention/slots_compete": slots_compete,
}
