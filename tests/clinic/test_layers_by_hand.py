"""The sound layers say what their matrices make, head by head, in loops.

How each style holds its matrices is written here once more, by hand.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from clinic import formulas

from tools.measure.clinic.oracle import trials
from tools.measure.clinic.patients import patient, stirred, styles

KINDS = ("self-attention", "cross-attention")
STYLES = {f"{s.kind}/{s.name}": s for s in styles() if s.kind in KINDS}


def maps(*names):
    """Four linear maps by their names."""
    return lambda m: [pair(m.get_submodule(name)) for name in names]


def pair(linear):
    """Matrix, to be multiplied from the right, and shift."""
    bias = linear.bias
    zero = torch.zeros(linear.weight.shape[0], dtype=linear.weight.dtype)
    return linear.weight.mT, zero if bias is None else bias


def cut(linear, *order):
    """A fused map, cut into equal parts, brought into our order."""
    W, b = pair(linear)
    parts = list(zip(W.chunk(len(order), 1), b.chunk(len(order)), strict=True))
    return [parts[order.index(name)] for name in sorted(order, key="qkv".find)]


def cut_by_head(linear, heads):
    """A fused map that holds q, k and v of a head beside each other."""
    W, b = pair(linear)
    W = W.unflatten(1, (heads, 3, -1))
    b = b.unflatten(0, (heads, 3, -1))
    return [(W[:, :, i].flatten(1), b[:, i].flatten()) for i in range(3)]


def joined(linears):
    """The maps of all heads as one."""
    pairs = [pair(linear) for linear in linears]
    return tuple(torch.cat(parts, -1) for parts in zip(*pairs, strict=True))


def of_parameters(m):
    """Matrices with an axis for the heads."""
    q, k, v = (W.transpose(0, 1).flatten(1) for W in (m.W_Q, m.W_K, m.W_V))
    none, W_o = torch.zeros(q.shape[1]).double(), m.W_O.flatten(0, 1)
    zero = torch.zeros(W_o.shape[1]).double()
    return [(q, m.b_Q.flatten()), (k, none), (v, none), (W_o, zero)]


HELD = {
    "self-attention/four_projections": maps("W_q", "W_k", "W_v", "W_o"),
    "self-attention/fused_causal": lambda m: [
        *cut(m.c_attn, *"qkv"),
        pair(m.c_proj),
    ],
    "self-attention/fused_by_axis": lambda m: [
        *cut(m.qkv, *"qkv"),
        pair(m.proj),
    ],
    "self-attention/fused_by_head": lambda m: [
        *cut_by_head(m.query_key_value, 2),
        pair(m.dense),
    ],
    "self-attention/fused_keys_first": lambda m: [
        *cut(m.kqv_proj, *"kqv"),
        pair(m.out_proj),
    ],
    "self-attention/list_of_heads": lambda m: [
        joined(h.query for h in m.heads),
        joined(h.key for h in m.heads),
        joined(h.value for h in m.heads),
        pair(m.proj),
    ],
    "self-attention/lists_of_maps": lambda m: [
        joined(m.q),
        joined(m.k),
        joined(m.v),
        pair(m.mix),
    ],
    "self-attention/einsum_parameters": of_parameters,
    "self-attention/tokens_first": maps(
        "q_proj", "k_proj", "v_proj", "out_proj"
    ),
    "self-attention/grouped_heads": maps("wq", "wk", "wv", "wo"),
    "self-attention/nested_maps": maps(
        "maps.ask", "maps.offer", "maps.tell", "back.0"
    ),
    "self-attention/four_clones": maps(*(f"linears.{i}" for i in range(4))),
    "self-attention/flag_and_padding": maps(
        "to_q", "to_k", "to_v", "to_out.0"
    ),
    "self-attention/rotated": lambda m: [*cut(m.qkv, *"qkv"), pair(m.out)],
    "self-attention/in_a_window": maps("query", "key", "value", "output"),
    "self-attention/normed_queries": maps(
        "q_proj", "k_proj", "v_proj", "o_proj"
    ),
    "self-attention/bare_matrices": lambda m: [
        (m.W_query, 0),
        (m.W_key, 0),
        (m.W_value, 0),
        (torch.eye(5).double(), 0),
    ],
    "self-attention/with_weights": maps("w_qs", "w_ks", "w_vs", "fc"),
    "cross-attention/separate_maps": maps("query", "key", "value", "out"),
    "cross-attention/fused_keys_and_values": lambda m: [
        pair(m.to_q),
        *cut(m.to_kv, *"kv"),
        pair(m.to_out),
    ],
    "cross-attention/memory_with_padding": maps(
        "q_proj", "k_proj", "v_proj", "out_proj"
    ),
    "cross-attention/list_of_heads": lambda m: [
        joined(h.q for h in m.heads),
        joined(h.k for h in m.heads),
        joined(h.v for h in m.heads),
        pair(m.linear),
    ],
    "cross-attention/tokens_first": maps("w_q", "w_k", "w_v", "w_o"),
    "cross-attention/three_inputs": maps(
        "q_proj", "k_proj", "v_proj", "o_proj"
    ),
}


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
        scores = mine @ its.mT / math.sqrt(width)
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
    return q, k


def what_is_seen(facts, described, given, n_q, n_k):
    """All masks of a call, as one of (batch, queries, keys)."""
    seen = torch.ones(1, n_q, n_k).bool()
    if facts.get("causal") or given.get("causal"):
        seen = seen & formulas.past(n_q, n_k, "last")
    if "table" in facts:
        seen = seen & facts["table"](n_q, n_k)
    for name, words in described.items():
        x = given.get(name.rstrip("?"))
        if name.endswith("?") and isinstance(x, torch.Tensor):
            allowed = formulas.allowed(x, words)
            seen = seen & (allowed[:, 0] if allowed.ndim == 4 else allowed)
    return seen


@pytest.mark.parametrize("name", STYLES)
def test_layers_say_what_their_matrices_make(name):
    style = STYLES[name]
    made = patient(style.text)
    module, facts = stirred(made.thing), made.facts
    tolerance = 1e-9 if "float64" in facts.get("dtypes", ["float64"]) else 1e-4
    for given, _ in trials(made, style.kind, torch.float64, 12):
        x, *rest = (
            t
            for t in given.values()
            if torch.is_tensor(t) and t.ndim == 3 and t.is_floating_point()
        )
        context = rest[0] if style.kind == "cross-attention" else x
        turned = facts["layout"] == "NBD"
        if turned:
            x, context = x.transpose(0, 1), context.transpose(0, 1)
        seen = what_is_seen(
            facts, made.inputs[0], given, x.shape[1], context.shape[1]
        )
        said = module(**given)
        said = said[0] if isinstance(said, tuple) else said
        expected = by_hand(name, module, facts, x, context, seen)
        torch.testing.assert_close(
            said.transpose(0, 1) if turned else said,
            expected,
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
        )


def test_every_style_is_held_somehow():
    assert HELD.keys() == STYLES.keys()
