"""What layers of cross-attention that are measured on say to a query.

Each function here is called as `queries` tells.
"""

import torch

from tools.measure.clinic.by_hand.pieces import mixture, normed, piece, shares


def scores_by_addition(m, n_heads, given, i, seen):
    """A score is what a vector makes of the bent sum of query and key."""
    memory = given["encoder_outputs"]
    q = piece(m.Wa)(given["hidden"][i])
    score = piece(m.Va)
    scores = [score(torch.tanh(q + piece(m.Ua)(y)))[0] for y in memory]
    return mixture(shares(scores, seen), memory)


def queries_stay_in_the_sum(m, n_heads, given, i, seen):
    """Each head adds what it sees to its query; then a small network."""
    x, memory = given["X"][i], given["Y"]
    heads = []
    for head in range(n_heads):
        ask, offer, tell = (
            piece(linear, head, n_heads) for linear in (m.fc_q, m.fc_k, m.fc_v)
        )
        q = ask(x)
        scores = [q @ offer(y) / len(q) ** 0.5 for y in memory]
        said = mixture(shares(scores, seen), [tell(y) for y in memory])
        heads.append(q + said)
    between = normed(torch.cat(heads), m.ln0)
    return normed(between + piece(m.fc_o)(between).clamp(min=0), m.ln1)


def text_and_picture_apart(m, n_heads, given, i, seen):
    """What a query says to words and to a picture is added up."""
    x = given["hidden_states"][i]
    heads = []
    for head in range(n_heads):
        q = piece(m.to_q, head, n_heads)(x)
        words = given["encoder_hidden_states"]
        said = seen_by(q, words, m.to_k, m.to_v, (head, n_heads), seen)
        if "ip_hidden_states" in given:
            picture = given["ip_hidden_states"]
            all_of_it = torch.ones(len(picture)).bool()
            said = said + m.ip_scale * seen_by(
                q, picture, m.to_k_ip, m.to_v_ip, (head, n_heads), all_of_it
            )
        heads.append(said)
    return piece(m.to_out[0])(torch.cat(heads))


def seen_by(q, memory, keys, values, part, seen):
    """What one head tells a query of a memory."""
    offer, tell = piece(keys, *part), piece(values, *part)
    scores = [q @ offer(y) / len(q) ** 0.5 for y in memory]
    return mixture(shares(scores, seen), [tell(y) for y in memory])


def tanh_gate_around_media(m, n_heads, given, i, seen):
    """What is seen passes a gate; a word that sees nothing stays as it is."""
    x, media, of = given["x"][i], given["media"], m.attn
    if not seen.any():
        return x
    heads = []
    for head in range(n_heads):
        q = piece(of.to_q, head, n_heads)(normed(x, of.norm))
        offer = piece(of.to_kv, head, 2 * n_heads)
        tell = piece(of.to_kv, n_heads + head, 2 * n_heads)
        scores = [q @ offer(y) / len(q) ** 0.5 for y in media]
        heads.append(mixture(shares(scores, seen), [tell(y) for y in media]))
    return x + torch.tanh(m.attn_gate) * piece(of.to_out)(torch.cat(heads))


ACROSS = {
    "cross-attention/queries_stay_in_the_sum": queries_stay_in_the_sum,
    "cross-attention/scores_by_addition": scores_by_addition,
    "cross-attention/tanh_gate_around_media": tanh_gate_around_media,
    "cross-attention/text_and_picture_apart": text_and_picture_apart,
}
