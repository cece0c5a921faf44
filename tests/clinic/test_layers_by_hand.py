"""The sound layers say what their matrices make, head by head, in loops.

How each style holds its matrices is written in `matrices`, by hand, and in
`measured_matrices` of those that are measured on; those that compute something
of their own with them are written out in `tools.measure.clinic.by_hand`.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from clinic import matrices, measured_matrices

from tools.measure.clinic.by_hand import formulas
from tools.measure.clinic.by_hand.calls import what_comes_in, what_is_seen
from tools.measure.clinic.by_hand.queries import OWN, by_query
from tools.measure.clinic.oracle import trials
from tools.measure.clinic.patients import patient, stirred, styles

HELD = matrices.HELD | measured_matrices.HELD
KINDS = ("self-attention", "cross-attention")
STYLES = {f"{s.kind}/{s.name}": s for s in styles() if s.kind in KINDS}


def by_hand(name, module, facts, x, context, seen):
    """What a layer's matrices make, head by head."""
    (W_q, b_q), (W_k, b_k), (W_v, b_v), (W_o, b_o) = HELD[name](module)
    q, k, v = x @ W_q + b_q, context @ W_k + b_k, context @ W_v + b_v
    n_heads = facts["n_heads"]
    width = q.shape[-1] // n_heads
    kv_heads = k.shape[-1] // width
    v_width = v.shape[-1] // kv_heads
    outputs = []
    for head in range(n_heads):
        group = head * kv_heads // n_heads
        mine = q[..., head * width : (head + 1) * width]
        its = k[..., group * width : (group + 1) * width]
        value = v[..., group * v_width : (group + 1) * v_width]
        mine, its = changed(name, module, mine, its)
        scores = mine @ its.mT * facts.get("scale", 1 / math.sqrt(width))
        if "cap" in facts:
            scores = facts["cap"] * torch.tanh(scores / facts["cap"])
        scores = scores + distances(name, module, head, *scores.shape[1:])
        rows = formulas.weights(scores, seen, facts.get("empty_row"))
        outputs.append(rows @ value)
    return torch.cat(outputs, dim=-1) @ W_o + b_o


def changed(name, module, q, k):
    """What some do with the queries and keys of a head."""
    if name.endswith("/rotated"):
        halves = {"pairs": "halves"}
        return (formulas.rotated(halves, t[:, None], 0)[:, 0] for t in (q, k))
    if name.endswith("/normed_queries"):
        norms = module.q_norm, module.k_norm
        return (
            F.layer_norm(t, t.shape[-1:], norm.weight, norm.bias)
            for t, norm in zip((q, k), norms, strict=True)
        )
    if name.endswith("/units_that_are_alive"):
        halves = {"pairs": "halves", "base": 100}
        return (formulas.rotated(halves, t[:, None], 0)[:, 0] for t in (q, k))
    if name.endswith("/cosine_fixed_temperature"):
        return F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    if name.endswith("/complex_rotations"):
        pairs = {"pairs": "neighbours"}
        return (formulas.rotated(pairs, t[:, None], 0)[:, 0] for t in (q, k))
    if name.endswith("/capped_in_a_window"):
        norms = module.query_norm, module.key_norm
        return (
            F.rms_norm(t, t.shape[-1:], 1 + norm.weight, eps=1e-6)
            for t, norm in zip((q, k), norms, strict=True)
        )
    return q, k


def distances(name, module, head, n_q, n_k):
    """What one adds to the scores of a head for how far keys are away."""
    added = torch.zeros(n_q, n_k, dtype=torch.float64)
    if name.endswith("/buckets_of_distance"):
        table = module.relative_attention_bias.weight[:, head]
        for i in range(n_q):
            for j in range(n_k):
                added[i, j] = table[min(max(j - i, -4), 4) + 4]
    if name.endswith("/slopes_on_both_sides"):
        slope = 2 ** (-8 * (head + 1) / 3)
        for i in range(n_q):
            for j in range(n_k):
                added[i, j] = -slope * abs(i - j)
    return added


def what_is_expected(name, module, made, given, x, context):
    """What a layer should say, by its matrices or a formula of its own."""
    facts = made.facts
    described = {
        name: words for way in made.inputs for name, words in way.items()
    }
    seen = what_is_seen(facts, described, given, x.shape[1], context.shape[1])
    if name in OWN:
        seen = seen.expand(len(x), -1, -1)
        n_heads = facts["n_heads"]
        return by_query(name, module, n_heads, described, given, seen)
    return by_hand(name, module, facts, x, context, seen)


@pytest.mark.parametrize("name", STYLES)
def test_layers_say_what_their_matrices_make(name):
    style = STYLES[name]
    made = patient(style.text)
    module, facts = stirred(made.thing), made.facts
    tolerance = 1e-9 if "float64" in facts.get("dtypes", ["float64"]) else 1e-4
    for given, _ in trials(made, style.kind, torch.float64, 12):
        x, context = what_comes_in(facts, style.kind, given)
        turned = facts["layout"] == "NBD"
        if turned:
            x, context = x.transpose(0, 1), context.transpose(0, 1)
        said = module(**given)
        said = said[0] if isinstance(said, tuple) else said
        expected = what_is_expected(name, module, made, given, x, context)
        torch.testing.assert_close(
            said.transpose(0, 1) if turned else said,
            expected,
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
        )


def test_every_style_is_held_somehow():
    assert HELD.keys() | OWN.keys() == STYLES.keys()
    assert not HELD.keys() & OWN.keys()
