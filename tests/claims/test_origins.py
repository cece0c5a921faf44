"""Claims of the sources on recurrence, convolution, and what came before.

Each test says which claims of the ledger it settles, and how.
"""

from statistics import median

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from selfattn import MultiHeadAttention, attention
from selfattn.data.dates import CHARACTERS
from selfattn.measurements import measured
from selfattn.origins import (
    AdditiveAttention,
    Convolution,
    MultiplicativeAttention,
    Recurrent,
    Translator,
    paths,
)

settles = pytest.mark.settles
N, D = 7, 5


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def heard(layer, n, d):
    """The gradient of the last output by each token, nearest first."""
    x = torch.randn(1, n, d, requires_grad=True)
    last = layer(x)[0, -1]
    (gradient,) = torch.autograd.grad(last @ torch.randn(d), x)
    return gradient[0].norm(dim=-1).flip(0)


def recurrent(kind, d, bias=None):
    """A fresh layer of PyTorch's; ``bias`` is that of the gate that keeps."""
    layer = kind(d, d, batch_first=True)
    if bias is not None:
        with torch.no_grad():
            layer.bias_ih_l0[d : 2 * d] = bias
            layer.bias_hh_l0[d : 2 * d] = 0
    return Recurrent(layer)


def flops(run):
    """The multiplications and additions of a call's products."""
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def support(layer, n, output):
    """Which tokens of n an output of a convolution hears; no weight hides."""
    for parameter in layer.parameters():
        nn.init.ones_(parameter)
    x = torch.rand(1, 1, n, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x)[0, 0, output], x)
    return (gradient[0, 0] > 0).int().tolist()


def operations_between(output, x):
    """The fewest operations on the way from an output to a leaf."""
    waiting, known = [(output.grad_fn, 0)], set()
    while waiting:
        node, far = waiting.pop(0)
        if getattr(node, "variable", None) is x:
            return far
        if node not in known:
            known.add(node)
            waiting += [(up, far + 1) for up, _ in node.next_functions if up]
    raise AssertionError("no way")


@settles("000-029", "holds")
@settles("000-030", "holds-with-caveat")
def test_the_words_of_the_example():
    words = [
        "The",
        "cat",
        "sat",
        "on",
        "the",
        "mat",
        "because",
        "it",
        "was",
        "soft",
    ]
    mat, it = words.index("mat") + 1, words.index("it") + 1
    assert (mat, it, len(words)) == (6, 8, 10)
    assert it - mat == 2


@settles("000-031", "holds")
@settles("000-032", "holds")
@settles("000-034", "holds")
@settles("000-096", "holds")
@settles("001-045", "holds")
@settles("001-089", "holds")
@settles("004-002", "holds")
@settles("004-008", "holds")
def test_a_recurrent_way_grows_and_attentions_does_not():
    """By the gradient: a token's hops are the cells that it goes through."""
    cell = nn.RNNCell(D, D).double()
    ways = {"recurrent": [], "attention": []}
    for n in (4, 8, 16):
        tokens = [draw(1, D).requires_grad_() for _ in range(n)]
        h = torch.zeros(1, D).double()
        for x in tokens:
            h = cell(x, h)
        states = torch.cat(tokens)
        looked = attention(states[-1:], states, states)
        ways["recurrent"].append(operations_between(h, tokens[0]))
        ways["attention"].append(operations_between(looked, tokens[0]))
        assert paths.hops("recurrent", n - 1) == n
    first, second, third = ways["recurrent"]
    assert (second - first, third - second) == (3 * 4, 3 * 8)
    assert len({*ways["attention"]}) == 1
    assert paths.hops("attention", 1000) == 1
    mat, it = 6, 8
    assert paths.hops("recurrent", it - mat) == 3


@settles("000-033", "holds-with-caveat")
@settles("003-002", "holds-with-caveat")
@settles("004-003", "holds-with-caveat")
def test_what_vanishes_and_what_an_open_gate_keeps():
    for kind in (nn.RNN, nn.LSTM, nn.GRU):
        curve = heard(recurrent(kind, 32), 64, 32)
        assert curve[63] < 1e-10 * curve[0]
    for kind in (nn.LSTM, nn.GRU):
        curve = heard(recurrent(kind, 32, bias=6.0), 64, 32)
        assert curve[63] > 0.05 * curve[0]
    turn = torch.linalg.qr(draw(D, D)).Q
    size = [
        torch.linalg.matrix_power(c * turn, 100).norm() for c in (0.9, 1.5)
    ]
    assert size[0] < 1e-3 and size[1] > 1e15


@settles("000-035", "holds-with-caveat")
def test_direct_is_not_always_and_not_much():
    layer = MultiHeadAttention(D, 1).double()
    x = draw(1, N, D).requires_grad_()
    output = layer(x, causal=True)[0, 1].sum()
    (gradient,) = torch.autograd.grad(output, x)
    assert not gradient[0, 2:].any()
    assert gradient[0, :2].any(dim=-1).all()
    k, v = F.normalize(draw(N, D), dim=-1), draw(N, D).requires_grad_()
    chosen = 1000 * k[3:4]
    (weights,) = torch.autograd.grad(attention(chosen, k, v).sum(), v)
    assert weights[3].min() > 0.99
    assert weights[[0, 1, 2, 4, 5, 6]].max() < 1e-3


@settles("000-036", "holds")
@settles("001-044", "holds")
@settles("003-001", "holds-with-caveat")
@settles("004-005", "holds")
@settles("004-011", "holds-with-caveat")
def test_which_steps_wait():
    assert [paths.sequential_steps("recurrent", n) for n in (5, 9)] == [5, 9]
    assert [paths.sequential_steps("attention", n) for n in (5, 9)] == [1, 1]
    layer = recurrent(nn.LSTM, D).double()
    x, other = draw(1, N, D), draw(1, N, D)
    other[:, 1:] = x[:, 1:]
    moved = (layer(x) - layer(other)).abs().amax(dim=-1)[0]
    assert (moved > 0).all()  # each state needs the one before
    nodes = set()
    for n in (4, 8, 16):
        tokens = draw(n, D).requires_grad_()
        nodes.add(
            operations_between(attention(tokens, tokens, tokens), tokens)
        )
    assert len(nodes) == 1


@settles("000-037", "holds-with-caveat")
@settles("000-102", "holds")
@settles("000-106", "holds")
@settles("003-003", "holds-with-caveat")
@settles("003-004", "contradicts-another-source")
def test_what_layers_of_convolution_hear():
    reach = {
        dilated: [
            Convolution(2, kernel=3, n_layers=n, dilated=dilated).reach
            for n in range(1, 6)
        ]
        for dilated in (False, True)
    }
    assert reach[False] == [3, 5, 7, 9, 11]
    assert reach[True] == [3, 9, 27, 81, 243]
    assert paths.hops("convolution", 242) == 121
    assert paths.hops("dilated", 242) == 5
    layer = nn.Conv1d(1, 1, 3, padding=1)
    assert sum(support(layer, 9, 4)) == 3
    x = draw(1, 9, D).requires_grad_()
    output = MultiHeadAttention(D, 1).double()(x)[0, 4].sum()
    (gradient,) = torch.autograd.grad(output, x)
    assert gradient[0].any(dim=-1).sum() == 9


@settles("000-038", "holds")
@settles("000-039", "holds-with-caveat")
@settles("001-088", "holds")
def test_outputs_of_a_layer_need_no_other_outputs():
    x = draw(1, N, D)
    q, k, v = MultiHeadAttention(D, 1).double().heads(x)
    alone = [attention(q[..., i : i + 1, :], k, v) for i in range(N)]
    assert_close(torch.cat(alone, dim=-2), attention(q, k, v))
    layer = nn.Conv1d(D, D, 3).double()
    windows = [layer(x.mT[..., i : i + 3]) for i in range(N - 2)]
    assert_close(torch.cat(windows, dim=-1), layer(x.mT))
    two = Convolution(D, kernel=3, n_layers=2, causal=True).double()
    first = two.layers[0](F.pad(x.mT, (2, 0))).mT.relu() + x
    second = two.layers[1](F.pad(first.mT, (2, 0))).mT.relu() + first
    assert_close(two(x), second)  # of the first layer's outputs


@settles("000-040", "holds")
@settles("001-046", "holds-with-caveat")
def test_gradients_from_far_beside_those_from_near():
    def far_over_near(make, n):
        ratios = []
        for seed in range(5):
            torch.manual_seed(seed)
            curve = heard(make(), n, 32)
            ratios.append((curve[n - 1] / curve[1]).item())
        return median(ratios)

    assert far_over_near(lambda: MultiHeadAttention(32, 1), 64) > 0.05
    assert far_over_near(lambda: recurrent(nn.RNN, 32), 64) < 1e-10
    opened = far_over_near(lambda: recurrent(nn.LSTM, 32, bias=6.0), 64)
    assert opened > 0.05
    torch.manual_seed(0)
    layer, at = MultiHeadAttention(32, 1), {}
    for n in (16, 64, 256):
        curve = torch.stack([heard(layer, n, 32) for _ in range(9)])
        near, far = curve[:, 1 : n // 2].median(), curve[:, n // 2 :].median()
        assert 0.7 < near / far < 1.4
        at[n] = curve[:, 1:].median().item()
    assert at[16] > 2.5 * at[64] > 2.5**2 * at[256]


@settles("000-061", "holds-with-caveat")
@settles("000-099", "holds-with-caveat")
@settles("000-130", "holds-with-caveat")
def test_no_bias_is_a_bias():
    layer, x, order = MultiHeadAttention(D, 1).double(), draw(1, N, D), None
    order = torch.randperm(N)
    assert_close(layer(x[:, order]), layer(x)[:, order])
    for _ in range(6):
        x = attention(x, x, x)
    apart = x - x.mean(dim=1, keepdim=True)
    assert apart.norm() / x.norm() < 1e-3


@settles("000-062", "not-reproducible")
@settles("001-095", "not-reproducible")
def test_who_needs_more_examples():
    def right(question, arm, size):
        return median(
            run["right 300"]
            for run in measured("origins")["runs"]
            if run["task"] == "question"
            and (run["question"], run["arm"], run["size"])
            == (question, arm, size)
        )

    others = ("convolution", "recurrent")
    for size in (64, 256):
        mine = right("pattern", "attention", size)
        assert mine < min(right("pattern", arm, size) for arm in others) - 0.1
        mine = right("place", "attention", size)
        assert mine > max(right("place", arm, size) for arm in others) + 0.1


@settles("000-066", "holds")
@settles("000-069", "holds")
def test_fixed_and_made_weights():
    dense = nn.Linear(N * D, N * D, bias=False).double()
    layer = MultiHeadAttention(D, 1).double()

    def mixing(f, x):
        return torch.autograd.functional.jacobian(f, x).norm(dim=(1, 3))

    def whole(x):
        return dense(x.flatten()).reshape(N, D)

    one, other = draw(N, D), draw(N, D)
    assert_close(mixing(whole, one), mixing(whole, other))
    made = [mixing(lambda x: layer(x[None])[0], x) for x in (one, other)]
    assert (made[0] - made[1]).abs().max() > 1e-3
    tables = [layer.weights(x[None]) for x in (one, other)]
    assert (tables[0] - tables[1]).abs().max() > 1e-3


@settles("000-067", "holds-with-caveat")
@settles("000-068", "holds")
def test_a_dense_layer_on_the_sequence_and_on_each_token():
    for n, dense, own in ((4, 1024, 288), (8, 4096, 288)):
        d = 8
        layer = nn.Linear(n * d, n * d, bias=False)
        assert sum(p.numel() for p in layer.parameters()) == dense
        theirs = nn.MultiheadAttention(d, 1)
        assert sum(p.numel() for p in theirs.parameters()) == own
    each, x = nn.Linear(D, D).double(), draw(1, N, D)
    moved = x.clone()
    moved[0, 3] += 1
    changed = (each(x) - each(moved)).abs().amax(dim=-1)[0] > 0
    assert changed.nonzero().flatten().tolist() == [3]
    same = x[:, :1].expand(1, N, D)
    assert_close(each(same), each(same)[:, :1].expand(1, N, D))


@settles("000-097", "holds-with-caveat")
@settles("000-105", "wrong")
@settles("004-010", "holds-with-caveat")
def test_operations_of_a_layer():
    n = d = 64
    x = torch.randn(1, n, d)
    cells = {
        4: nn.RNNCell(d, d, bias=False),
        16: nn.LSTMCell(d, d, bias=False),
    }
    for factor, cell in cells.items():
        made = flops(lambda cell=cell: [cell(x[:, i]) for i in range(n)])
        assert made == factor * n * d * d
    layer = MultiHeadAttention(d, 1)
    assert flops(lambda: layer(x)) == 4 * n * n * d + 8 * n * d * d
    k = 3
    full = flops(lambda: nn.Conv1d(d, d, k, padding=1)(x.mT))
    single = flops(lambda: nn.Conv1d(d, d, k, padding=1, groups=d)(x.mT))
    assert full == 2 * k * n * d * d == 1_572_864
    assert single == 2 * k * n * d == 24_576


@settles("000-098", "contradicts-another-source")
@settles("001-047", "contradicts-another-source")
def test_what_a_recurrent_network_keeps():
    cell, kept = nn.RNNCell(D, D).double(), {}
    for n in (8, 16, 32):
        sizes, x = [], draw(n, D)

        def keep(tensor, sizes=sizes):
            sizes.append(tensor.numel())
            return tensor

        h = torch.zeros(D).double()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            for token in x:
                h = cell(token, h)
        kept[n] = sum(sizes)
        assert h.numel() == D
    assert kept[32] - kept[16] == 2 * (kept[16] - kept[8]) > 0
    made = [paths.operations("recurrent", 9, d) for d in (8, 16)]
    assert made[1] == 4 * made[0]


@settles("000-103", "holds")
def test_neither_grows_with_the_text():
    for make in (
        lambda: MultiHeadAttention(D, 1),
        lambda: Convolution(D, kernel=3, n_layers=2),
    ):
        layer = make()
        shapes = [layer(torch.randn(1, n, D)).shape for n in (10, 100)]
        assert [shape[1] for shape in shapes] == [10, 100]


@settles("000-104", "holds-with-caveat")
def test_a_convolution_follows_a_shift():
    x, shift = draw(1, D, 11), 2
    for mode, exact in (("circular", True), ("zeros", False)):
        layer = nn.Conv1d(D, D, 3, padding=1, padding_mode=mode).double()
        off = (layer(x.roll(shift, -1)) - layer(x).roll(shift, -1)).abs()
        assert (off.max() < 1e-12) == exact
        assert off[..., shift + 1 : -1].max() < 1e-12


@settles("001-003", "holds-with-caveat")
def test_one_vector_is_key_and_value_and_a_score_may_be_added():
    s, h = draw(2, D), draw(N, D)
    additive = AdditiveAttention(D, D, 3).double()
    pairs = additive.W_q(s)[:, None] + additive.W_k(h)[None]
    weights = additive.w(pairs.tanh())[..., 0].softmax(dim=-1)
    assert_close(additive(s, h, h), weights @ h)
    product = attention(s, h, h)
    assert (additive(s, h, h) - product).abs().max() > 1e-3
    assert_close(MultiplicativeAttention()(s, h, h), (s @ h.T).softmax(-1) @ h)


@settles("001-004", "holds")
def test_the_reader_still_waits():
    model = Translator(
        len(CHARACTERS), len(CHARACTERS), 8, attend=MultiplicativeAttention()
    )
    source = torch.randint(len(CHARACTERS), (1, N))
    other = source.clone()
    other[0, 0] = (source[0, 0] + 1) % len(CHARACTERS)
    states = [model.read(text).states[0] for text in (source, other)]
    moved = (states[0] - states[1]).abs().amax(dim=-1) > 0
    assert moved.all()  # through every state between
    weights = model.alignment(source, torch.randint(9, (1, 3)))
    assert weights.shape == (1, 3, N)  # the writer asks, the reader does not


@settles("001-097", "holds-with-caveat")
def test_both_attentions_cost_a_product_of_lengths():
    n_q, n_k, d = 11, 13, 8
    s, h = torch.randn(n_q, d), torch.randn(n_k, d)
    across = flops(lambda: MultiplicativeAttention()(s, h, h))
    assert across == 4 * n_q * n_k * d
    within = flops(lambda: MultiplicativeAttention()(h, h, h))
    assert within == 4 * n_k * n_k * d
    for n in (1, 2):
        one = flops(lambda n=n: MultiplicativeAttention()(s[:n], h, h))
        assert one == n * 4 * n_k * d


@settles("002-003", "wrong")
def test_a_square_kernel_sees_nine():
    layer = nn.Conv2d(1, 1, 3, padding=1)
    nn.init.ones_(layer.weight)
    x = torch.rand(1, 1, 7, 7, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x)[0, 0, 3, 3], x)
    assert (gradient > 0).sum() == 9
    assert sum(support(nn.Conv1d(1, 1, 3, padding=1), 7, 3)) == 3


@settles("002-004", "holds-with-caveat")
@settles("002-005", "holds")
def test_what_a_kernel_of_three_sees_at_the_end():
    """Of four elements: “The cat”, “sat”, “on”, “the mat”."""
    causal = nn.Sequential(nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(1, 1, 3))
    centred = nn.Conv1d(1, 1, 3, padding=1)
    assert support(causal, 4, 3) == [0, 1, 1, 1]
    assert support(centred, 4, 3) == [0, 0, 1, 1]
    for layer, enough in ((causal, 2), (centred, 3)):
        for many in (enough - 1, enough):
            heard_by = support(nn.Sequential(*[layer] * many), 4, 3)
            assert bool(heard_by[0]) == (many == enough)
