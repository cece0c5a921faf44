"""The mistakes of the kinds `self-attention` and `cross-attention`.

Each is a function of the projections, x, the context and the masks, like
`layer`, which is right.
"""

from selfattn.doctor.kinds.layer.mistakes import heads, masks

MISTAKES = (*heads.MISTAKES, *masks.MISTAKES)

# Those that show without knowing the numbers.
TELLING = (
    heads.heads_attend_to_heads,
    heads.softmax_that_overflows,
    heads.detached,
    heads.dropout_that_never_ends,
    heads.batch_and_tokens_exchanged,
    masks.mask_ignored,
    masks.padding_ignored,
    masks.padding_wiped_out_of_values,
    masks.padding_of_the_first_text,
    masks.mask_upside_down,
    masks.mask_on_its_side,
    masks.not_causal,
    masks.causal_flag_ignored,
    masks.not_itself,
    masks.one_too_many,
    masks.from_the_other_side,
    masks.not_itself_and_the_first_averages,
    masks.not_itself_and_the_first_is_nan,
    masks.claim_not_kept,
    masks.rolled_before_it_is_padded,
)

# By whether a layer is causal without being told to: what is then no mistake.
NO_MISTAKE = {True: masks.causal_flag_ignored, False: masks.not_causal}

# What only a layer can do that claims to keep a mask by itself.
OF_A_CLAIM = (masks.claim_not_kept, masks.rolled_before_it_is_padded)

# What is not seen of one that does: where it looks, no padding may be.
UNDER_NO_CLAIM = (masks.padding_of_the_first_text,)

CONVENTIONS = {
    "empty_row": {
        "zeros": None,
        "nan": masks.empty_row_gives_nan,
        "average": masks.empty_row_gives_the_average,
        "everything": masks.ten_thousand_subtracted,
    }
}
