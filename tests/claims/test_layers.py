"""Claims of the sources on Add & Norm and the feed-forward network.

Each test says which claims of the ledger it settles, and how.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.functional import jacobian
from torch.testing import assert_close

from selfattn import attention
from selfattn.layers import AddNorm, FeedForward, LayerNorm, gelu, relu
from selfattn.measurements import measured

settles = pytest.mark.settles
N, D, D_FF = 5, 12, 17  # three heads need a width of twelve


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def block(norm_first):
    """PyTorch's own block, with weights that do not depend on the order."""
    torch.manual_seed(0)
    made = nn.TransformerEncoderLayer(
        D, 3, D_FF, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    return made.double()


def norm_after_the_sum(parts, x):
    """What the listings of sources 0 and 1 compute."""
    x = parts.norm1(x + parts.self_attn(x, x, x)[0])
    return parts.norm2(x + parts.linear2(F.relu(parts.linear1(x))))


@settles("000-108", "wrong")
def test_the_listing_labelled_pre_is_post():
    x = draw(2, N, D)
    listing = norm_after_the_sum(block(norm_first=False), x)
    assert_close(listing, block(norm_first=False)(x))
    assert (listing - block(norm_first=True)(x)).abs().max() > 0.1


@settles("001-078", "holds-with-caveat")
@settles("001-086", "holds-with-caveat")
def test_norm_after_the_sum_is_post_norm():
    y = norm_after_the_sum(block(norm_first=False), draw(2, N, D))
    assert y.mean(dim=-1).abs().max() < 1e-5
    assert (y.std(dim=-1, correction=0) - 1).abs().max() < 1e-3
    pre = block(norm_first=True)(draw(2, N, D))
    assert pre.mean(dim=-1).abs().max() > 0.01


@settles("000-109", "holds")
def test_dropout_reaches_both_sublayers():
    network = nn.Sequential(
        nn.Linear(D, 1000),
        nn.GELU(),
        nn.Dropout(0.5),
        nn.Linear(1000, 1000),
        nn.Dropout(0.5),
    )
    dropped = (network(torch.randn(N, D)) == 0).double().mean()
    assert 0.4 < dropped < 0.6
    assert (network.eval()(torch.randn(N, D)) == 0).sum() == 0


@settles("000-110", "contradicts-another-source")
@settles("004-034", "contradicts-another-source")
def test_gelu_is_not_relu():
    x = torch.linspace(-3, 3, 601, dtype=torch.float64)
    gap = (gelu(x) - relu(x)).abs().max().item()
    assert gap == pytest.approx(0.17, abs=0.005)


def stack_gradients(with_path, blocks=12, normed=True, size=1.0):
    """The gradient of the query matrix of each block, by its norm."""
    x, up = draw(10, 16), draw(10, 16)
    matrices = [size * draw(4, 16, 16) / 4 for _ in range(blocks)]
    queries = [W[0].clone().requires_grad_() for W in matrices]
    for W_q, (_, W_k, W_v, W_o) in zip(queries, matrices, strict=True):
        seen = F.layer_norm(x, (16,)) if with_path and normed else x
        made = attention(seen @ W_q, seen @ W_k, seen @ W_v) @ W_o
        x = x + made if with_path else made
    found = torch.autograd.grad((x * up).sum(), queries)
    return x, [gradient.norm().item() for gradient in found]


@settles("001-103", "holds")
def test_query_gradients_vanish_without_a_path_and_not_with_one():
    x, vanished = stack_gradients(with_path=False)
    assert (x - x.mean(dim=0)).norm() < 1e-12 * x.norm()
    assert vanished[0] > 1e-3 and max(vanished[5:]) < 1e-12
    x, alive = stack_gradients(with_path=True)
    assert (x - x.mean(dim=0)).norm() > 0.05 * x.norm()
    assert min(alive) > 0.1


@settles("001-091", "holds-with-caveat")
def test_the_gradient_does_not_fall_with_distance():
    gru = nn.GRU(16, 16, batch_first=True).double()
    W_q, W_k, W_v = (draw(16, 16) / 4 for _ in range(3))

    def at_the_first(layer):  # as a share of that at the last but one
        x = draw(5, 48, 16).requires_grad_()
        last = layer(x)[:, -1]
        (last * draw(*last.shape)).sum().backward()
        norms = x.grad.norm(dim=-1).mean(dim=0)
        return norms[0] / norms[-2]

    assert at_the_first(lambda x: gru(x)[0]) < 1e-6
    near_one = at_the_first(lambda x: attention(x @ W_q, x @ W_k, x @ W_v))
    assert 0.1 < near_one < 10


@settles("004-076", "holds-with-caveat")
def test_a_path_without_a_norm_does_not_keep_query_gradients():
    runs = [run for run in measured("stacks")["runs"] if run["residual"]]
    dead = {
        (norm, ff): sum(
            run["query 12"] <= -14
            for run in runs
            if (run["norm"], run["feed_forward"]) == (norm, ff)
        )
        for norm in ("none", "pre", "post")
        for ff in (False, True)
    }
    assert dead.pop(("none", True)) == 10
    assert set(dead.values()) == {0}
    deeper = [stack_gradients(True, 24, normed=False)[1] for _ in range(5)]
    assert sum(norms[-1] < 1e-14 for norms in deeper) >= 3
    assert min(min(stack_gradients(True, 24)[1]) for _ in range(5)) > 0.01
    small = [
        stack_gradients(True, 24, normed=False, size=3**-0.5)[1]
        for _ in range(5)
    ]
    assert min(map(min, small)) > 0.01


@settles("003-057", "holds")
def test_a_norm_bounds_the_scores():
    W_q, W_k = draw(64, 64) / 8, draw(64, 64) / 8
    x = 1e6 * draw(50, 64)
    calm = LayerNorm(64).double()(x)
    assert_close(calm.norm(dim=-1), torch.full((50,), 8.0).double())

    def largest(t):
        return ((t @ W_q) @ (t @ W_k).T / 8).abs().max()

    sizes = [torch.linalg.matrix_norm(W, 2) for W in (W_q, W_k)]
    assert largest(calm) <= sizes[0] * sizes[1] * 64 / 8
    assert largest(x) > 1e11


@settles("004-027", "holds")
@settles("004-035", "holds")
def test_the_network_works_within_tokens_attention_across():
    x = draw(N, D)
    network = FeedForward(D, D_FF).double()
    others = ~torch.eye(N, dtype=torch.bool)

    def across(f):
        return jacobian(f, x).abs().amax(dim=(1, 3))[others]

    assert (across(network) == 0).all()
    assert (across(lambda x: attention(x, x, x)) > 1e-6).all()


@settles("004-031", "holds")
@settles("004-032", "holds")
def test_the_formula_of_the_network_in_columns():
    network = FeedForward(D, D_FF).double()
    W_1, b_1 = network.W_in.weight, network.W_in.bias
    W_2, b_2 = network.W_out.weight, network.W_out.bias
    assert (W_1.shape, W_2.shape) == ((D_FF, D), (D, D_FF))
    o = draw(D)
    assert_close(network(o), W_2 @ (W_1 @ o + b_1).clamp(min=0) + b_2)


@settles("004-069", "holds")
@settles("004-070", "holds")
@settles("004-075", "holds")
def test_add_and_norm_are_around_both_sublayers():
    for pre in (False, True):
        parts = block(norm_first=pre)
        norms = [m for m in parts.modules() if isinstance(m, nn.LayerNorm)]
        paths = [AddNorm(D, pre=pre).double() for _ in norms]
        x = draw(2, N, D)
        y = paths[0](x, lambda t, m=parts: m.self_attn(t, t, t)[0])
        y = paths[1](y, lambda t, m=parts: m.linear2(m.linear1(t).relu()))
        assert len(norms) == 2
        assert_close(y, parts(x))


@settles("004-071", "holds")
@settles("004-072", "holds")
@settles("004-074", "holds")
def test_a_layer_with_a_path_learns_what_to_add():
    x = draw(N, D)
    layer = nn.Linear(D, D).double()
    without_norm = AddNorm(D, pre=True, norm=nn.Identity)
    assert_close(without_norm(x, layer) - x, layer(x))
    assert torch.equal(without_norm(x, torch.zeros_like), x)
    post = AddNorm(D, pre=False).double()
    assert not torch.allclose(post(x, torch.zeros_like), x)


@settles("004-073", "holds-with-caveat")
def test_the_path_has_gradient_one_unless_a_norm_stands_on_it():
    x, layer = draw(D), nn.Sequential(nn.Linear(D, D), nn.Tanh()).double()
    one = torch.eye(D, dtype=torch.float64)
    whole = jacobian(lambda x: x + layer(x), x)
    assert_close(whole, one + jacobian(layer, x), rtol=0, atol=1e-12)
    pre, post = (AddNorm(D, pre=pre).double() for pre in (True, False))
    assert_close(jacobian(lambda x: pre(x, torch.zeros_like), x), one)
    on_path = jacobian(lambda x: post(x, torch.zeros_like), x)
    assert torch.linalg.svdvals(on_path)[-1] < 1e-12
    assert (on_path - one).norm() > 1


@settles("004-077", "holds")
def test_the_norm_divides_by_d():
    x = draw(N, 8)
    centred = x - x.mean(dim=-1, keepdim=True)
    biased = centred / centred.square().mean(dim=-1, keepdim=True).sqrt()
    assert_close(biased, F.layer_norm(x, (8,), eps=0.0))
    bessel = centred / x.std(dim=-1, keepdim=True)
    assert (bessel - biased).abs().max() > 0.05


@settles("004-078", "holds-with-caveat")
def test_eps_beside_the_root_blows_quiet_tokens_up():
    def ratio(sigma):
        x = sigma * torch.tensor([-1.0, 1.0], dtype=torch.float64)
        beside = x / (x.std(correction=0) + 1e-5)
        return (beside / F.layer_norm(x, (2,), eps=1e-5))[0].item()

    assert abs(ratio(1.0) - 1) < 3e-5
    assert ratio(1e-3) == pytest.approx(3.3, abs=0.05)
    assert ratio(1e-4) == pytest.approx(28.8, abs=0.1)
    assert ratio(1e-5) > 100
    assert 300 < ratio(1e-7) < 1e-5**-0.5


@settles("004-079", "holds")
@settles("004-080", "holds")
def test_gain_and_shift_are_one_number_a_feature():
    norm = nn.LayerNorm(512)
    assert sum(p.numel() for p in norm.parameters()) == 2 * 512
    assert (norm.weight == 1).all() and (norm.bias == 0).all()
    assert norm.eps == 1e-5


@settles("004-081", "holds")
@settles("004-083", "holds")
def test_layer_norm_sees_one_token_and_batch_norm_all():
    x = torch.randn(7, D)
    changed = x.clone()
    changed[1:] += 3 * torch.randn(6, D)
    layer, batch = nn.LayerNorm(D), nn.BatchNorm1d(D)
    assert torch.equal(layer(x)[0], layer(changed)[0])
    assert (batch(x)[0] - batch(changed)[0]).abs().max() > 0.1


@settles("004-084", "holds-with-caveat")
def test_two_thirds_of_a_block_are_in_the_network():
    made = nn.TransformerEncoderLayer(512, 8, 2048)
    whole = sum(p.numel() for p in made.parameters())
    network = [*made.linear1.parameters(), *made.linear2.parameters()]
    share = sum(p.numel() for p in network) / whole
    assert share == pytest.approx(2 / 3, abs=0.001)
