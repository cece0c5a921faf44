"""How the sound layers that are measured on hold their matrices, by hand."""

import torch
from clinic.matrices import cut, maps, pair


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
}
