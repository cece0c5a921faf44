"""What sound layers of cross-attention with own formulas say to a query.

Each function here is called as `queries` tells.
"""

import torch

from tools.measure.clinic.by_hand.pieces import (
    bent,
    mixture,
    normed,
    part_of,
    piece,
    pixel,
    shares,
    sized,
    squashed,
)


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
    heads = []
    for head in range(n_heads):
        three = (
            piece(linear, head, n_heads)
            for linear in (m.q_content, m.k_content, m.v_content)
        )
        heads.append(by_positions(*three, given, i, seen))
    return piece(m.out_proj)(torch.cat(heads))


def positions_for_keys_alone(m, n_heads, given, i, seen):
    """The same with PyTorch's layer, whose three maps lie in one matrix."""
    of = m.multihead_attn
    heads = []
    for head in range(n_heads):
        three = (
            part_of(
                of.in_proj_weight,
                of.in_proj_bias,
                part * n_heads + head,
                3 * n_heads,
            )
            for part in range(3)
        )
        heads.append(by_positions(*three, given, i, seen))
    return piece(of.out_proj)(torch.cat(heads))


def by_positions(ask, offer, tell, given, i, seen):
    """What a head says whose values do not know their positions."""
    x, memory = given["tgt"][i], given["memory"]
    if "query_pos" in given:
        x = x + given["query_pos"][i]
    placed = memory + given["pos"] if "pos" in given else memory
    q = ask(x)
    scores = [q @ offer(y) / len(q) ** 0.5 for y in placed]
    return mixture(shares(scores, seen), [tell(y) for y in memory])


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


def gate_opens_slowly(m, n_heads, given, i, seen):
    """All that is told passes one gate; who sees nothing is told nothing."""
    x, media = normed(given["x"][i], m.norm), given["media"]
    if not seen.any():
        return torch.zeros_like(x)
    heads = []
    for head in range(n_heads):
        q = piece(m.q_proj, head, n_heads)(x)
        offer = piece(m.kv_proj, head, 2 * n_heads)
        tell = piece(m.kv_proj, n_heads + head, 2 * n_heads)
        scores = [q @ offer(y) / len(q) ** 0.5 for y in media]
        heads.append(mixture(shares(scores, seen), [tell(y) for y in media]))
    return torch.tanh(m.attn_gate) * piece(m.o_proj)(torch.cat(heads))


def global_general_score(m, n_heads, given, i, seen):
    """What is seen and who looks are bent together; nothing is a value."""
    x, memory = given["source"][i], given["memory_bank"]
    q = piece(m.linear_in)(x)
    found = mixture(shares([q @ y for y in memory], seen), memory)
    return torch.tanh(piece(m.linear_out)(torch.cat((found, x))))


def small_nets_for_all_roles(m, n_heads, given, i, seen):
    """Keys and values are each made by a network with one bend."""
    x, ligand, of = given["query"][i], given["key"], m.roles
    if not seen.any():
        return torch.full_like(x, torch.nan)

    def net(role, head):
        into, out = pixel(role[0]), pixel(role[2], head, n_heads)
        return [out(bent(into(y))) for y in ligand]

    heads = []
    for head in range(n_heads):
        q = pixel(of["query"], head, n_heads)(x)
        keys, values = net(of["key"], head), net(of["value"], head)
        scores = [q @ k / len(q) ** 0.5 for k in keys]
        heads.append(mixture(shares(scores, seen), values))
    return pixel(of["output"])(torch.cat(heads))


def stars_that_may_look_away(m, n_heads, given, i, seen):
    """Beside the keys may stand a score of zero that has no value."""
    x, memory = given["star"][i], given["comparison"]
    with_nothing = torch.tensor([bool(given.get("nothing", True))])
    seen = torch.cat((seen, with_nothing))
    heads = []
    for head in range(n_heads):
        q = piece(m.from_star, head, n_heads)(x)
        offer = piece(m.from_comp, head, 2 * n_heads)
        tell = piece(m.from_comp, n_heads + head, 2 * n_heads)
        scores = [q @ offer(y) / len(q) ** 0.5 for y in memory]
        weights = shares([*scores, x.new_zeros(())], seen)[:-1]
        heads.append(mixture(weights, [tell(y) for y in memory]))
    return piece(m.to_star)(torch.cat(heads))


ACROSS = {
    "cross-attention/embeddings_of_a_prompt": embeddings_of_a_prompt,
    "cross-attention/gate_opens_slowly": gate_opens_slowly,
    "cross-attention/gated_with_bias": gated_with_bias,
    "cross-attention/global_general_score": global_general_score,
    "cross-attention/latents_see_themselves_too": latents_see_themselves_too,
    "cross-attention/positions_added_to_keys": positions_added_to_keys,
    "cross-attention/positions_for_keys_alone": positions_for_keys_alone,
    "cross-attention/slots_compete": slots_compete,
    "cross-attention/small_nets_for_all_roles": small_nets_for_all_roles,
    "cross-attention/stars_that_may_look_away": stars_that_may_look_away,
}
