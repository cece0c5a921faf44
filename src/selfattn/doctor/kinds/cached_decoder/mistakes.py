"""The mistakes of the kind `cached-decoder`."""

import math

import torch

from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.positions.rope import angles, turned
from selfattn.doctor.kinds.cached_decoder.reference import (
    attention,
    count,
    joined,
    project,
)


@mistake
def cache_not_read(x, cache=None):
    """It forgets everything before the chunk it is given.

    Cause: The new tokens attend to themselves alone: the cache is kept, or
        not even that, and never joined to the new keys and values.
    Cure: Attend to the cache and the new ones together.
    Chapter: multihead
    """
    q, k, v = project(x, count(cache))
    return attention(q, k, v, causal=True), joined(cache, k, v)


@mistake
def cache_never_grows(x, cache=None):
    """It remembers the prompt, and nothing of what it wrote since.

    Cause: The joined keys and values are used, and then thrown away.
    Cure: Return them, and hand them in again.
    Chapter: multihead
    """
    q, k, v = project(x, count(cache))
    whole = joined(cache, k, v)
    return attention(q, *whole, causal=True), cache or (k, v)


@mistake
def only_the_last_chunk_kept(x, cache=None):
    """It remembers one chunk back, and no farther.

    Cause: The cache is overwritten by the new keys and values.
    Cure: Join the new ones to the old ones.
    Chapter: multihead
    """
    position = 0 if cache is None else cache[2]
    q, k, v = project(x, position)
    whole = joined(cache, k, v)
    return (
        attention(q, *whole, causal=True),
        (k, v, position + x.shape[1]),
    )


@mistake
def new_keys_come_too_late(x, cache=None):
    """A word does not see itself.

    Cause: It attends to the cache before its own keys and values are in it.
    Cure: Join first, attend then.
    Chapter: multihead
    """
    q, k, v = project(x, count(cache))
    if cache is None:
        return attention(q, k, v, causal=True), (k, v)
    return attention(q, *cache), joined(cache, k, v)


@mistake
def first_on_first(x, cache=None):
    """Word by word it sees the first word alone.

    Cause: The causal mask has its first query on the first key, as
        is_causal=True of F.scaled_dot_product_attention does.
    Cure: The last query sits on the last key: move the diagonal by the
        length of the cache.
    Chapter: masks
    Thread: https://github.com/pytorch/pytorch/issues/144858
    """
    q, k, v = project(x, count(cache))
    k, v = joined(cache, k, v)
    mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril()
    return attention(q, k, v, mask=mask), (k, v)


@mistake
def not_causal_within_a_chunk(x, cache=None):
    """Right word by word; in a longer chunk, each word sees those after it.

    Cause: With a cache the mask is left out, since a single new word may see
        everything.
    Cure: Among several new words, the causal mask is needed as ever.
    Chapter: masks
    """
    q, k, v = project(x, count(cache))
    whole = joined(cache, k, v)
    return attention(q, *whole, causal=cache is None), whole


@mistake
def not_causal(x, cache=None):
    """At once it sees the future; word by word it cannot.

    Cause: There is no causal mask: only the cache keeps the future away.
    Cure: causal=True, with the last query on the last key.
    Chapter: masks
    Thread: https://github.com/meta-pytorch/torchtune/issues/959
    """
    q, k, v = project(x, count(cache))
    whole = joined(cache, k, v)
    return attention(q, *whole), whole


def without_itself(q, k, v, fill):
    """Attention to what came before each word, and not to itself."""
    n_q, n_k = q.shape[1], k.shape[1]
    before = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q - 1)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~before, fill).softmax(dim=-1) @ v


@mistake
def not_itself_and_the_first_averages(x, cache=None):
    """At once, the first word gets the average of all; singly, of itself.

    Cause: The causal mask leaves out the diagonal, as tril(diagonal=-1) does.
        That leaves the first row empty. Forbidden scores are a large negative
        number such as -1e9; where all are forbidden, all are equal.
    Cure: j <= i: the diagonal belongs to the past.
    Chapter: masks
    """
    q, k, v = project(x, count(cache))
    k, v = joined(cache, k, v)
    return without_itself(q, k, v, -1e9), (k, v)


@mistake
def not_itself_and_the_first_is_nan(x, cache=None):
    """The first word of every text comes out as NaN.

    Cause: The causal mask leaves out the diagonal, as tril(diagonal=-1) does.
        That leaves the first row empty: softmax of a row of -inf is 0/0.
    Cure: j <= i: the diagonal belongs to the past.
    Chapter: masks
    """
    q, k, v = project(x, count(cache))
    k, v = joined(cache, k, v)
    return without_itself(q, k, v, -torch.inf), (k, v)


@mistake
def positions_start_again(x, cache=None):
    """Word by word all words stand at position 0, and order does not tell.

    Cause: Each chunk's positions are counted from 0.
    Cure: From the length of the cache on.
    Chapter: positions
    """
    q, k, v = project(x, 0)
    whole = joined(cache, k, v)
    return attention(q, *whole, causal=True), whole


@mistake
def positions_count_the_chunks(x, cache=None):
    """Right word by word, and wrong after a prompt.

    Cause: The position is the number of calls, not that of tokens.
    Cure: The length of the cache.
    Chapter: positions
    """
    step = 0 if cache is None else cache[2]
    q, k, v = project(x, step)
    whole = joined(cache, k, v)
    return attention(q, *whole, causal=True), (*whole, step + 1)


@mistake
def new_words_at_wrong_distances(x, cache=None):
    """From the second chunk on, everything stands at another place.

    Cause: The new tokens' positions do not begin at the length of the cache.
        They begin one farther, say, or the bias for their distances is cut
        from the first rows of its table, which are those of the first words.
    Cure: Positions are counted from 0, so the next one is the number of
        tokens in the cache; of a table, take the last rows.
    Chapter: positions
    Thread: https://github.com/TransformerLensOrg/TransformerLens/issues/776
    """
    q, k, v = project(x, 0 if cache is None else count(cache) + 1)
    whole = joined(cache, k, v)
    return attention(q, *whole, causal=True), whole


@mistake
def keys_rotated_again(x, cache=None):
    """The farther back a key lies, the more often it has been turned.

    Cause: Keys are kept rotated, and all of them are rotated at every step.
    Cure: Rotate each key once: the new ones before they join the others.
    Chapter: positions
    """
    q, new, v = project(x, count(cache))
    if cache is None:
        return attention(q, new, v, causal=True), (new, v)
    k, v = (
        torch.cat((turned(cache[0], angles(cache[0], 0)), new), 1),
        torch.cat((cache[1], v), 1),
    )
    return attention(q, k, v, causal=True), (k, v)


@mistake
def keys_kept_without_positions(x, cache=None):
    """The order of the words before does not tell.

    Cause: Keys are kept as they are before rotation, and are not rotated
        when they are read.
    Cure: Keep them rotated, or rotate all of them when they are read.
    Chapter: positions
    """
    q, rotated, v = project(x, count(cache))
    plain = torch.cat(
        [project(word, 0)[1] for word in x.split(1, dim=1)], dim=1
    )
    whole = joined(cache, rotated, v)
    return attention(q, *whole, causal=True), joined(cache, plain, v)


@mistake
def trimmed_before_it_is_read(x, cache=None):
    """A chunk loses words that it should still see.

    Cause: The oldest keys and values are dropped, to keep the cache short,
        before the new tokens have attended to them.
    Cure: Attend first; then drop what no later token will see.
    Chapter: multihead
    """
    room, position = 3, 0 if cache is None else cache[2]
    q, k, v = project(x, position)
    whole = joined(cache, k, v)
    if cache is not None:
        whole = whole[0][:, -room:], whole[1][:, -room:]
    output = attention(q, *whole, causal=True)
    return output, (*whole, position + x.shape[1])


@mistake
def last_word_not_kept(x, cache=None):
    """The newest word of each chunk is forgotten.

    Cause: The cache is cut one short, [:, :-1], for the new token to come.
    Cure: Keep all that was read.
    Chapter: multihead
    """
    position = 0 if cache is None else cache[2]
    q, k, v = project(x, position)
    k, v = joined(cache, k, v)
    output = attention(q, k, v, causal=True)
    return output, (k[:, :-1], v[:, :-1], position + x.shape[1])


@mistake
def new_ones_in_front(x, cache=None):
    """The mask hides the past from the words, and shows them the future.

    Cause: torch.cat((new, old)): the new keys and values stand first.
    Cure: torch.cat((old, new)).
    Chapter: masks
    """
    q, k, v = project(x, count(cache))
    whole = k, v
    if cache is not None:
        whole = torch.cat((k, cache[0]), 1), torch.cat((v, cache[1]), 1)
    return attention(q, *whole, causal=True), whole


@mistake
def first_text_for_all(x, cache=None):
    """All texts of a batch go on as the first one began.

    Cause: The cache has one row, or its first row is read for all texts.
    Cure: A row for each text.
    Chapter: multihead
    """
    q, k, v = project(x, count(cache))
    if cache is not None:
        cache = tuple(kept[:1].expand_as(kept) for kept in cache)
    whole = joined(cache, k, v)
    return attention(q, *whole, causal=True), whole


@mistake
def keys_kept_as_values(x, cache=None):
    """From the second chunk on it says something else.

    Cause: Keys and values are exchanged when they are kept or read.
    Cure: One order in both places.
    Chapter: multihead
    """
    q, k, v = project(x, count(cache))
    whole = joined(cache and cache[::-1], k, v)
    return attention(q, *whole, causal=True), whole


@mistake
def kept_in_half_precision(x, cache=None):
    """It says almost the same, to three digits.

    Cause: The cache is in float16 or bfloat16, the model in float32.
    Cure: Keep them in the model's type, or bear it knowingly.
    Chapter: multihead
    """
    q, k, v = project(x, count(cache))
    if cache is not None:
        cache = tuple(kept.to(k.dtype) for kept in cache)
    k, v = joined(cache, k, v)
    return attention(q, k, v, causal=True), (k.bfloat16(), v.bfloat16())


MISTAKES = (
    cache_not_read,
    cache_never_grows,
    only_the_last_chunk_kept,
    new_keys_come_too_late,
    first_on_first,
    not_causal_within_a_chunk,
    not_causal,
    not_itself_and_the_first_averages,
    not_itself_and_the_first_is_nan,
    positions_start_again,
    positions_count_the_chunks,
    new_words_at_wrong_distances,
    keys_rotated_again,
    keys_kept_without_positions,
    trimmed_before_it_is_read,
    last_word_not_kept,
    new_ones_in_front,
    first_text_for_all,
    keys_kept_as_values,
    kept_in_half_precision,
)
