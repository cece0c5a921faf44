"""What goes wrong in whole models, and what to say of it."""

from selfattn.doctor.exercise import mistake
from selfattn.doctor.kinds.cached_decoder import mistakes as of_caches


@mistake
def one_token_ahead():
    """Each token sees the one after it, which it is to foretell.

    Cause: The causal mask's diagonal is one too far, or tokens and targets
        are shifted twice.
    Cure: j <= i, and one shift: logits[:, :-1] beside ids[:, 1:].
    Chapter: masks
    """


@mistake
def deaf():
    """A token hears no other.

    Cause: What attention brings is not added, or every other key is hidden.
    Cure: x + attention(norm(x)), under a mask that allows the past.
    Chapter: blocks
    """


@mistake
def the_past_alone():
    """In an encoder a token does not hear what comes after it.

    Cause: The causal mask of a decoder is in it.
    Cure: An encoder hides padding, and nothing else.
    Chapter: models
    """


@mistake
def texts_meet():
    """What becomes of a text depends on the others in its batch.

    Cause: An axis is taken for another, or a mean runs over the batch.
    Cure: Nothing but a loss runs over axis 0.
    Chapter: multihead
    """


@mistake
def order_does_not_tell():
    """Tokens in another order mean the same.

    Cause: There are no positions, or they are all alike.
    Cure: Add a vector for each place, or rotate queries and keys.
    Chapter: positions
    """


@mistake
def padding_is_heard():
    """What stands in the padding changes what the text means.

    Cause: The mask for padding is not handed on, or to some layers alone,
        or means the opposite there.
    Cure: Every attention that looks at padded tokens gets it.
    Chapter: masks
    """


@mistake
def padding_moves_the_text():
    """A padded text means something else than it means alone.

    Cause: Places count the padding, or a mean runs over it.
    Cure: Count real tokens: (mask.cumsum(-1) - 1).clamp(min=0).
    Chapter: masks
    """


@mistake
def source_not_read():
    """What it writes does not depend on what it reads.

    Cause: Attention across is left out, or asks its own tokens.
    Cure: Keys and values of the memory, queries of what is written.
    Chapter: blocks
    """


@mistake
def chunks_tell_another_story():
    """With a cache it says something else than without.

    Cause: Somewhere what was kept is not what would be computed anew.
    Cure: Compare layer by layer, chunk by chunk.
    Chapter: models
    """


@mistake
def beams_not_reordered():
    """After beams were reordered it goes on with the wrong ones.

    Cause: The cache, or a part of it, keeps its rows where they were.
    Cure: Every tensor in it takes the rows of its parents.
    Chapter: models
    """


@mistake
def dropout_that_never_ends():
    """In evaluation, two calls differ.

    Cause: Dropout is on whatever the mode: F.dropout without
        training=self.training, or dropout_p of the fused function.
    Cure: self.training decides; nn.Dropout does so by itself.
    Chapter: layers
    """


@mistake
def something_is_remembered():
    """What was read before changes what is said now.

    Cause: A buffer or an attribute is kept from call to call.
    Cure: Hand over a cache, or begin anew.
    Chapter: models
    """


@mistake
def dropout_that_never_begins():
    """In training, two calls agree, though it has a rate to drop by.

    Cause: The rate is kept and not used.
    Cure: nn.Dropout(rate), and apply it.
    Chapter: layers
    """


@mistake
def cut_from_its_loss():
    """Some parameters get no gradient.

    Cause: A detach, a no_grad, .data or .item() on the way, or a part that
        is made and not used.
    Cure: Leave them out, or the part.
    Chapter: layers
    """


@mistake
def tied_by_a_copy():
    """Table and head begin alike, and part in the first step.

    Cause: The head's weight is a copy of the table, not the table.
    Cure: head.weight = embedding.weight, after both are made.
    Chapter: models
    """


@mistake
def not_tied():
    """Table and head are two matrices, though they are said to be one.

    Cause: They were tied before one of them was replaced, or never.
    Cure: head.weight = embedding.weight, at last.
    Chapter: models
    """


@mistake
def too_short_a_reach():
    """It fails at a length that it is said to take.

    Cause: A table or a mask is shorter than the longest text.
    Cure: One number for all: the longest length.
    Chapter: positions
    """


@mistake
def silently_cut():
    """Beyond its longest length it answers, and wrongly.

    Cause: Places are cut, clamped or begin again, and nobody is told.
    Cure: Raise an error.
    Chapter: positions
    """


@mistake
def lost_in_half_precision():
    """In bfloat16 or float32 it says something else.

    Cause: Angles, sums or norms are computed in a type of few digits.
    Cure: Compute them in float32, and round what comes out.
    Chapter: positions
    """


@mistake
def no_number():
    """NaN or infinity comes out.

    Cause: An empty row of scores, or an overflow.
    Cure: See where it begins, step by step.
    Chapter: doctor
    """


not_causal = of_caches.not_causal
positions_start_again = of_caches.positions_start_again
cache_not_read = of_caches.cache_not_read
MISTAKES = (
    one_token_ahead,
    deaf,
    the_past_alone,
    texts_meet,
    order_does_not_tell,
    padding_is_heard,
    padding_moves_the_text,
    source_not_read,
    chunks_tell_another_story,
    beams_not_reordered,
    dropout_that_never_ends,
    something_is_remembered,
    dropout_that_never_begins,
    cut_from_its_loss,
    tied_by_a_copy,
    not_tied,
    too_short_a_reach,
    silently_cut,
    lost_in_half_precision,
    no_number,
    not_causal,
    positions_start_again,
    cache_not_read,
)
