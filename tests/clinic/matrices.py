"""How each sound layer holds its matrices, written once more by hand."""

import torch


def maps(*names):
    """Four linear maps by their names."""
    return lambda m: [pair(m.get_submodule(name)) for name in names]


def pair(linear):
    """Matrix, to be multiplied from the right, and shift."""
    bias = linear.bias
    zero = torch.zeros(linear.weight.shape[0], dtype=linear.weight.dtype)
    return linear.weight.mT, zero if bias is None else bias


def of_width_one(conv):
    """The map that a convolution of width one is."""
    return conv.weight[:, :, 0].mT, conv.bias


def of_axes(dense, n_in):
    """A kernel whose first n_in axes come in and whose others go out."""
    W = dense.kernel
    into = W.shape[:n_in].numel()
    return W.reshape(into, -1), dense.bias.reshape(-1)


def of_library(m):
    """What PyTorch's own layer has, its matrices apart or in one."""
    shifts = m.in_proj_bias.chunk(3)
    matrices = m.q_proj_weight, m.k_proj_weight, m.v_proj_weight
    if m.in_proj_weight is not None:
        matrices = m.in_proj_weight.chunk(3)
    three = zip((W.mT for W in matrices), shifts, strict=True)
    return [*three, pair(m.out_proj)]


def cut(linear, *order):
    """A fused map, cut into equal parts, brought into our order."""
    return parts(*pair(linear), *order)


def parts(W, b, *order):
    """A matrix and a shift, cut likewise."""
    n = len(order)
    cuts = list(zip(W.chunk(n, 1), b.chunk(n), strict=True))
    return [cuts[order.index(name)] for name in sorted(order, key="qkv".find)]


def cut_by_head(linear, heads):
    """A fused map that holds q, k and v of a head beside each other."""
    W, b = pair(linear)
    W = W.unflatten(1, (heads, 3, -1))
    b = b.unflatten(0, (heads, 3, -1))
    return [(W[:, :, i].flatten(1), b[:, i].flatten()) for i in range(3)]


def cut_by_group(linear, groups, sizes):
    """A fused map that holds q, k and v of a group beside each other."""
    W, b = pair(linear)
    W = W.unflatten(1, (groups, sum(sizes), -1)).split(sizes, 2)
    b = b.unflatten(0, (groups, sum(sizes), -1)).split(sizes, 1)
    return [(w.flatten(1), s.flatten()) for w, s in zip(W, b, strict=True)]


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
    "cross-attention/returns_weights_too": lambda m: [
        pair(m.to_q),
        *cut(m.to_kv, *"kv"),
        pair(m.to_out[0]),
    ],
    "cross-attention/tokens_first": maps("w_q", "w_k", "w_v", "w_o"),
    "cross-attention/three_inputs": maps(
        "q_proj", "k_proj", "v_proj", "o_proj"
    ),
    "self-attention/transposed_maps": lambda m: [
        *parts(m.c_attn.weight, m.c_attn.bias, *"qkv"),
        (m.c_proj.weight, m.c_proj.bias),
    ],
    "self-attention/transposed_projection": lambda m: [
        *((W.mT, 0) for W in m.maps),
        (m.back.mT, 0),
    ],
    "self-attention/weights_out_by_in": lambda m: [
        (W.mT, 0) for W in (m.Wq, m.Wk, m.Wv, m.Wo)
    ],
    "self-attention/output_in_a_module": maps(
        "self.query", "self.key", "self.value", "output.dense"
    ),
    "self-attention/buckets_of_distance": maps(*"qkvo"),
    "self-attention/complex_rotations": maps("wq", "wk", "wv", "wo"),
    "self-attention/packed_by_group": lambda m: [
        *cut_by_group(m.attn, 2, (3, 1, 1)),
        pair(m.proj),
    ],
    "self-attention/dictionary_of_weights": lambda m: [
        (m.params[f"{name}_w"].mT, m.params[f"{name}_b"])
        for name in ("query", "key", "value", "linear")
    ],
    "self-attention/capped_in_a_window": lambda m: [
        *((W, 0) for W in m.qkv_proj.weight.mT.split([20, 10, 10], 1)),
        pair(m.o_proj),
    ],
    "cross-attention/heads_in_the_batch": maps(
        "to_q", "to_k", "to_v", "to_out.0"
    ),
    "cross-attention/memory_of_lengths": maps(
        "linear_query", "linear_keys", "linear_values", "final_linear"
    ),
    "cross-attention/one_head_of_keys": lambda m: [
        pair(m.W_ask),
        *cut(m.W_kv, *"kv"),
        pair(m.W_back),
    ],
    "self-attention/convolutions_of_width_one": lambda m: [
        of_width_one(c) for c in (m.conv_q, m.conv_k, m.conv_v, m.conv_o)
    ],
    "self-attention/dense_general": lambda m: [
        *(of_axes(d, 1) for d in (m.query, m.key, m.value)),
        of_axes(m.out, 2),
    ],
    "self-attention/one_key_head_fused": lambda m: [
        *cut_by_group(m.c_attn, 1, (12, 4, 4)),
        pair(m.c_proj),
    ],
    "self-attention/values_first_in_one_map": lambda m: [
        *parts(m.W, torch.zeros(36).double(), *"vqk"),
        (m.unifyheads, 0),
    ],
    "self-attention/wrapped_library_layer": lambda m: of_library(
        m.multihead_attn
    ),
    "self-attention/windows_by_unfold": lambda m: [
        of_width_one(c) for c in (m.proj_q, m.proj_k, m.proj_v, m.proj_o)
    ],
    "cross-attention/processor_does_the_work": maps(
        "to_q", "to_k", "to_v", "to_out"
    ),
    "cross-attention/slices_of_one_weight": lambda m: [
        *parts(m.in_proj_weight.mT, m.in_proj_bias, *"qkv"),
        (m.out_proj_weight.mT, 0),
    ],
    "cross-attention/library_layer_with_kdim": lambda m: of_library(m.attn),
    "cross-attention/wide_values": maps(
        "to_queries", "to_keys", "to_values", "unify_heads"
    ),
}
