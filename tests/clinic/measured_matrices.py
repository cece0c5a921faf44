"""How the sound layers that are measured on hold their matrices, by hand."""

import torch
from clinic.holding import (
    cut,
    joined,
    maps,
    of_kernel,
    of_width_one,
    pair,
    times,
)


def of_each_head(linear, heads):
    """One map of all heads, as it were a block for each on a diagonal."""
    W, b = pair(linear)
    return torch.block_diag(*[W] * heads), b.repeat(heads)


def cut_in_heads(linear, heads):
    """A map that holds the keys of a head, and then its values."""
    W, b = pair(linear)
    W = W.unflatten(1, (heads, 2, -1))
    b = b.unflatten(0, (heads, 2, -1))
    return [(W[:, :, i].flatten(1), b[:, i].flatten()) for i in range(2)]


HELD = {
    "self-attention/one_small_map_for_all_heads": lambda m: [
        *(of_each_head(one, 3) for one in (m.q_map, m.k_map, m.v_map)),
        pair(m.fc_out),
    ],
    "self-attention/half_the_scale_on_each_side": maps(
        "query", "key", "value", "out"
    ),
    "self-attention/fast_path_or_by_hand": lambda m: [
        *cut(m.c_attn, *"qkv"),
        pair(m.c_proj),
    ],
    "self-attention/function_of_the_library": maps(
        "q_proj", "k_proj", "v_proj", "c_proj"
    ),
    "self-attention/triangle_in_place": maps(
        "W_query", "W_key", "W_value", "out_proj"
    ),
    "cross-attention/minus_a_billion_times_a_mask": maps(
        "wq", "wk", "wv", "dense"
    ),
    "cross-attention/encoder_first_then_decoder": lambda m: [
        pair(m.q_layer),
        *cut_in_heads(m.kv_layer, 4),
        pair(m.linear_layer),
    ],
    "cross-attention/no_later_scan": lambda m: [
        *(of_width_one(c) for c in (m.theta, m.phi, m.g)),
        times(m.gamma[:, 0], *of_width_one(m.W)),
    ],
    "cross-attention/scaled_by_a_flag": lambda m: [
        *(
            of_kernel(W.transpose(0, 1), b, 1)
            for W, b in (
                (m.q_matrix, m.q_shift),
                (m.k_matrix, m.k_shift),
                (m.v_matrix, m.v_shift),
            )
        ),
        times(m.scale, *pair(m.join)),
    ],
    "self-attention/atoms_by_convolution": lambda m: [
        of_width_one(c) for c in (m.ask, m.show, m.tell, m.blend)
    ],
    "self-attention/flag_before_tokens": lambda m: [
        joined(head.Q for head in m.heads),
        joined(head.K for head in m.heads),
        joined(head.V for head in m.heads),
        pair(m.O),
    ],
    "self-attention/slices_without_a_module": lambda m: [
        pair(m.nets[name]) for name in ("q", "k", "v", "out")
    ],
}
