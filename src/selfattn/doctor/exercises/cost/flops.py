"""`layer_flops(batch, n, d_model, n_heads)`: operations of one layer."""

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.exercises.cost import number_from, whole
from selfattn.doctor.probes import Probe


def sizes(batch: int, n: int, d_model: int, n_heads: int) -> dict:
    """The four inputs, by name."""
    named = {"batch": batch, "n": n, "d_model": d_model, "n_heads": n_heads}
    return {name: whole(number) for name, number in named.items()}


def layer_flops(batch, n, d_model, n_heads):
    """The solution. The number of heads does not matter."""
    return 8 * batch * n * d_model**2 + 4 * batch * n**2 * d_model


@mistake
def no_projections(batch, n, d_model, n_heads):
    """That is attention itself. A layer costs more.

    Cause: The four projections are missing: that is O(n² d) as the sources
        have it.
    Cure: Each projection multiplies (n, d_model) with (d_model, d_model):
        2 n d_model² operations. Add four of them.
    """
    return 4 * batch * n**2 * d_model


@mistake
def no_attention(batch, n, d_model, n_heads):
    """These are the projections. What is between them costs, too.

    Cause: The two products over all pairs are missing.
    Cure: Add 2 n² d_model for the scores and as much for the averages.
    """
    return 8 * batch * n * d_model**2


@mistake
def no_output_projection(batch, n, d_model, n_heads):
    """One projection is missing.

    Cause: W_q, W_k and W_v are counted, W_o is not.
    Cure: Four projections, 8 n d_model².
    """
    return 6 * batch * n * d_model**2 + 4 * batch * n**2 * d_model


@mistake
def scores_only(batch, n, d_model, n_heads):
    """One of the two products over all pairs is missing.

    Cause: q kᵀ is counted, weights times v is not. It costs as much.
    Cure: 4 n² d_model for both.
    """
    return 8 * batch * n * d_model**2 + 2 * batch * n**2 * d_model


@mistake
def multiply_and_add_as_one(batch, n, d_model, n_heads):
    """Yours is exactly half.

    Cause: A multiplication and the addition that follows count as one. Some
        do that, and call them MACs.
    Cure: Here they are two operations.
    """
    return 4 * batch * n * d_model**2 + 2 * batch * n**2 * d_model


@mistake
def times_the_heads(batch, n, d_model, n_heads):
    """Too much, as soon as there is more than one head.

    Cause: The products over pairs are multiplied by the number of heads, as
        if each head had all features.
    Cure: A head has d_model / n_heads of them; together they have d_model.
    """
    pairs = 4 * batch * n**2 * d_model * n_heads
    return 8 * batch * n * d_model**2 + pairs


@mistake
def one_head_only(batch, n, d_model, n_heads):
    """Too little, as soon as there is more than one head.

    Cause: The products over pairs are those of one head.
    Cure: Multiply by n_heads again: d_model in all.
    """
    pairs = 4 * batch * n**2 * d_model // n_heads
    return 8 * batch * n * d_model**2 + pairs


@mistake
def no_batch(batch, n, d_model, n_heads):
    """It is right for one sequence.

    Cause: The batch is missing.
    Cure: Both terms times batch.
    """
    return 8 * n * d_model**2 + 4 * n**2 * d_model


@mistake
def pairs_across_the_batch(batch, n, d_model, n_heads):
    """Too much for a batch: its sequences do not see each other.

    Cause: The tokens of the whole batch were squared together.
    Cure: batch times n², not (batch times n)².
    """
    return 8 * batch * n * d_model**2 + 4 * (batch * n) ** 2 * d_model


@mistake
def causal_half(batch, n, d_model, n_heads):
    """The part over pairs is half of what it should be.

    Cause: It counts only pairs in the past. No mask was mentioned.
    Cure: All n² pairs.
    """
    return 8 * batch * n * d_model**2 + 2 * batch * n * (n + 1) * d_model


@mistake
def feed_forward_too(batch, n, d_model, n_heads):
    """Too much: it has the feed-forward network in it.

    Cause: 16 n d_model² were added for two matrices of 4 d_model².
    Cure: The attention layer alone.
    """
    return (
        layer_flops(batch, n, d_model, n_heads) + 16 * batch * n * d_model**2
    )


FLOPS = Exercise(
    "cost/flops",
    asks="operations of four projections and two products over all pairs",
    solution=layer_flops,
    use=number_from,
    probes=(
        Probe("one sequence, one head", sizes(1, 7, 5, 1)),
        Probe("every sequence of a batch costs the same", sizes(3, 7, 5, 1)),
        Probe("the heads share the features", sizes(2, 11, 12, 3)),
        Probe("long sequences are mostly attention", sizes(2, 997, 8, 4)),
        Probe("wide layers are mostly projections", sizes(2, 3, 512, 8)),
    ),
    mistakes=(
        no_projections,
        no_attention,
        no_output_projection,
        scores_only,
        multiply_and_add_as_one,
        times_the_heads,
        one_head_only,
        no_batch,
        pairs_across_the_batch,
        causal_half,
        feed_forward_too,
    ),
)
