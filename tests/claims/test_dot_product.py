"""Claims of the sources on queries, keys and values: what is so.

Each test says which claims of the ledger it settles, and how. Where a claim
is a formula, it is computed here anew, by loops or by plain torch.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from selfattn import (
    MultiHeadAttention,
    attention,
    attention_steps,
    attention_weights,
)

settles = pytest.mark.settles
SENTENCE = ["The", "cat", "sat", "on", "the", "mat"]
N, D, D_K, D_V = 7, 11, 5, 13  # tokens and widths: all different primes


def tensor(rows):
    """Numbers in double precision."""
    return torch.tensor(rows, dtype=torch.float64)


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def by_loops(q, k, v):
    """Attention as the formula has it, one query and one key at a time."""
    weights = torch.zeros(len(q), len(k), dtype=q.dtype)
    output = torch.zeros(len(q), v.shape[-1], dtype=q.dtype)
    for i in range(len(q)):
        e = [math.exp(float(q[i] @ key) / math.sqrt(len(key))) for key in k]
        for j in range(len(k)):
            weights[i, j] = e[j] / sum(e)
            output[i] += weights[i, j] * v[j]
    return weights, output


@pytest.fixture
def x():
    return draw(N, D)


@pytest.fixture
def projected(x):
    """Queries, keys and values of one input, by three random matrices."""
    W_q, W_k, W_v = draw(D, D_K), draw(D, D_K), draw(D, D_V)
    return x @ W_q, x @ W_k, x @ W_v


# What goes in


@settles("000-001", "holds")
@settles("000-008", "holds")
@settles("004-009", "holds")
def test_self_attention_is_cross_attention_with_itself():
    layer = MultiHeadAttention(12, 3).double()
    x, context = draw(2, N, 12), draw(2, 3, 12)
    assert_close(layer(x), layer(x, x))
    assert not torch.allclose(layer(x), layer(x, context))


@settles("000-042", "holds-with-caveat")
@settles("000-024", "holds-with-caveat")
@settles("001-062", "holds-with-caveat")
def test_the_table_is_square_only_for_as_many_keys_as_queries():
    q, k, v = draw(N, D_K), draw(N, D_K), draw(N, D_V)
    assert attention_weights(q, k).shape == (N, N)
    assert attention_weights(q[:3], k).shape == (3, N)
    # One step of self-attention with cached keys is one row, not a square.
    step = attention(q[-1:], k, v, causal=True)
    assert_close(step, attention(q, k, v, causal=True)[-1:])


@settles("003-008", "holds")
@settles("003-009", "holds")
@settles("004-052", "holds")
@settles("000-005", "holds-with-caveat")
def test_three_linear_maps_of_each_token(x):
    W = draw(D, D_K)
    assert (x @ W).shape == (N, D_K)
    for i in range(N):
        assert_close((x @ W)[i], x[i] @ W)
    assert_close((2 * x) @ W, 2 * (x @ W))
    # The source's own layer adds a bias, which its formula has not.
    biased = nn.Linear(D, D_K).double()
    assert not torch.allclose(biased(2 * x), 2 * biased(x))


@settles("000-007", "holds")
@settles("000-080", "holds")
@settles("001-007", "holds")
@settles("001-009", "holds")
@settles("001-019", "holds")
@settles("001-059", "holds")
@settles("002-012", "holds")
@settles("003-028", "holds")
@settles("003-033", "holds")
@settles("004-051", "holds")
@settles("004-056", "holds")
def test_the_shapes():
    x = draw(2, N, D)
    q, k, v = x @ draw(D, D_K), x @ draw(D, D_K), x @ draw(D, D_V)
    assert q.shape == k.shape == (2, N, D_K)
    assert v.shape == (2, N, D_V)
    steps = attention_steps(q, k, v)
    assert steps.scores.shape == steps.weights.shape == (2, N, N)
    assert steps.output.shape == (2, N, D_V)


@settles("002-011", "wrong")
@settles("003-029", "holds-with-caveat")
@settles("004-017", "holds-with-caveat")
@settles("004-053", "contradicts-another-source")
@settles("004-055", "contradicts-another-source")
@settles("004-059", "holds-with-caveat")
def test_the_output_is_as_wide_as_the_values(x, projected):
    q, k, v = projected
    assert v.shape[-1] != q.shape[-1]
    assert attention(q, k, v).shape == (N, v.shape[-1])
    assert attention(q, k, v).shape[-1] != x.shape[-1]


@settles("002-015", "holds-with-caveat")
def test_queries_are_as_wide_as_keys_not_as_the_input(x, projected):
    q, k, _ = projected
    assert q.shape == (N, D_K)
    assert k.mT.shape == (D_K, N)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        x @ k.mT


@settles("001-079", "holds-with-caveat")
def test_the_shapes_with_several_heads():
    layer = MultiHeadAttention(12, 3).double()
    x = draw(2, N, 12)
    assert layer.weights(x).shape == (2, 3, N, N)
    assert layer(x).shape == (2, N, 12)


@settles("000-075", "holds-with-caveat")
@settles("003-031", "contradicts-another-source")
def test_parameters_with_and_without_biases():
    def count(*layers):
        return sum(p.numel() for layer in layers for p in layer.parameters())

    with_bias = [nn.Linear(64, 64) for _ in range(4)]
    without = [nn.Linear(64, 64, bias=False) for _ in range(3)]
    assert count(*with_bias) == 16_640
    assert count(*with_bias[:3]) == 12_480
    assert count(*without) == 12_288


@settles("000-076", "contradicts-another-source")
@settles("003-037", "contradicts-another-source")
def test_an_output_projection_makes_another_layer(projected):
    output = attention(*projected)
    project = nn.Linear(D_V, D_V).double()
    assert (project(output) - output).abs().max() > 0.1


@settles("000-073", "holds-with-caveat")
def test_or_takes_nought_for_nothing():
    d_k, d_model = 0, 32
    assert (d_k or d_model) == 32  # what the listing does
    assert (d_model if d_k is None else d_k) == 0  # what it means


@settles("004-015", "holds-with-caveat")
def test_torch_stores_one_embedding_a_row():
    E = draw(D, 17)  # as the source has it: one column a word
    embedding = nn.Embedding.from_pretrained(E.T)
    assert embedding.weight.shape == (17, D)
    assert_close(embedding(torch.tensor([3])), E[:, 3][None])
    # A look-up is a product with a one-hot vector.
    assert_close(E @ F.one_hot(torch.tensor(3), 17).double(), E[:, 3])


@settles("004-016", "holds-with-caveat")
def test_columns_and_rows_are_transposes(x):
    Q = draw(D_K, D)
    one_by_one = torch.stack([Q @ token for token in x])
    assert_close(one_by_one, x @ Q.T)


# The formula


@settles("000-006", "holds")
@settles("000-020", "holds")
@settles("001-020", "holds")
@settles("001-061", "holds")
@settles("002-009", "holds")
@settles("002-013", "holds")
@settles("002-030", "holds")
@settles("002-053", "holds")
@settles("003-010", "holds")
@settles("003-030", "holds")
@settles("004-014", "holds-with-caveat")
@settles("004-019", "holds")
@settles("004-021", "holds")
def test_the_formula_by_loops_and_by_torch(projected):
    weights, output = by_loops(*projected)
    steps = attention_steps(*projected)
    assert_close(steps.weights, weights)
    assert_close(steps.output, output)
    assert_close(F.scaled_dot_product_attention(*projected), output)


@settles("000-074", "holds")
@settles("002-010", "holds")
def test_multiplying_by_the_inverse_root_is_dividing(projected):
    q, k, v = projected
    root = math.sqrt(k.shape[-1])
    assert_close(q @ k.mT * k.shape[-1] ** -0.5, q @ k.mT / root)
    assert_close(attention_steps(q, k, v).scaled, q @ k.mT / root)


@settles("002-008", "holds-with-caveat")
def test_without_scaling_the_weights_are_others(projected):
    q, k, _ = projected
    three_steps = (q @ k.mT).softmax(dim=-1)  # compare, softmax, multiply
    assert (attention_weights(q, k) - three_steps).abs().max() > 0.01


@settles("001-010", "holds")
@settles("003-011", "holds-with-caveat")
@settles("004-057", "holds")
@settles("000-019", "holds")
def test_row_i_is_the_query_column_j_the_key(projected):
    q, k, v = projected
    steps = attention_steps(q, k, v)
    for i in range(N):
        for j in range(N):
            assert_close(steps.scores[i, j], q[i] @ k[j])
    assert_close(steps.weights.sum(dim=-1), torch.ones(N).double())
    assert not torch.allclose(
        steps.weights.sum(dim=-2), torch.ones(N).double()
    )


@settles("001-011", "wrong")
def test_the_drawing_with_queries_as_columns_is_the_transpose(projected):
    q, k, _ = projected
    scores = q @ k.mT
    drawn = k @ q.mT  # the drawing's rows are keys, its columns queries
    assert_close(scores[1, 0], q[1] @ k[0])  # "cat" asks, "The" is asked
    assert_close(drawn[0, 1], q[1] @ k[0])
    assert not torch.allclose(drawn[1, 0], q[1] @ k[0])


@settles("004-054", "holds")
def test_all_rows_at_once_are_the_rows_one_by_one(projected):
    q, k, v = projected
    one_by_one = torch.cat([attention(q[i : i + 1], k, v) for i in range(N)])
    assert_close(attention(q, k, v), one_by_one)


@settles("004-060", "wrong")
def test_two_products_and_a_softmax_not_one_operation(projected):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        attention(*projected)
    table = 2 * N * N * D_K  # multiplications and additions of q kᵀ
    average = 2 * N * N * D_V
    assert counter.get_total_flops() == table + average


@settles("002-001", "holds")
def test_there_is_a_score_for_every_pair(projected):
    q, k, v = projected
    assert attention_steps(q, k, v).scores.numel() == N**2


# The weights


@settles("000-002", "holds-with-caveat")
@settles("000-043", "holds")
@settles("001-005", "holds-with-caveat")
@settles("001-060", "holds")
@settles("002-006", "holds")
@settles("003-005", "holds")
@settles("003-007", "holds-with-caveat")
def test_every_token_sees_every_token_unless_masked(x):
    W_q, W_k, W_v = draw(D, D_K), draw(D, D_K), draw(D, D_V)

    def moved(causal):
        """The largest change of output i for a change of token j."""
        jacobian = torch.autograd.functional.jacobian(
            lambda x: attention(x @ W_q, x @ W_k, x @ W_v, causal=causal), x
        )
        return jacobian.abs().amax(dim=(1, 3))

    assert (moved(causal=False) > 0).all()
    assert (attention_weights(x @ W_q, x @ W_k) > 0).all()
    assert (moved(causal=True).triu(1) == 0).all()


@settles("001-015", "holds")
@settles("002-061", "holds")
@settles("003-013", "holds")
@settles("004-058", "holds")
@settles("000-083", "holds")
def test_the_rows_of_the_weights_sum_to_one(projected):
    weights = attention_weights(*projected[:2])
    sums = weights.sum(dim=-1)
    assert_close(sums, torch.ones_like(sums))
    assert f"{sums[0].item():.4f}" == "1.0000"


@settles("000-021", "holds-with-caveat")
def test_rows_do_not_sum_to_one_under_dropout():
    weights = attention_weights(draw(N, D_K), draw(N, D_K))
    assert_close(weights.sum(dim=-1), torch.ones(N).double())
    dropped = F.dropout(weights, 0.3, training=True)
    assert ((dropped.sum(dim=-1) - 1).abs() > 1e-3).any()
    # Nor in a row whose every score is minus infinity.
    assert torch.full((3,), -math.inf).softmax(dim=-1).isnan().all()


@settles("002-062", "holds")
def test_the_other_axis_normalises_over_the_queries(projected):
    scores = attention_steps(*projected).scaled
    columns = scores.softmax(dim=-2)
    assert_close(columns.sum(dim=-2), torch.ones(N).double())
    assert ((columns.sum(dim=-1) - 1).abs() > 0.1).any()


@settles("002-068", "wrong")
def test_the_mean_row_sum_cannot_see_the_wrong_axis(projected):
    wrong = attention_steps(*projected).scaled.softmax(dim=-2)
    sums = wrong.sum(dim=-1)
    assert_close(sums.mean(), torch.tensor(1.0).double())
    assert (sums - 1).abs().max() > 0.1  # the largest deviation can


@settles("000-023", "holds")
@settles("002-016", "holds-with-caveat")
@settles("000-131", "holds")
def test_scores_and_weights_are_not_symmetric(projected):
    steps = attention_steps(*projected)
    for table in (steps.scores, steps.weights):
        assert (table - table.mT).abs().max() > 1e-3


@settles("000-018", "holds-with-caveat")
def test_one_matrix_for_both_gives_symmetric_scores_only(x):
    q = k = x @ draw(D, D_K)
    steps = attention_steps(q, k, x)
    assert_close(steps.scores, steps.scores.mT)
    assert (steps.weights - steps.weights.mT).abs().max() > 0.01


@settles("003-012", "holds")
def test_a_row_of_weights_keeps_the_order_of_its_scores():
    scores = tensor([[1.0, 0.0, 2.0], [9.0, 5.0, 6.0]])
    weights = scores.softmax(dim=-1)
    assert torch.equal(weights.argsort(dim=-1), scores.argsort(dim=-1))
    # Not so across rows: the score of 2 weighs more than the score of 6.
    assert weights[0, 2] > weights[1, 2]


@settles("004-022", "holds-with-caveat")
def test_a_longer_key_gets_more_weight():
    q = tensor([[1.0, 0.0]])
    keys = tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]])
    longer = keys.clone()
    longer[1] *= 2  # its direction, and so its cosine with q, is the same
    assert_close(
        attention_weights(q, keys)[0], tensor([0.284, 0.576, 0.140]),
        atol=5e-4, rtol=0,
    )  # fmt: skip
    assert_close(
        attention_weights(q, longer)[0], tensor([0.102, 0.848, 0.050]),
        atol=5e-4, rtol=0,
    )  # fmt: skip


@settles("003-080", "wrong")
def test_scores_come_before_the_softmax_and_are_scaled():
    torch.manual_seed(0)
    q, k = draw(200, 64), draw(64, 64)
    plotted = (q @ k.mT).softmax(dim=-1).amax(dim=-1).mean()
    used = attention_weights(q, k).amax(dim=-1).mean()
    assert plotted > 0.7
    assert used < 0.2


# The average


@settles("002-014", "holds")
@settles("003-014", "holds")
def test_the_output_lies_among_the_values(projected):
    q, k, v = projected
    output = attention(q, k, v)
    assert (output >= v.amin(dim=0)).all()
    assert (output <= v.amax(dim=0)).all()


@settles("002-007", "holds-with-caveat")
@settles("004-013", "holds")
def test_a_sharper_lookup_is_a_dictionary():
    keys, values = torch.eye(N).double(), draw(N, D_V)

    def error(sharpness):
        found = attention(keys, keys, values, scale=sharpness)
        return (found - values).abs().max()

    assert error(1.0) > 0.5
    assert error(10.0) < 1e-3
    assert error(100.0) < 1e-12


@settles("004-028", "wrong")
@settles("004-029", "wrong")
def test_attention_is_not_linear_in_its_input(x):
    W_q, W_k, W_v = draw(D, D_K), draw(D, D_K), draw(D, D_V)

    def attend(x):
        return attention(x @ W_q, x @ W_k, x @ W_v)

    def far(a, b):
        return ((a - b).norm() / b.norm()).item()

    y = draw(N, D)
    assert far(attend(2 * x), 2 * attend(x)) > 0.1
    assert far(attend(x + y), attend(x) + attend(y)) > 0.1
    # Without the softmax it is cubic.
    plain = (x @ W_q) @ (x @ W_k).mT @ (x @ W_v)
    double = (2 * x @ W_q) @ (2 * x @ W_k).mT @ (2 * x @ W_v)
    assert_close(double, 8 * plain)
    # With the weights held still it is linear, and so it is in the values.
    weights = attention_weights(x @ W_q, x @ W_k)
    assert_close(weights @ (2 * x @ W_v), 2 * attend(x))


@settles("004-030", "holds-with-caveat")
def test_stacked_attention_averages_averages(x):
    first = draw(N, N).softmax(dim=-1)
    second = draw(N, N).softmax(dim=-1)
    W, U = draw(D, D), draw(D, D)
    # With fixed weights two layers are one linear map;
    assert_close(second @ (first @ x @ W) @ U, (second @ first) @ x @ (W @ U))
    # but the weights of the second depend on what the first put out.
    assert not torch.allclose(
        attention_weights(x, x), attention_weights(first @ x, first @ x)
    )


# The softmax in floating point


@settles("002-063", "holds-with-caveat")
def test_a_bare_exponential_overflows():
    assert torch.tensor(88.0).exp().isfinite()
    assert torch.tensor(89.0).exp() == math.inf
    scores = torch.tensor([1e4, 0.0])
    naive = scores.exp() / scores.exp().sum()
    assert naive.isnan().any()
    shifted = (scores - scores.max()).exp()
    assert_close(shifted / shifted.sum(), torch.tensor([1.0, 0.0]))


@settles("002-064", "holds-with-caveat")
def test_torch_subtracts_the_largest_itself():
    scores = torch.randn(N, N) * 100
    shifted = scores - scores.amax(dim=-1, keepdim=True)
    assert_close(shifted.softmax(dim=-1), scores.softmax(dim=-1))
    assert torch.tensor([1e4, 2e4, 1.0]).softmax(dim=-1).isfinite().all()
    empty = torch.full((3,), -math.inf)
    assert empty.softmax(dim=-1).isnan().all()
    assert (empty - empty.max()).softmax(dim=-1).isnan().all()


@settles("003-055", "holds-with-caveat")
def test_only_an_infinite_score_makes_nan():
    assert torch.tensor([1e38, 1.0]).softmax(dim=-1).tolist() == [1.0, 0.0]
    assert torch.tensor([math.inf, 1.0]).softmax(dim=-1).isnan().any()
    loud = torch.full((1, 64), 40.0, dtype=torch.float16)
    assert (loud @ loud.mT).item() == math.inf  # 102,400 is past 65,504


@settles("001-083", "holds-with-caveat")
def test_a_softmax_is_nought_only_after_underflow():
    assert torch.tensor([0.0, -103.0]).softmax(dim=-1)[1] > 0
    assert torch.tensor([0.0, -104.0]).softmax(dim=-1)[1] == 0


# What the sources compute by hand


@settles("002-035", "holds")
@settles("002-036", "holds")
@settles("002-037", "holds")
@settles("002-038", "holds")
@settles("002-039", "holds-with-caveat")
@settles("002-040", "holds")
def test_the_example_of_source_2():
    q = tensor([[1.0, 2.0]])
    k = tensor([[1.0, 0.0], [1.0, 2.0]])
    v = tensor([[2.0, 0.0], [0.0, 4.0]])
    steps = attention_steps(q, k, v)
    assert steps.scores.tolist() == [[1.0, 5.0]]
    assert_close(steps.scaled[0], tensor([1, 5]) / math.sqrt(2))
    assert steps.weights[0].tolist() == pytest.approx(
        [0.0558, 0.9442], abs=5e-5
    )
    assert steps.output[0].tolist() == pytest.approx(
        [0.1116, 3.7768], abs=5e-5
    )
    # Its own result comes from weights that were rounded on the way.
    assert (tensor([0.06, 0.94]) @ v).tolist() == pytest.approx([0.12, 3.76])


@settles("003-015", "holds")
@settles("003-016", "holds")
@settles("003-017", "holds")
@settles("003-018", "holds")
@settles("003-019", "holds")
@settles("003-020", "holds")
@settles("003-021", "holds")
@settles("003-022", "holds-with-caveat")
def test_the_example_of_source_3():
    q = tensor([[1.0, 0.0]])
    k = tensor([[1.0, 0.0], [0.0, 1.0]])
    v = tensor([[10.0, 20.0], [30.0, 40.0]])
    steps = attention_steps(q, k, v)
    assert steps.scores.tolist() == [[1.0, 0.0]]
    assert math.sqrt(2) == pytest.approx(1.414, abs=5e-4)
    assert steps.scaled[0].tolist() == pytest.approx([0.707, 0], abs=5e-4)
    assert math.exp(0.707) == pytest.approx(2.028, abs=5e-4)
    assert steps.weights[0].tolist() == pytest.approx([0.67, 0.33], abs=5e-3)
    assert steps.output[0].tolist() == pytest.approx(
        [16.605, 26.605], abs=5e-4
    )
    # A weighs more, yet B brings more to the first component.
    shares = steps.weights[0] * v[:, 0]
    assert steps.weights[0, 0] > steps.weights[0, 1]
    assert shares[0] < shares[1]


SOURCE_0 = [[0.6, 0.2, 0.2], [0.1, 0.7, 0.2], [0.2, 0.5, 0.3]]
SOURCE_1 = [[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.4, 0.5]]


@settles("000-025", "holds")
@settles("000-027", "holds")
@settles("000-028", "holds")
@settles("001-016", "holds")
@settles("001-018", "holds")
def test_the_invented_tables_of_weights():
    for table in (SOURCE_0, SOURCE_1):
        assert [sum(row) for row in table] == pytest.approx([1, 1, 1])
    assert SOURCE_0[0][0] > 0.5
    assert SOURCE_0[1][1] > 0.5
    assert (SOURCE_0[2][1], SOURCE_0[1][2]) == (0.5, 0.2)
    assert SOURCE_1[1][1] == 0.5


@settles("000-026", "contradicts-another-source")
@settles("001-017", "contradicts-another-source")
def test_two_sources_invent_two_tables_for_one_sentence():
    sat = 2
    assert max(range(3), key=SOURCE_0[sat].__getitem__) == 1  # cat
    assert max(range(3), key=SOURCE_1[sat].__getitem__) == 2  # itself


SCORES = [
    [0.8, 0.1, 0.0, 0.3],
    [0.1, 0.7, 0.5, 0.2],
    [0.0, 0.5, 0.6, 0.4],
    [0.3, 0.2, 0.4, 0.5],
]
WEIGHTS = [0.35, 0.15, 0.20, 0.30]


@settles("002-017", "holds-with-caveat")
@settles("002-018", "holds-with-caveat")
@settles("002-019", "holds")
def test_the_four_by_four_table_is_symmetric():
    chunks = ["The cat", "sat", "on", "the mat"]
    assert " ".join(chunks).split() == SENTENCE
    assert len(chunks) == 4
    assert len(SENTENCE) == 6
    assert_close(tensor(SCORES), tensor(SCORES).mT)
    assert SCORES[3] == [0.3, 0.2, 0.4, 0.5]
    # Random query and key matrices do not make a symmetric table.
    scores = draw(4, D) @ draw(D, D_K) @ draw(D_K, D) @ draw(D, 4)
    assert (scores - scores.mT).abs().max() > 1e-3


@settles("002-031", "holds")
@settles("002-032", "wrong")
@settles("002-033", "holds")
@settles("002-034", "wrong")
def test_no_softmax_leads_from_those_scores_to_those_weights():
    assert sum(WEIGHTS) == pytest.approx(1)
    assert_close(
        tensor(SCORES[3]).softmax(dim=-1),
        tensor([0.236, 0.214, 0.261, 0.289]), atol=5e-4, rtol=0,
    )  # fmt: skip
    order = tensor(WEIGHTS).argsort().tolist()
    for scale in (0.01, 0.1, 1.0, 10.0, 100.0):
        scaled = tensor(SCORES[3]) * scale
        assert scaled.softmax(dim=-1).argsort().tolist() != order
    assert WEIGHTS.index(max(WEIGHTS)) == 0  # "The cat", not "the mat"


X = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2]]
LOUD = [[20.5, 45.3, 70.1], [45.3, 102.5, 159.7], [70.1, 159.7, 249.3]]


@settles("001-021", "holds")
@settles("001-023", "holds-with-caveat")
def test_the_loud_example_fits_its_embeddings():
    x, scores = tensor(X), tensor(LOUD)
    assert torch.linalg.matrix_rank(x) == 2
    # The embeddings are evenly spaced, so every score must be, too.
    assert_close(scores[:, 0] + scores[:, 2], 2 * scores[:, 1])
    inverse = torch.linalg.pinv(x)
    assert_close(x @ (inverse @ scores @ inverse.T) @ x.T, scores)


@settles("001-024", "holds-with-caveat")
@settles("001-025", "holds-with-caveat")
def test_random_matrices_make_no_such_scores():
    x = tensor(X)
    W_q, W_k = draw(20_000, 4, 4), draw(20_000, 4, 4)
    scores = x @ W_q @ (x @ W_k).mT
    largest = scores.abs().amax(dim=(-2, -1))
    assert 4 < largest.median() < 6
    assert largest.max() < 249.3 / 2
    asymmetry = (scores - scores.mT).flatten(-2).norm(dim=-1)
    share = (asymmetry / scores.flatten(-2).norm(dim=-1)).median()
    assert 0.1 < share < 0.2


@settles("001-026", "holds")
@settles("001-027", "holds")
@settles("001-028", "holds")
@settles("001-029", "holds-with-caveat")
@settles("001-030", "holds-with-caveat")
def test_the_loud_example_is_saturated_even_when_scaled():
    scaled = tensor(LOUD) / math.sqrt(4)
    printed = [[10.25, 22.65, 35.05], [22.65, 51.25, 79.85]]
    assert_close(scaled[:2], tensor(printed))
    assert scaled[2].tolist() == pytest.approx([35.05, 79.85, 124.65])
    scaled.requires_grad_()
    weights = scaled.softmax(dim=-1)
    assert weights.round(decimals=1).tolist() == [[0, 0, 1]] * 3
    assert (tensor(LOUD).softmax(dim=-1)[:, 2] > 1 - 1e-5).all()
    values = draw(3, D_V)
    output = weights @ values
    assert (output - values[2]).abs().max() < 1e-4  # every row is V of "sat"
    output.sum().backward()
    assert scaled.grad.abs().max() < 1e-4  # and hardly learns


SPARSE = [
    [0.5, 0.1, 0.1, 0.05, 0.1, 0.05, 0.05, 0.05, 0.0, 0.0, 0.0],
    [0.1, 0.6, 0.1, 0.05, 0.05, 0.05, 0.0, 0.05, 0.0, 0.0, 0.0],
    [0.05, 0.2, 0.5, 0.15, 0.05, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.05, 0.3, 0.2, 0.3, 0.05, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.05, 0.05, 0.05, 0.05, 0.6, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 0.05, 0.05, 0.1, 0.2, 0.6, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.1, 0.1, 0.3, 0.1, 0.05, 0.05, 0.2, 0.05, 0.05, 0.0, 0.0],
    [0.05, 0.7, 0.05, 0.05, 0.05, 0.05, 0.0, 0.05, 0.0, 0.0, 0.0],
    [0.0, 0.05, 0.1, 0.0, 0.0, 0.0, 0.05, 0.3, 0.5, 0.0, 0.0],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.5, 0.2],
    [0.0, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0, 0.2, 0.1, 0.1, 0.4],
]


@settles("001-081", "holds")
@settles("001-082", "holds")
def test_the_eleven_word_table():
    words = "The animal didn't cross the street because it was too tired"
    assert len(words.split()) == len(SPARSE) == 11
    assert [sum(row) for row in SPARSE] == pytest.approx([1] * 11)


# What the sources print


@settles("000-081", "holds-with-caveat")
@settles("000-082", "holds")
@settles("002-057", "holds")
def test_what_the_demonstrations_print():
    x = torch.zeros(2, 10, 512)
    weights = attention_weights(x, x)
    assert str(attention(x, x, x).shape) == "torch.Size([2, 10, 512])"
    assert weights.shape == (2, 10, 10)
    x = torch.zeros(2, 5, 64)
    assert str(attention(x, x, x).shape) == "torch.Size([2, 5, 64])"


@settles("002-054", "holds-with-caveat")
def test_without_a_mask_the_first_token_sees_the_last(projected):
    q, k, v = projected
    v = v.clone().requires_grad_()
    attention(q, k, v)[0].sum().backward()
    assert (v.grad[-1] != 0).all()


@settles("002-056", "holds-with-caveat")
def test_the_output_alone_holds_no_table_of_weights(projected):
    q, k, v = projected
    output = attention(q, k, v)
    assert output.shape != attention_weights(q, k).shape
    sums = output.sum(dim=-1)
    assert (sums - 1).abs().max() > 0.1  # a row sum says nothing here
