"""How each sound layer holds its matrices, written once more by hand."""

import torch
from clinic.holding import (
    cut,
    cut_by_group,
    cut_by_head,
    joined,
    maps,
    of_axes,
    of_kernel,
    of_library,
    of_one_for_two,
    of_one_vector,
    of_parameters,
    of_width_one,
    pair,
    parts,
)

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
    "cross-attention/arguments_memory_first": lambda m: [
        pair(m.to_q),
        *cut(m.to_kv, *"kv"),
        pair(m.to_out),
    ],
    "cross-attention/processor_and_list_out": maps(
        "to_q", "to_k", "to_v", "to_out.0"
    ),
    "cross-attention/query_value_key": lambda m: [
        *(of_axes(d, 1) for d in (m._query_dense, m._key_dense)),
        of_axes(m._value_dense, 1),
        of_axes(m._output_dense, 2),
    ],
    "cross-attention/root_on_both_sides": maps("query", "key", "value", "out"),
    "cross-attention/scores_added_to_a_mask": maps("W_q", "W_k", "W_v", "W_o"),
    "self-attention/adjacency_comes_first": maps(*"QKVO"),
    "self-attention/baddbmm_for_export": lambda m: [
        *cut(m.kvq, *"kvq"),
        pair(m.dense),
    ],
    "self-attention/conv_near_days": lambda m: [
        *parts(*of_width_one(m.to_qkv), *"qkv"),
        of_width_one(m.to_out),
    ],
    "self-attention/cosine_fixed_temperature": lambda m: [
        *cut_by_head(m.qkv, 3),
        pair(m.proj),
    ],
    "self-attention/events_in_small_pieces": maps(
        "w_query", "w_key", "w_value", "w_final"
    ),
    "self-attention/flax_kernels_vmapped": lambda m: [
        of_kernel(m.query_kernel, m.query_bias, 1),
        of_kernel(m.key_kernel, m.key_bias, 1),
        of_kernel(m.value_kernel, m.value_bias, 1),
        of_kernel(m.out_kernel, m.out_bias, 2),
    ],
    "self-attention/functional_time_first": lambda m: [
        *parts(m.weight.mT, m.bias, *"qkv"),
        pair(m.out),
    ],
    "self-attention/groups_in_one_matrix": lambda m: [
        *cut_by_group(m.wqkv, 2, (2, 1, 1)),
        pair(m.wo),
    ],
    "self-attention/one_long_vector": lambda m: of_one_vector(m.theta, 10, 5),
    "self-attention/shared_query_and_key": of_one_for_two,
    "self-attention/slopes_on_both_sides": maps(
        "linear_q", "linear_k", "linear_v", "linear_out"
    ),
    "self-attention/units_that_are_alive": lambda m: [
        (W, 0) for W in (m.w_ask, m.w_answer, m.w_report, m.w_order)
    ],
}
