"""The parts of an encoder block, wrongly joined."""

from functools import partial

from selfattn.doctor.exercise import mistake
from selfattn.doctor.kinds.blocks.encoder.reference import encoder_block
from selfattn.doctor.kinds.blocks.sublayers import add, alone_in_place


@mistake
def the_norm_on_the_other_side(parts, x, mask=None):
    """It trains otherwise: deep stacks learn more often with the norms before.

    Cause: Pre-norm, x + sublayer(norm(x)), and post-norm,
        norm(x + sublayer(x)), are exchanged.
    Cure: See which of the two your weights were trained for; `norm_first`
        in PyTorch.
    Chapter: layers
    """
    return encoder_block(parts._replace(pre=not parts.pre), x, mask)


@mistake
def norm_on_the_path(parts, x, mask=None):
    """There is no clear path: every block normalises what it passes on.

    Cause: x = norm(x), and then x + sublayer(x): the residual is taken after
        the norm.
    Cure: Keep x, and normalise only what goes into the sublayer:
        x + sublayer(norm(x)).
    Chapter: layers
    Thread: https://github.com/pytorch/pytorch/issues/61165
    """
    first, second = parts.norms
    x = first(x)
    x = second(x + parts.attention(x, mask=mask))
    return x + parts.feed_forward(x)


@mistake
def second_residual_after_its_norm(parts, x, mask=None):
    """The path is clear past the attention, but not past the rest.

    Cause: x = norm(x) stands before the feed-forward network, and its
        output is added to that x.
    Cure: Keep x, and add to it: x + feed_forward(norm(x)).
    Chapter: layers
    Thread: https://github.com/SHI-Labs/Compact-Transformers/issues/25
    """
    first, second = parts.norms
    x = add(x, partial(parts.attention, mask=mask), first, parts.pre)
    x = second(x)
    return x + parts.feed_forward(x)


@mistake
def norm_behind_the_sublayer(parts, x, mask=None):
    """What a sublayer adds has always the same size.

    Cause: x + norm(sublayer(x)): the norm is in the wrong brackets.
    Cure: x + sublayer(norm(x)), or norm(x + sublayer(x)).
    Chapter: layers
    """
    first, second = parts.norms
    x = x + first(parts.attention(x, mask=mask))
    return x + second(parts.feed_forward(x))


@mistake
def norm_before_and_behind(parts, x, mask=None):
    """Each norm is applied twice.

    Cause: norm(x + sublayer(norm(x))): pre-norm and post-norm at once.
    Cure: One of the two.
    Chapter: layers
    """
    first, second = parts.norms
    x = first(x + parts.attention(first(x), mask=mask))
    return second(x + parts.feed_forward(second(x)))


@mistake
def no_norm(parts, x, mask=None):
    """Activations grow from block to block.

    Cause: The norms were made, but they are not called.
    Cure: One norm for each sublayer.
    Chapter: layers
    """
    x = x + parts.attention(x, mask=mask)
    return x + parts.feed_forward(x)


@mistake
def second_norm_not_used(parts, x, mask=None):
    """The feed-forward network's input, or its sum, is as large as it likes.

    Cause: The second norm is made, or even called, and the line after it
        still uses what it was called with.
    Cure: Use what the norm returns.
    Chapter: layers
    """
    norms = parts.norms[0], lambda x: x
    return encoder_block(parts._replace(norms=norms), x, mask)


@mistake
def first_norm_not_used(parts, x, mask=None):
    """What attention sees, or its sum, is as large as it likes.

    Cause: The first norm is made, or even called, and the line after it
        still uses what it was called with.
    Cure: Use what the norm returns.
    Chapter: layers
    """
    norms = (lambda x: x), parts.norms[1]
    return encoder_block(parts._replace(norms=norms), x, mask)


@mistake
def one_norm_for_both(parts, x, mask=None):
    """One norm is never trained: it has no gradient.

    Cause: The first norm is called in both places.
    Cure: Each sublayer has its own, with its own gain and shift.
    Chapter: layers
    """
    norms = parts.norms[0], parts.norms[0]
    return encoder_block(parts._replace(norms=norms), x, mask)


@mistake
def norms_exchanged(parts, x, mask=None):
    """Right at the start, when all norms are alike, and wrong once trained.

    Cause: The second norm stands at the attention, the first at the
        feed-forward network.
    Cure: In the order of the sublayers.
    Chapter: layers
    """
    return encoder_block(parts._replace(norms=parts.norms[::-1]), x, mask)


@mistake
def no_residual(parts, x, mask=None):
    """Deep stacks do not train, and their tokens become alike.

    Cause: Each sublayer replaces x; nothing is added.
    Cure: x + … around both sublayers.
    Chapter: layers
    """
    alone = partial(alone_in_place, parts.pre)
    x = alone(x, partial(parts.attention, mask=mask), parts.norms[0])
    return alone(x, parts.feed_forward, parts.norms[1])


@mistake
def no_residual_around_the_attention(parts, x, mask=None):
    """A token forgets itself: it keeps only what it was told.

    Cause: x = attention(…) without x + .
    Cure: x + attention(…).
    Chapter: layers
    """
    attend = partial(parts.attention, mask=mask)
    x = alone_in_place(parts.pre, x, attend, parts.norms[0])
    return add(x, parts.feed_forward, parts.norms[1], parts.pre)


@mistake
def no_residual_around_the_feed_forward(parts, x, mask=None):
    """What attention brought goes on only through the feed-forward network.

    Cause: x = feed_forward(…) without x + .
    Cure: x + feed_forward(…).
    Chapter: layers
    """
    attend = partial(parts.attention, mask=mask)
    x = add(x, attend, parts.norms[0], parts.pre)
    return alone_in_place(parts.pre, x, parts.feed_forward, parts.norms[1])


@mistake
def residual_from_the_start(parts, x, mask=None):
    """What attention brought is not passed on.

    Cause: Both sublayers are added to the block's input: the sum after the
        attention was given another name, and forgotten.
    Cure: Add the feed-forward network to the sum after the attention.
    Chapter: layers
    """
    first, second = parts.norms
    h = add(x, partial(parts.attention, mask=mask), first, parts.pre)
    if parts.pre:
        return x + parts.feed_forward(second(h))
    return second(x + parts.feed_forward(h))


@mistake
def side_by_side(parts, x, mask=None):
    """The feed-forward network does not see what attention brought.

    Cause: Both sublayers work on the same input, as in GPT-J. That is a
        block of its own; weights of the usual one are noise in it.
    Cure: One after the other.
    Chapter: layers
    """
    first, second = parts.norms
    if parts.pre:
        attended = parts.attention(first(x), mask=mask)
        return x + attended + parts.feed_forward(second(x))
    attended = parts.attention(x, mask=mask)
    return second(first(x + attended + parts.feed_forward(x)))


@mistake
def feed_forward_first(parts, x, mask=None):
    """Each token is worked on before it was told anything.

    Cause: The two sublayers are exchanged.
    Cure: Attention first.
    Chapter: layers
    """
    first, second = parts.norms
    h = add(x, parts.feed_forward, second, parts.pre)
    attend = partial(parts.attention, mask=mask)
    return add(h, attend, first, parts.pre)


@mistake
def no_feed_forward(parts, x, mask=None):
    """Attention averages the values of tokens; none is worked on by itself.

    Cause: The second sublayer is missing.
    Cure: Add it, with its own norm.
    Chapter: layers
    """
    attend = partial(parts.attention, mask=mask)
    return add(x, attend, parts.norms[0], parts.pre)


@mistake
def mask_not_passed_on(parts, x, mask=None):
    """Right as long as nothing is padded; then padding is read like text.

    Cause: The block takes a mask and does not hand it to its attention.
    Cure: attention(x, mask=mask).
    Chapter: masks
    """
    return encoder_block(parts, x)


@mistake
def mask_upside_down(parts, x, mask=None):
    """It sees what it shall not see, and nothing else.

    Cause: True means “may attend” in one place and “may not” in the other,
        as between F.scaled_dot_product_attention and nn.MultiheadAttention.
    Cure: ~mask, once.
    Chapter: masks
    """
    return encoder_block(parts, x, None if mask is None else ~mask)


@mistake
def texts_exchanged_with_tokens(parts, x, mask=None):
    """Sequences of a batch see one another, and their own tokens do not.

    Cause: (batch, n, d) is taken for (n, batch, d): batch_first is missing.
    Cure: batch_first=True, or transpose.
    Chapter: multihead
    """
    return encoder_block(parts, x.transpose(0, 1)).transpose(0, 1)


@mistake
def sum_in_place(parts, x, mask=None):
    """The caller's x is another one afterwards.

    Cause: x += … writes into the input.
    Cure: x = x + …
    Chapter: layers
    """
    first, second = parts.norms
    if parts.pre:
        x += parts.attention(first(x), mask=mask)
        return x + parts.feed_forward(second(x))
    x += parts.attention(x, mask=mask)
    x = first(x)
    return second(x + parts.feed_forward(x))


MISTAKES = (
    the_norm_on_the_other_side,
    norm_on_the_path,
    second_residual_after_its_norm,
    norm_behind_the_sublayer,
    norm_before_and_behind,
    no_norm,
    first_norm_not_used,
    second_norm_not_used,
    one_norm_for_both,
    norms_exchanged,
    no_residual,
    no_residual_around_the_attention,
    no_residual_around_the_feed_forward,
    residual_from_the_start,
    side_by_side,
    feed_forward_first,
    no_feed_forward,
    mask_not_passed_on,
    mask_upside_down,
    texts_exchanged_with_tokens,
    sum_in_place,
)
