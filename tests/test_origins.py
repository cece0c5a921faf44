"""The first attentions and their networks, against loops and by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from selfattn.checks import check_one_value
from selfattn.dot_product import attention
from selfattn.masks import causal_mask, padding_mask
from selfattn.multihead import MultiHeadAttention, merge_heads
from selfattn.origins import (
    AdditiveAttention,
    Convolution,
    MultiplicativeAttention,
    Recurrent,
    Translator,
    paths,
)

BATCH, HEADS, N_Q, N_K = 2, 3, 7, 11
D_Q, D_K, D_V, D_HIDDEN = 5, 13, 17, 19


def inputs():
    """Queries, keys and values of three widths."""
    return tuple(
        torch.randn(BATCH, HEADS, n, d, dtype=torch.float64).requires_grad_()
        for n, d in ((N_Q, D_Q), (N_K, D_K), (N_K, D_V))
    )


def additive():
    return AdditiveAttention(D_Q, D_K, D_HIDDEN).double()


def general():
    return MultiplicativeAttention(D_Q, D_K).double()


def bahdanau(layer, q, k):
    """One score, as the paper has it."""
    hidden = torch.tanh(layer.W_q.weight @ q + layer.W_k.weight @ k)
    return layer.w.weight[0] @ hidden


def concat(layer, q, k):
    """One score, as Luong has it: one matrix on both put together."""
    W = torch.cat((layer.W_q.weight, layer.W_k.weight), dim=1)
    return layer.w.weight[0] @ torch.tanh(W @ torch.cat((q, k)))


def luong(layer, q, k):
    """One score of "general"."""
    return q @ layer.W.weight @ k


CASES = [(additive, bahdanau), (additive, concat), (general, luong)]
each = pytest.mark.parametrize(("make", "score"), CASES)
mechanism = pytest.mark.parametrize("make", [additive, general])


def loop(score, layer, q, k, v, mask, bias):
    """One query after another, one key after another."""
    rows = []
    for i in range(q.shape[0]):
        seen = [j for j in range(k.shape[0]) if mask[i, j]]
        scores = [score(layer, q[i], k[j]) + bias[i, j] for j in seen]
        powers = torch.stack(scores).exp()
        rows.append((powers / powers.sum()) @ v[seen])
    return torch.stack(rows)


@each
def test_each_is_its_loop_in_value_and_gradient(make, score):
    layer, (q, k, v) = make(), inputs()
    mask = torch.rand(N_Q, N_K) < 0.7
    mask[:, 0] = True
    bias = torch.randn(N_Q, N_K, dtype=torch.float64)
    ours = layer(q, k, v, mask=mask, bias=bias)
    theirs = torch.stack(
        [
            torch.stack(
                [
                    loop(score, layer, q[b, h], k[b, h], v[b, h], mask, bias)
                    for h in range(HEADS)
                ]
            )
            for b in range(BATCH)
        ]
    )
    assert_close(ours, theirs)
    up = torch.randn_like(ours)
    learned = [q, k, v, *layer.parameters()]
    for mine, other in zip(
        torch.autograd.grad(ours, learned, up),
        torch.autograd.grad(theirs, learned, up),
        strict=True,
    ):
        assert_close(mine, other)


def test_additive_by_hand():
    """W_q = W_k = 1 and w = 2: scores 2 tanh(q + k).

    With q = 0 and keys 0 and artanh(1/2) they are 0 and 1, so the weights
    are 1/(1 + e) and e/(1 + e).
    """
    layer = AdditiveAttention(1, 1, 1)
    for matrix, number in ((layer.W_q, 1.0), (layer.W_k, 1.0), (layer.w, 2.0)):
        nn.init.constant_(matrix.weight, number)
    q, k = torch.zeros(1, 1), torch.tensor([[0.0], [math.atanh(0.5)]])
    expected = torch.tensor([[1.0, math.e]]) / (1 + math.e)
    assert_close(layer.weights(q, k), expected)
    values = torch.tensor([[10.0], [20.0]])
    assert_close(layer(q, k, values), expected @ values)


def test_general_by_hand():
    """W maps (1, 0, 0) to (0, 1): only a query with a second feature sees."""
    layer = MultiplicativeAttention(2, 3)
    layer.W.weight.data = torch.tensor([[0.0, 0, 0], [math.log(3), 0, 0]])
    q = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    k = torch.tensor([[1.0, 5.0, 5.0], [0.0, 5.0, 5.0]])
    expected = torch.tensor([[0.5, 0.5], [0.75, 0.25]])
    assert_close(layer.weights(q, k), expected)


def test_dot_is_general_with_the_identity_and_has_no_scale():
    dot = MultiplicativeAttention()
    same = MultiplicativeAttention(D_Q, D_Q).double()
    nn.init.eye_(same.W.weight)
    q, k, v = torch.randn(3, BATCH, N_Q, D_Q, dtype=torch.float64)
    assert_close(dot(q, k, v), same(q, k, v))
    assert_close(dot.weights(q, k), (q @ k.mT).softmax(dim=-1))
    assert_close(
        dot(q, k, v, causal=True), attention(q, k, v, scale=1.0, causal=True)
    )
    assert list(dot.parameters()) == []


@mechanism
def test_options_are_those_of_attention(make, device):
    layer, (q, k, v) = make().to(device), (x.to(device) for x in inputs())
    causal = causal_mask(N_Q, N_K, device=device)
    padded = padding_mask(torch.tensor([11, 4], device=device), N_K)
    expected = layer(q, k, v, mask=causal & padded)
    assert_close(layer(q, k, v, mask=padded, causal=True), expected)
    assert_close(
        layer.weights(q, k, causal=True) @ v, layer(q, k, v, mask=causal)
    )
    # A bias that only one key gets, far above the others: all look there.
    bias = torch.zeros(N_K, dtype=torch.float64, device=device)
    bias[4] = 1e4
    expected = v[..., 4:5, :].expand(-1, -1, N_Q, -1)
    assert_close(layer(q, k, v, bias=bias), expected)


@mechanism
def test_a_query_that_sees_nothing_gets_zeros_and_clean_gradients(make):
    layer, given = make(), inputs()
    mask = torch.ones(N_Q, N_K, dtype=torch.bool)
    mask[3] = False
    output = layer(*given, mask=mask)
    assert not output[..., 3, :].any()
    assert output[..., 2, :].all()
    learned = [*given, *layer.parameters()]
    for grad in torch.autograd.grad(output.square().sum(), learned):
        assert grad.isfinite().all()


@mechanism
def test_the_future_changes_no_bit_of_the_past(make):
    layer = make()
    q, k, v = (x.detach() for x in inputs())
    q = torch.cat((q, q), dim=-2)[..., :N_K, :]
    before = layer(q, k, v, causal=True)
    k, v = k.clone(), v.clone()
    k[..., 6:, :], v[..., 6:, :] = 3.0, -100.0
    after = layer(q, k, v, causal=True)
    assert torch.equal(after[..., :6, :], before[..., :6, :])
    assert (after != before)[..., 6:, :].any(dim=-1).all()


def test_what_does_not_fit_is_refused():
    q, k, v = inputs()
    with pytest.raises(ValueError, match=r"must have 5 .*\(2, 3, 11, 13"):
        additive()(k, k, v)
    for layer in (additive(), general()):
        with pytest.raises(ValueError, match=r"must have 13 .*\(2, 3, 11, 5"):
            layer(q, k[..., :5], v)
        with pytest.raises(ValueError, match="mask must broadcast"):
            layer(q, k, v, mask=torch.ones(N_K, N_Q, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"one value per key.*\(2, 3, 9, 17"):
        check_one_value(k, v[..., 2:, :])
    with pytest.raises(ValueError, match="needs both widths"):
        MultiplicativeAttention(d_q=5)


def test_a_layer_of_heads_takes_them_and_shows_their_weights():
    for attend in (AdditiveAttention(5, 5, 7), MultiplicativeAttention(5, 5)):
        layer = MultiHeadAttention(15, 3, attend=attend).double()
        x = torch.randn(2, 11, 15, dtype=torch.float64)
        q, k, v = layer.heads(x)
        shown = layer.weights(x, causal=True)
        assert_close(shown, attend.weights(q, k, causal=True))
        assert_close(layer(x, causal=True), layer.W_o(merge_heads(shown @ v)))
        learned = {*layer.parameters()}
        assert {*attend.parameters()} <= learned


# The translator

LENGTHS = torch.tensor([5, 11, 3])
D = 10


def sentences():
    source = torch.randint(23, (3, 11))
    return source, torch.randint(29, (3, 7))


def translator(attend=None):
    return Translator(23, 29, D, attend=attend).double()


ATTENDS = [
    None,
    AdditiveAttention(D, D, 13),
    MultiplicativeAttention(),
    MultiplicativeAttention(D, D),
]
every = pytest.mark.parametrize("attend", ATTENDS, ids=str)


def by_loop(model, source, target):
    """One sentence, one GRU cell a token, everything written out."""

    def cell(gru, way=""):
        made = nn.GRUCell(gru.input_size, gru.hidden_size).double()
        for name, _ in list(made.named_parameters()):
            setattr(made, name, getattr(gru, f"{name}_l0{way}"))
        return made

    forward, back = cell(model.reader), cell(model.reader, "_reverse")
    x = model.source(source)
    ahead, behind = [None], [None]
    for i in range(len(source)):
        ahead.append(forward(x[i], ahead[-1]))
        behind.append(back(x[-1 - i], behind[-1]))
    pairs = zip(ahead[1:], behind[:0:-1], strict=True)
    states = torch.stack([torch.cat(pair) for pair in pairs])
    h, write = torch.cat((ahead[-1], behind[-1])), cell(model.writer)
    logits = []
    for token in target:
        h = write(model.target(token), h)
        said = h
        if model.attend is not None:
            context = model.attend(h[None], states, states)[0]
            said = torch.cat((context, h))
        logits.append(model.head(torch.tanh(model.join(said))))
    return torch.stack(logits)


@every
def test_the_translator_is_its_loop_and_padding_is_not_read(attend):
    model, (source, target) = translator(attend), sentences()
    logits = model(source, target, LENGTHS)
    for b, n in enumerate(LENGTHS):
        assert_close(logits[b], by_loop(model, source[b, :n], target[b]))
    changed = source.clone()
    changed[0, 5:] = 1
    assert torch.equal(model(changed, target, LENGTHS)[0], logits[0])
    full = model(source, target)
    assert_close(full[2], by_loop(model, source[2], target[2]))


@every
def test_the_translator_writes_on_from_where_it_stopped(attend, device):
    model = translator(attend).to(device)
    source, target = (text.to(device) for text in sentences())
    memory = model.read(source, LENGTHS)
    state, logits = None, []
    for i in range(target.shape[1]):
        one, state = model.step(target[:, i : i + 1], state, memory=memory)
        logits.append(one)
    whole = model(source, target, LENGTHS)
    assert_close(torch.stack(logits, dim=1), whole)
    last, _ = model.step(target, memory=memory)
    assert_close(last, whole[:, -1])


@pytest.mark.parametrize("attend", ATTENDS[1:], ids=str)
def test_the_alignment_is_what_the_translator_looked_at(attend):
    model, (source, target) = translator(attend), sentences()
    shown = model.alignment(source, target, LENGTHS)
    assert shown.shape == (3, 7, 11)
    assert_close(shown.sum(dim=-1), torch.ones(3, 7).double())
    assert not shown[2, :, 3:].any()
    seen = []
    handle = attend.register_forward_hook(
        lambda layer, given, output: seen.append((given, output))
    )
    model(source, target, LENGTHS)
    handle.remove()
    (_, _, values), output = seen[0]
    assert_close(shown @ values, output)


def test_a_translator_without_attention_has_no_alignment():
    with pytest.raises(ValueError, match="without attention looks nowhere"):
        translator().alignment(*sentences())
    with pytest.raises(ValueError, match="2 must divide d_model"):
        Translator(23, 29, 5)


def test_without_attention_the_source_is_one_vector():
    """Whatever the source, the same summary gives the same words."""
    model, (source, target) = translator(), sentences()
    memory = model.read(source)
    other = memory._replace(states=torch.randn_like(memory.states))
    same = model.write(target, memory)[0] == model.write(target, other)[0]
    assert same.all()


def test_attention_learns_to_reverse_what_one_vector_does_not_hold():
    """One small run; the losses end near 0.3 and 1.3, of ln 10 = 2.3."""
    loss = []
    for attend in (None, MultiplicativeAttention(32, 32)):
        torch.manual_seed(0)
        model = Translator(11, 11, 32, attend=attend)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(100):
            source = torch.randint(1, 11, (32, 9))
            target = source.flip(1)
            logits = model(source, F.pad(target, (1, 0))[:, :-1])
            error = F.cross_entropy(logits.flatten(0, 1), target.flatten())
            optimiser.zero_grad()
            error.backward()
            optimiser.step()
        loss.append(error.item())
    assert loss[1] < 0.5 * loss[0]


# The baselines


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_recurrent_layer_is_pytorchs(kind):
    layer = kind(5, 7, batch_first=True)
    x = torch.randn(2, 11, 5)
    assert torch.equal(Recurrent(layer)(x), layer(x)[0])
    with pytest.raises(ValueError, match="batch must come first"):
        Recurrent(kind(5, 7))


def convolved(model, x, dilations):
    """One token after another; beyond the ends there are zeros."""
    for layer, dilation in zip(model.layers, dilations, strict=True):
        kernel = layer.weight.shape[-1]
        reach = (kernel - 1) * dilation
        first = reach if model.causal else reach - reach // 2
        made = []
        for i in range(len(x)):
            total = layer.bias
            for t in range(kernel):
                j = i - first + t * dilation
                if 0 <= j < len(x):
                    total = total + layer.weight[:, :, t] @ x[j]
            made.append(x[i] + total.clamp(min=0))
        x = torch.stack(made)
    return x


@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dilated", [False, True])
def test_a_convolution_is_its_loop_and_reaches_as_far_as_it_says(
    kernel, causal, dilated
):
    model = Convolution(
        5, kernel=kernel, n_layers=3, dilated=dilated, causal=causal
    ).double()
    dilations = [1, kernel, kernel**2] if dilated else [1, 1, 1]
    x = torch.randn(1, 53, 5, dtype=torch.float64, requires_grad=True)
    output = model(x)
    assert_close(output[0], convolved(model, x[0], dilations))
    for layer in model.layers:  # no relu may hide what is within reach
        nn.init.uniform_(layer.weight, 0.1, 1.0)
    grad = torch.autograd.grad(model(x.abs())[0, 27].sum(), x)[0]
    touched = grad[0].abs().sum(dim=-1).nonzero().flatten()
    assert len(touched) == model.reach == touched[-1] - touched[0] + 1
    ahead = sum((kernel - 1) * d // 2 for d in dilations)
    assert touched[-1] == 27 + (0 if causal else ahead)


def test_the_reach_is_linear_or_exponential_in_the_layers():
    plain = [Convolution(2, kernel=3, n_layers=n).reach for n in (1, 2, 5)]
    wide = [
        Convolution(2, kernel=3, n_layers=n, dilated=True).reach
        for n in (1, 2, 5)
    ]
    assert plain == [3, 5, 11]
    assert wide == [3, 9, 243]


def test_what_is_not_there_is_not_read():
    """PyTorch's layers said so of paddings and of sequences of their own."""
    empty = torch.zeros(2, 0, 4)
    assert Convolution(4, kernel=3, n_layers=2)(empty).shape == (2, 0, 4)
    with pytest.raises(ValueError, match="x must have at least 1 token"):
        Recurrent(nn.GRU(4, 6, batch_first=True))(empty)
    reader = Translator(11, 7, 8, attend=AdditiveAttention(8, 8, 5))
    source, nothing = torch.ones(2, 3).long(), torch.ones(2, 0).long()
    with pytest.raises(ValueError, match=r"target is \(2, 0\)"):
        reader.alignment(source, nothing)


def test_what_pytorch_cannot_map_over_is_refused_in_words():
    layer = Recurrent(nn.GRU(4, 6, batch_first=True))
    with pytest.raises(ValueError, match="vmap cannot map x over PyTorch's"):
        torch.func.vmap(layer)(torch.randn(3, 2, 5, 4))


# The ways between tokens

ARCHITECTURES = ("recurrent", "convolution", "dilated", "attention", "dense")


def nodes_between(output, x):
    """The fewest operations of autograd's graph on the way to a leaf."""
    waiting, known = [(output.grad_fn, 0)], set()
    while waiting:
        node, far = waiting.pop(0)
        if getattr(node, "variable", None) is x:
            return far
        if node in known:
            continue
        known.add(node)
        waiting += [(up, far + 1) for up, _ in node.next_functions if up]
    raise AssertionError("no way")


def test_hops_are_operations_of_a_real_graph():
    """A cell is three of autograd's nodes, an attention a fixed number."""
    cell, d = nn.RNNCell(3, 3), 3
    for n in (2, 5, 11):
        tokens = [torch.randn(1, d, requires_grad=True) for _ in range(n)]
        h = torch.zeros(1, d)
        for x in tokens:
            h = cell(x, h)
        found = [nodes_between(h, x) for x in tokens]
        for j, far in enumerate(found):
            per_cell = found[-2] - found[-1]
            own = found[-1] - per_cell
            hop = paths.hops("recurrent", n - 1 - j)
            assert far == own + per_cell * hop
    q = torch.randn(1, d)
    ways = set()
    for n in (2, 5, 11):
        tokens = [torch.randn(1, d, requires_grad=True) for _ in range(n)]
        states = torch.cat(tokens)
        output = (q @ states.mT).softmax(dim=-1) @ states
        ways |= {nodes_between(output, x) for x in tokens}
    assert len(ways) == 1


@pytest.mark.parametrize("kernel", [2, 3, 5])
@pytest.mark.parametrize("architecture", ["convolution", "dilated"])
def test_after_so_many_layers_a_token_is_heard_and_not_before(
    architecture, kernel
):
    dilated = architecture == "dilated"
    for distance in (1, 2, 4, 7, 8, 9, 26):
        layers = paths.hops(architecture, distance, kernel=kernel)
        fewer, enough = (
            Convolution(2, kernel=kernel, n_layers=many, dilated=dilated)
            for many in (layers - 1, layers)
        )
        assert fewer.reach <= distance < enough.reach
    assert paths.hops(architecture, 0, kernel=kernel) == 1


def test_steps_that_wait_are_the_hops_of_the_farthest():
    for architecture in ARCHITECTURES:
        for n in (1, 2, 17, 64):
            steps = paths.sequential_steps(architecture, n, kernel=4)
            many = [
                paths.hops(architecture, far, kernel=4) for far in range(n)
            ]
            assert steps == max(many)
    assert paths.sequential_steps("recurrent", 64) == 64
    assert paths.sequential_steps("convolution", 64, kernel=4) == 21
    assert paths.sequential_steps("dilated", 64, kernel=4) == 3


def test_a_kernel_of_one_hears_nobody_else():
    assert paths.hops("convolution", 0, kernel=1) == 1
    for architecture in ("convolution", "dilated"):
        with pytest.raises(ValueError, match="at least 2, but kernel=1"):
            paths.hops(architecture, 1, kernel=1)


def test_weights_and_operations_are_those_of_pytorchs_layers():
    n, d, kernel = 7, 5, 3
    layers = {
        "recurrent": nn.RNNCell(d, d, bias=False),
        "convolution": nn.Conv1d(d, d, kernel, bias=False, padding=1),
        "dilated": nn.Conv1d(d, d, kernel, bias=False, padding=1),
        "attention": MultiHeadAttention(d, 1),
        "dense": nn.Linear(n * d, n * d, bias=False),
    }
    x = torch.randn(1, n, d)
    for architecture, layer in layers.items():
        numbers = sum(p.numel() for p in layer.parameters())
        sizes = {"n": n, "d": d, "kernel": kernel}
        assert paths.parameters(architecture, **sizes) == numbers
        with FlopCounterMode(display=False) as counter:
            if architecture == "recurrent":
                h = torch.zeros(1, d)
                for i in range(n):
                    h = layer(x[:, i], h)
            elif architecture == "dense":
                layer(x.flatten(1))
            elif architecture == "attention":
                layer(x)
            else:
                layer(x.mT)
        made = paths.operations(architecture, **sizes)
        assert made == counter.get_total_flops()


def test_a_state_is_like_what_was_read():
    """Of another batch or type, it ended in PyTorch's words."""
    model = Translator(9, 7, 8)
    source = torch.tensor([[1, 2, 3], [4, 5, 6]])
    memory, target = model.read(source), torch.tensor([[1], [2]])
    assert model.write(target, memory, memory.summary)[0].shape == (2, 1, 7)
    for state in (
        torch.zeros(1, 3, 8),
        torch.zeros(1, 2, 4),
        torch.zeros(2, 8),
        torch.zeros(1, 2, 8).double(),
    ):
        with pytest.raises(ValueError, match="a state must be like"):
            model.write(target, memory, state)


def test_a_translator_attends_with_weights():
    """`nn.Identity()` was taken, and refused the first source."""
    with pytest.raises(TypeError, match="attend must be a module with weigh"):
        Translator(9, 7, 8, attend=torch.nn.Identity())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_luongs_matrix_may_be_used_under_autocast(dtype):
    """The matrix made the keys half precision, queries and values stayed as
    they were, and the layer refused what it had made itself.
    """
    attend = MultiplicativeAttention(3, 5)
    q, k, v = torch.randn(2, 4, 3), torch.randn(2, 7, 5), torch.randn(2, 7, 6)
    model = Translator(9, 8, 10, attend=MultiplicativeAttention(10, 10))
    source, target = torch.randint(9, (2, 6)), torch.randint(8, (2, 4))
    wanted = attend(q, k, v), attend.weights(q, k), model(source, target)
    with torch.autocast("cpu", dtype):
        found = attend(q, k, v), attend.weights(q, k), model(source, target)
    for one, other in zip(found, wanted, strict=True):
        assert_close(one.float(), other, atol=0.05, rtol=0.05)
    with pytest.raises(ValueError, match="must have one type"):
        attend(q.double(), k, v)


def both_ways(d):
    layer = nn.GRU(d, 3, num_layers=2, dropout=0.5, bidirectional=True)
    layer.batch_first = True
    return Recurrent(layer)


MIXING = [
    lambda: Recurrent(nn.GRU(4, 6, batch_first=True)),
    lambda: Recurrent(nn.LSTM(4, 6, num_layers=2, batch_first=True)),
    lambda: both_ways(4),
    lambda: Convolution(4, kernel=3, n_layers=2, causal=True),
    lambda: Convolution(4, kernel=3, n_layers=2, dilated=True),
    lambda: Convolution(4, kernel=2, n_layers=1),
]


@pytest.mark.parametrize("make", MIXING)
@pytest.mark.parametrize("spoilt", [math.nan, math.inf, -math.inf])
def test_a_spoilt_token_is_felt_where_it_reaches(unchecked, make, spoilt):
    """The outputs were those of the other tokens, and the gradient of every
    weight NaN.
    """
    network, x = make(), torch.randn(3, 7, 4)
    x[1, 5, 2] = spoilt
    torch.manual_seed(0)
    made = network(x)
    torch.manual_seed(0)
    alone = network(x.nan_to_num(0.0, 0.0, 0.0))
    with torch.no_grad():
        torch.manual_seed(0)
        assert_close(network(x), made, equal_nan=True)
    unreached = torch.ones(3, 7, dtype=torch.bool)
    unreached[1] = False
    causal = getattr(network, "causal", False) or (
        isinstance(network, Recurrent) and not network.layer.bidirectional
    )
    unreached[1, :5] = causal
    assert_close(made[unreached], alone[unreached])
    weights = [*network.parameters()]
    found = torch.autograd.grad(made[unreached].sum(), weights)
    wanted = torch.autograd.grad(alone[unreached].sum(), weights)
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other)
