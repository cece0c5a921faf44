"""The parts of a decoder block, wrongly joined."""

from functools import partial

from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.kinds.blocks.decoder.reference import (
    decoder_block,
    joined,
    sublayers,
)
from selfattn.doctor.kinds.blocks.encoder import mistakes as encoder
from selfattn.doctor.kinds.blocks.sublayers import add, alone_in_place
from selfattn.masks import causal_mask


@mistake
def the_future_is_seen(parts, x, context, mask=None):
    """It learns to copy the next word, and cannot write.

    Cause: Self-attention got no causal mask. In PyTorch the caller must hand
        it in, as tgt_mask.
    Cure: Position i sees the positions up to i.
    Chapter: masks
    """
    return joined(parts, x, sublayers(parts, x, context, mask, None))


@mistake
def only_the_future_is_seen(parts, x, context, mask=None):
    """It sees what comes after it, and not what came before.

    Cause: The causal mask is upside down: True means “may attend” in one
        place and “may not” in the other.
    Cure: ~mask, once.
    Chapter: masks
    """
    past = partial(upside_down, causal_mask)
    return joined(parts, x, sublayers(parts, x, context, mask, past))


def upside_down(make, n_q, n_k):
    """A mask that allows what another forbids."""
    return ~make(n_q, n_k)


@mistake
def one_too_many(parts, x, context, mask=None):
    """Each token sees the next one, the very one that it is to guess.

    Cause: The causal mask's diagonal is off by one.
    Cure: j <= i: itself, and what came before.
    Chapter: masks
    """
    wider = partial(shifted, 1)
    return joined(parts, x, sublayers(parts, x, context, mask, wider))


@mistake
def not_itself(parts, x, context, mask=None):
    """A token is not told of itself, and the first one of nothing.

    Cause: The causal mask leaves out the diagonal.
    Cure: j <= i: the diagonal belongs to the past.
    Chapter: masks
    """
    narrower = partial(shifted, -1)
    return joined(parts, x, sublayers(parts, x, context, mask, narrower))


def shifted(diagonal, n_q, n_k):
    """A causal mask with its edge moved; an empty row is left as it was."""
    past = causal_mask(n_q, n_k)
    return past.new_ones(n_q, n_k).tril(diagonal)


@mistake
def no_cross_attention(parts, x, context, mask=None):
    """What it writes has nothing to do with what it was given.

    Cause: The second sublayer is missing.
    Cure: Between self-attention and the feed-forward network, look at the
        context.
    Chapter: masks#the-three-masks-of-a-translator
    """
    first, _, last = sublayers(parts, x, context, mask)
    x = add(x, first, parts.norms[0], parts.pre)
    return add(x, last, parts.norms[2], parts.pre)


@mistake
def cross_attention_to_itself(parts, x, context, mask=None):
    """What it writes has nothing to do with what it was given.

    Cause: Keys and values of the second attention come from x.
    Cure: Queries from x, keys and values from the context.
    Chapter: masks#the-three-masks-of-a-translator
    """
    first, _, last = sublayers(parts, x, context)
    layers = first, lambda h: parts.cross_attention(h, h), last
    return joined(parts, x, layers)


@mistake
def cross_attention_first(parts, x, context, mask=None):
    """Each token asks the context before it knows its neighbours.

    Cause: The two attentions are exchanged.
    Cure: Self-attention first.
    Chapter: masks#the-three-masks-of-a-translator
    """
    first, second, last = sublayers(parts, x, context, mask)
    x = add(x, second, parts.norms[1], parts.pre)
    x = add(x, first, parts.norms[0], parts.pre)
    return add(x, last, parts.norms[2], parts.pre)


@mistake
def attentions_exchanged(parts, x, context, mask=None):
    """Right in shape; but each attention has the other's weights.

    Cause: The attention that was made for the context looks at x, and the
        other at the context.
    Cure: By their names.
    Chapter: masks#the-three-masks-of-a-translator
    """
    past = causal_mask(x.shape[-2], x.shape[-2])
    layers = (
        lambda h: parts.cross_attention(h, h, mask=past),
        lambda h: parts.self_attention(h, context, mask=mask),
        parts.feed_forward,
    )
    return joined(parts, x, layers)


@mistake
def causal_over_the_context(parts, x, context, mask=None):
    """The first words see only the beginning of what was given.

    Cause: The causal mask is used in the cross-attention too.
    Cure: The whole context was there beforehand: mask its padding alone.
    Chapter: masks
    """
    past = causal_mask(x.shape[-2], x.shape[-2]).new_ones(
        x.shape[-2], context.shape[-2]
    )
    both = past.tril() if mask is None else past.tril() & mask
    return joined(parts, x, sublayers(parts, x, context, both))


@mistake
def mask_of_the_context_not_passed_on(parts, x, context, mask=None):
    """Right as long as no context is padded; then padding is read like text.

    Cause: The block takes the mask and does not hand it on, or hands on that
        of its own text.
    Cure: cross_attention(x, context, mask=mask of the context).
    Chapter: masks
    Thread: https://github.com/keras-team/keras-io/pull/1046
    """
    return joined(parts, x, sublayers(parts, x, context))


@mistake
def mask_of_the_context_upside_down(parts, x, context, mask=None):
    """Of the context it sees the padding alone.

    Cause: True means “may attend” in one place and “may not” in the other.
    Cure: ~mask, once.
    Chapter: masks
    """
    other = None if mask is None else ~mask
    return joined(parts, x, sublayers(parts, x, context, other))


@mistake
def no_residual_around_the_cross_attention(parts, x, context, mask=None):
    """A token forgets itself: it keeps only what the context told it.

    Cause: x = cross_attention(…) without x + .
    Cure: x + cross_attention(…).
    Chapter: layers#add-a-path-past-the-layer
    """
    first, second, last = sublayers(parts, x, context, mask)
    x = add(x, first, parts.norms[0], parts.pre)
    x = alone_in_place(parts.pre, x, second, parts.norms[1])
    return add(x, last, parts.norms[2], parts.pre)


@mistake
def no_residual(parts, x, context, mask=None):
    """Deep stacks do not train, and their tokens become alike.

    Cause: Each sublayer replaces x; nothing is added.
    Cure: x + … around all three sublayers.
    Chapter: layers
    """
    layers = sublayers(parts, x, context, mask)
    for layer, norm in zip(layers, parts.norms, strict=True):
        x = alone_in_place(parts.pre, x, layer, norm)
    return x


@mistake_as(encoder.the_norm_on_the_other_side)
def the_norm_on_the_other_side(parts, x, context, mask=None):
    other = parts._replace(pre=not parts.pre)
    return decoder_block(other, x, context, mask)


@mistake
def norm_on_the_path(parts, x, context, mask=None):
    """There is no clear path: every block normalises what it passes on.

    Cause: x = norm(x), and then x + sublayer(x): the residual is taken after
        the norm.
    Cure: Keep x, and normalise only what goes into the sublayer.
    Chapter: layers
    Thread: https://github.com/pytorch/pytorch/issues/61165
    """
    layers = sublayers(parts, x, context, mask)
    for layer, norm in zip(layers, parts.norms, strict=True):
        x = norm(x)
        x = x + layer(x)
    return x


@mistake
def context_normed_like_x(parts, x, context, mask=None):
    """The context is normalised twice: by the encoder, and by this block.

    Cause: The norm before the cross-attention is applied to its keys and
        values as well.
    Cure: norm(x) alone; the context comes as it is.
    Chapter: layers#two-sublayers-and-where-the-norm-stands
    """
    return decoder_block(parts, x, parts.norms[1](context), mask)


@mistake
def norms_exchanged(parts, x, context, mask=None):
    """Right at the start, when all norms are alike, and wrong once trained.

    Cause: The norms do not stand at the sublayers they were trained with.
    Cure: In the order of the sublayers.
    Chapter: layers
    """
    first, second, last = parts.norms
    other = parts._replace(norms=(second, first, last))
    return decoder_block(other, x, context, mask)


@mistake
def no_feed_forward(parts, x, context, mask=None):
    """Attention averages the values of tokens; none is worked on by itself.

    Cause: The third sublayer is missing.
    Cure: Add it, with its own norm.
    Chapter: layers
    """
    first, second, _ = sublayers(parts, x, context, mask)
    x = add(x, first, parts.norms[0], parts.pre)
    return add(x, second, parts.norms[1], parts.pre)


MISTAKES = (
    the_future_is_seen,
    only_the_future_is_seen,
    one_too_many,
    not_itself,
    no_cross_attention,
    cross_attention_to_itself,
    cross_attention_first,
    attentions_exchanged,
    causal_over_the_context,
    mask_of_the_context_not_passed_on,
    mask_of_the_context_upside_down,
    no_residual_around_the_cross_attention,
    no_residual,
    the_norm_on_the_other_side,
    norm_on_the_path,
    context_normed_like_x,
    norms_exchanged,
    no_feed_forward,
)
