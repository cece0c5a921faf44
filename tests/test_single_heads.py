"""Heads recorded, switched off and patched, against the layer by hand."""

import math
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.modules import module
from torch.testing import assert_close

from selfattn import transforms
from selfattn.dot_product import (
    fused_attention,
)
from selfattn.multihead import MultiHeadAttention, merge_heads
from selfattn.single_heads import (
    change_heads,
    heads_of,
    record_heads,
    record_weights,
)
from selfattn.transforms import eagerly, uncompiled


def layer_of(**options):
    return MultiHeadAttention(15, 3, **options).double()


def nothing_hangs(layer):
    """In a layer, or for all modules there are."""
    own = layer._forward_hooks, layer._forward_pre_hooks
    return not any((*own, module._has_any_global_hook()))


def tokens(n=7):
    return torch.randn(2, n, 15, dtype=torch.float64)


@pytest.mark.parametrize("options", [{}, {"attend": fused_attention}])
def test_recorded_weights_are_those_that_made_the_output(options):
    layer, x, context = layer_of(**options), tokens(), tokens(11)
    mask = torch.rand(2, 1, 7, 11) < 0.7
    bias = torch.randn(7, 11).double()
    with record_weights(layer) as weights:
        output = layer(x, context, mask=mask, bias=bias, causal=True)
    assert len(weights) == 1
    assert weights[0].shape == (2, 3, 7, 11)
    _, _, v = layer.heads(x, context)
    assert_close(layer.W_o(merge_heads(weights[0] @ v)), output)


def test_weights_come_in_the_order_of_running():
    first, second = layer_of(), layer_of(n_kv_heads=1)
    model = nn.ModuleDict({"a": second, "b": nn.Sequential(nn.Tanh(), first)})
    x = tokens()
    with record_weights(model) as weights:
        y = first(x)
        second(y)
        first(x[:, :5])
    assert len(weights) == 3
    assert torch.equal(weights[0], first.weights(x))
    assert torch.equal(weights[1], second.weights(y))
    assert torch.equal(weights[2], first.weights(x[:, :5]))


def test_a_layer_inside_a_model_is_found():
    layer = layer_of()
    model = nn.Sequential(nn.Identity(), nn.Sequential(layer), nn.Tanh())
    with record_weights(model) as weights:
        model(tokens())
    assert len(weights) == 1


def test_weights_are_recorded_undropped_and_without_gradients():
    layer, x = layer_of(dropout=0.5).train(), tokens().requires_grad_()
    with record_weights(layer) as weights:
        output = layer(x)
    assert not weights[0].requires_grad
    assert torch.equal(weights[0], layer.weights(x))
    output.sum().backward()  # and recording took nothing from training
    assert x.grad.any()


def test_recording_changes_no_number():
    layer, x = layer_of(dropout=0.5).train(), tokens()
    torch.manual_seed(3)
    expected = layer(x)
    torch.manual_seed(3)
    with record_weights(layer):
        assert torch.equal(layer(x), expected)


def test_recording_ends_with_the_block():
    layer, x = layer_of(), tokens()
    with record_weights(layer) as weights:
        pass
    layer(x)
    assert weights == []
    assert nothing_hangs(layer)


def test_recording_ends_with_an_error_too():
    layer = layer_of()
    with pytest.raises(ZeroDivisionError), record_weights(layer):
        raise ZeroDivisionError
    assert nothing_hangs(layer)


def test_recordings_nest():
    layer, x = layer_of(), tokens()
    with record_weights(layer) as outer:
        layer(x)
        with record_weights(layer) as inner:
            layer(x)
        layer(x)
    assert (len(outer), len(inner)) == (3, 1)


def test_what_has_no_weights_is_not_made_up():
    def sums(q, k, v, *, mask=None, bias=None, causal=False):
        return q + v.sum(dim=-2, keepdim=True)

    layer = layer_of(attend=sums)
    with (
        pytest.raises(ValueError, match="table of weights"),
        record_weights(layer),
    ):
        layer(tokens())
    assert nothing_hangs(layer)


def two_layers():
    torch.manual_seed(0)
    return nn.Sequential(layer_of(), layer_of(n_kv_heads=1)).double()


def test_heads_are_named_by_their_layer_and_their_place():
    model = two_layers()
    names = heads_of(model)
    assert list(names) == ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]
    assert names["2.2"] == (model[1], slice(5, 10))


def test_what_heads_bring_back_is_weights_times_values():
    model, x = two_layers(), tokens()
    with record_weights(model) as weights, record_heads(model) as brought:
        output = model(x)
    assert list(brought) == list(heads_of(model))
    _, _, v = model[0].heads(x)
    for head in range(3):
        told = weights[0][:, head] @ v[:, head]
        assert_close(brought[f"1.{head + 1}"], told)
    last = torch.cat([brought[f"2.{head}"] for head in (1, 2, 3)], dim=-1)
    assert_close(model[1].W_o(last), output)


def test_a_head_that_is_off_adds_nothing_and_the_others_stay():
    layer, x = layer_of(), tokens()
    with record_heads(layer) as brought:
        layer(x)
    rest = layer.W_o.weight.clone()
    rest[:, 5:10] = 0
    whole = torch.cat(list(brought.values()), dim=-1)
    with change_heads(layer, {"1.2": 0.0}):
        assert_close(layer(x), whole @ rest.mT)


def test_what_comes_after_a_changed_head_is_computed_anew():
    model, x, other = two_layers(), tokens(), tokens()
    with record_heads(model) as brought:
        model(other)
    with (
        change_heads(model, {n: brought[n] for n in ("1.1", "1.2", "1.3")}),
        record_heads(model) as now,
    ):
        output = model(x)
    assert_close(output, model(other))
    assert torch.equal(now["2.1"], brought["2.1"])


def test_changing_ends_with_the_block_and_touches_nothing():
    layer, x = layer_of(), tokens()
    before = layer(x)
    with change_heads(layer, {}):
        assert torch.equal(layer(x), before)
    with pytest.raises(ZeroDivisionError), change_heads(layer, {"1.1": 0.0}):
        raise ZeroDivisionError
    assert torch.equal(layer(x), before)
    with pytest.raises(ValueError, match="heads of this model are 1"):
        change_heads(layer, {"2.1": 0.0}).__enter__()


def test_what_is_compiled_around_a_model_is_looked_into(unchecked):
    """A head that was switched off in a training step, compiled, changed
    nothing, and none was recorded: compiled code runs no hook of later.
    """
    layer, x = layer_of(), tokens()
    step = torch.compile(lambda x: 2 * layer(x), backend="eager")
    before = step(x)
    off = dict.fromkeys(heads_of(layer), 0.0)
    with record_heads(layer) as heads:  # each alone: one would do for all
        step(x)
    with record_weights(layer) as weights:
        step(x)
    with change_heads(layer, off):
        assert not step(x).any()
    assert heads.keys() == off.keys()
    assert len(weights) == 1
    assert_close(step(x), before)


def test_looking_into_works_within_what_is_compiled(unchecked):
    layer, x = layer_of(), tokens()

    @partial(torch.compile, backend="eager")
    def step(x):
        with record_heads(layer) as heads:
            layer(x)
        return heads

    with torch.no_grad():
        assert step(x).keys() == heads_of(layer).keys()


def test_threads_that_look_into_one_model_leave_nothing_behind(unchecked):
    """PyTorch's stance is of all threads: the second to leave gave back the
    first one's, and nothing was compiled any more.
    """
    layer, x, calls = layer_of(), tokens(), []

    def noting(graph, example):
        calls.append(graph)
        return graph

    entered, left = threading.Event(), threading.Event()

    def first():
        with record_heads(layer):
            entered.set()
            left.wait(60)

    step = torch.compile(lambda x: 2 * layer(x), backend="eager")
    step(x)
    thread = threading.Thread(target=first)
    thread.start()
    entered.wait(60)
    with record_heads(layer) as heads:
        left.set()
        thread.join()
        step(x)
    assert heads.keys() == heads_of(layer).keys()
    torch.compile(lambda x: 2 * x, backend=noting)(x)
    assert len(calls) == 1


def test_of_two_threads_one_takes_the_stance(unchecked, monkeypatch):
    """Were the second to take it while the first one does, each would give
    back to PyTorch what the other had taken.
    """
    both = threading.Barrier(2)

    def slowly():
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)  # for another to come in, who must not
        return eagerly()

    def look():
        with uncompiled():
            pass

    torch.compile(lambda x: x, backend="eager")(tokens())
    monkeypatch.setattr(transforms, "eagerly", slowly)
    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert both.broken


def test_where_nothing_is_compiled_the_compiler_stays_away():
    """It takes longer to be imported than most models to run."""
    lines = """
        import sys
        import torch
        from selfattn import MultiHeadAttention
        from selfattn.single_heads import record_heads, record_weights

        layer = MultiHeadAttention(8, 2)
        with record_heads(layer) as heads, record_weights(layer) as weights:
            layer(torch.ones(1, 3, 8))
        assert len(heads) == 2 and len(weights) == 1
        assert "torch._dynamo" not in sys.modules
    """
    command = [sys.executable, "-c", textwrap.dedent(lines)]
    subprocess.run(command, check=True)


def test_a_layer_that_began_before_is_not_recorded():
    """Of a thread that was within it, the first in raised an IndexError."""
    layer, x = layer_of(), tokens()
    begun, inside = threading.Event(), threading.Event()

    def waiting(module, given, output):
        begun.set()
        inside.wait(60)

    layer.W_q.register_forward_hook(waiting)
    layer.register_forward_hook(lambda *_: None)  # else none is asked
    failed = []

    def running():
        try:
            layer(x)
        except IndexError as error:
            failed.append(error)

    thread = threading.Thread(target=running)
    thread.start()
    begun.wait(60)
    with record_weights(layer) as weights:
        inside.set()
        thread.join()
    assert not failed
    assert not weights


def drawing(layer):
    """The same, whose queries see each feature of the keys half the time."""
    layer.W_k = nn.Sequential(layer.W_k, nn.Dropout(0.5))
    return layer


@pytest.mark.parametrize("before", [True, False])
def test_a_layer_is_recorded_though_one_within_it_failed(before):
    """What draws again begins where the layer did, not where that one did."""

    class Tries(MultiHeadAttention):
        def fails(self, x):
            with pytest.raises(ValueError, match="15 features"):
                self.other(x[..., :4])

        def forward(self, x):
            if before:
                self.fails(x)
            made = super().forward(x)
            if not before:
                self.fails(x)
            return made

    outer, x = drawing(Tries(15, 3).double()), tokens()
    outer.other = layer_of()
    torch.manual_seed(1)
    with record_weights(outer) as weights:
        outer(x)
    assert len(weights) == 1
    torch.manual_seed(1)
    assert torch.equal(weights[0], outer.weights(x))


def test_a_layer_that_failed_draws_anew_when_it_runs_again():
    """Where it began the first time is no matter then."""

    class Fails(MultiHeadAttention):
        failing = True

        def forward(self, x):
            if self.failing:
                torch.rand(5)
                raise ValueError
            return super().forward(x)

    layer, x = drawing(Fails(15, 3).double()), tokens()
    with record_weights(layer) as weights:
        with pytest.raises(ValueError, match=r"^$"):
            layer(x)
        layer.failing = False
        torch.manual_seed(1)
        layer(x)
    torch.manual_seed(1)
    assert torch.equal(weights[0], layer.weights(x))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (torch.float16, torch.tensor(1e30)),
        (torch.float16, torch.full((2, 7, 5), 2**40)),
        (torch.float32, torch.full((5,), -1e300, dtype=torch.float64)),
    ],
)
def test_a_tensor_with_a_number_too_large_is_refused_as_a_number_is(
    dtype, value
):
    """It became infinite, and what came after the head NaN."""
    layer, x = layer_of().to(dtype), tokens().to(dtype)
    with (
        change_heads(layer, {"1.2": value}),
        pytest.raises(ValueError, match=rf"\['1.2'\] must .* {dtype} has"),
    ):
        layer(x)
    with change_heads(layer, {"1.2": torch.tensor([math.inf])}):
        assert not layer(x).isfinite().all()


def test_a_tensor_without_numbers_is_not_asked_for_them():
    """On meta there are none that could be too large."""
    layer, x = layer_of().to("meta"), tokens().to("meta")
    with change_heads(layer, {"1.2": torch.zeros(5, device="meta")}):
        assert layer(x).shape == x.shape


def test_a_quantised_tensor_is_no_head():
    """PyTorch said that it copies none, when the model ran."""
    layer, x = layer_of(), tokens()
    with pytest.warns(UserWarning, match="quantize_per_tensor"):
        few = torch.quantize_per_tensor(torch.zeros(5), 0.1, 0, torch.qint8)
    with (
        change_heads(layer, {"1.2": few}),
        pytest.raises(ValueError, match=r"must be real .*qint8"),
    ):
        layer(x)


@pytest.mark.parametrize("record", [record_heads, record_weights])
def test_a_thread_is_told_what_it_ran_itself(record):
    """A server's threads were told of each other's texts, or of nothing."""
    layer, meet = MultiHeadAttention(12, 3), threading.Barrier(2)
    texts = torch.randn(2, 1, 5, 12)
    with record(layer) as alone:
        layer(texts[0])

    def serve(i, found):
        with record(layer) as recorded:
            meet.wait(10)
            for _ in range(3):
                layer(texts[i])
                meet.wait(10)
        found[i] = recorded

    found = {}
    threads = [threading.Thread(target=serve, args=(i, found)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if record is record_heads:
        assert found[0].keys() == found[1].keys() == alone.keys()
        torch.testing.assert_close(found[0], alone)
    else:
        assert [len(found[i]) for i in (0, 1)] == [3, 3]
        torch.testing.assert_close(found[0], 3 * alone)


@pytest.mark.parametrize("record", [record_heads, record_weights])
def test_who_runs_nothing_hears_the_replicas_in_other_threads(record):
    layer, x = MultiHeadAttention(12, 3), torch.randn(1, 5, 12)
    with record(layer) as alone:
        layer(x)
    with record(layer) as recorded:
        thread = threading.Thread(target=layer, args=(x,))
        thread.start()
        thread.join()
    torch.testing.assert_close(recorded, alone)


@pytest.mark.parametrize("record", [record_heads, record_weights])
def test_what_another_thread_left_goes_once_this_one_runs(record):
    layer, x = MultiHeadAttention(12, 3), torch.randn(2, 1, 5, 12)
    with record(layer) as alone:
        layer(x[0])
    with record(layer) as recorded:
        thread = threading.Thread(target=layer, args=(x[1],))
        thread.start()
        thread.join()
        layer(x[0])
    torch.testing.assert_close(recorded, alone)
