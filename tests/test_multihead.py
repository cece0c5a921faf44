"""Multi-head attention, against PyTorch's layer and against loops."""

import copy
import inspect
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from same import assert_same_layers
from torch import nn
from torch.testing import assert_close

from selfattn.dot_product import attention, attention_weights, fused_attention
from selfattn.efficient.linear import linear_attention
from selfattn.efficient.linformer import LinformerAttention
from selfattn.efficient.swin import swin_attention
from selfattn.masks import as_keep, causal_mask, padding_mask
from selfattn.multihead import (
    KeysValues,
    MultiHeadAttention,
    merge_heads,
    pair_up,
    split_heads,
)
from selfattn.positions import ShawAttention

BATCH, N_Q, N_K = 2, 7, 11
HEADS, D_HEAD, D_CONTEXT = 3, 5, 13
D_MODEL = HEADS * D_HEAD


def tokens(n=N_Q, width=D_MODEL, device="cpu"):
    return torch.randn(
        BATCH,
        n,
        width,
        dtype=torch.float64,
        device=device,
        requires_grad=True,
    )


def layer_of(device="cpu", heads=HEADS, **options):
    layer = MultiHeadAttention(D_MODEL, heads, **options)
    for parameter in layer.parameters():  # biases too: zeros hide mistakes
        nn.init.normal_(parameter, std=0.3)
    return layer.double().to(device)


def only_here(x, context, *, mask=None, bias=None, causal=False):
    """A mechanism without weights."""
    return x


class Weighed(nn.Module):
    """A mechanism with a parameter, and with weights of its own."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(2.0))

    def forward(self, q, k, v, *, mask=None, bias=None, causal=False):
        return attention(
            q * self.gain, k, v, mask=mask, bias=bias, causal=causal
        )

    def weights(self, q, k, *, mask=None, bias=None, causal=False):
        return attention_weights(
            q * self.gain, k, mask=mask, bias=bias, causal=causal
        )


# Against nn.MultiheadAttention


@pytest.mark.parametrize("back", [False, True], ids=["from", "to"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kdim", [None, D_CONTEXT])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("attend", [attention, fused_attention])
def test_equals_pytorchs_layer(device, back, bias, kdim, masked, attend):
    if back:
        ours = layer_of(device, d_context=kdim, projection_bias=bias)
        theirs = ours.to_torch()
    else:
        theirs = nn.MultiheadAttention(
            D_MODEL, HEADS, bias=bias, kdim=kdim, vdim=kdim, batch_first=True
        )
        for parameter in theirs.parameters():
            nn.init.normal_(parameter, std=0.3)
        theirs = theirs.double().to(device)
        ours = MultiHeadAttention.from_torch(theirs)
    ours.attend = attend
    x, context = tokens(device=device), tokens(N_K, kdim or D_MODEL, device)
    blocked = torch.rand(N_Q, N_K, device=device) < 0.4  # PyTorch's way
    blocked[:, 0] = False
    out = ours(x, context, mask=as_keep(blocked) if masked else None)
    expected, weights = theirs(
        x,
        context,
        context,
        attn_mask=blocked if masked else None,
        average_attn_weights=False,
    )
    assert_close(
        ours.weights(x, context, mask=as_keep(blocked) if masked else None),
        weights,
    )
    assert_same_layers(ours, theirs, out, expected, (x, context), pair_up)


def test_padding_equals_pytorchs_key_padding_mask(device):
    ours = layer_of(device, projection_bias=True)
    x = tokens(N_K, device=device)
    lengths = torch.tensor([11, 4], device=device)
    pads = torch.arange(N_K, device=device) >= lengths[:, None]
    expected, _ = ours.to_torch()(x, x, x, key_padding_mask=pads)
    assert_close(ours(x, mask=padding_mask(lengths, N_K)), expected)


def test_causal_equals_pytorchs_opposite_mask(device):
    ours = layer_of(device)
    x = tokens(device=device)
    future = torch.ones(N_Q, N_Q, device=device).triu(1).bool()
    expected, _ = ours.to_torch()(x, x, x, attn_mask=future)
    assert_close(ours(x, causal=True), expected)


@pytest.mark.parametrize("training", [False, True])
def test_copies_keep_type_mode_and_dropout(training):
    ours = layer_of(dropout=0.3).train(training)
    theirs = ours.to_torch()
    assert theirs.batch_first
    assert theirs.dropout == 0.3
    assert theirs.training is training
    assert theirs.out_proj.weight.dtype == torch.float64
    again = MultiHeadAttention.from_torch(theirs)
    assert again.dropout == 0.3
    assert again.training is training
    assert again.W_q.weight.dtype == torch.float64
    for name, parameter in ours.state_dict().items():
        assert torch.equal(again.state_dict()[name], parameter)


def test_a_copy_is_no_alias():
    ours = layer_of()
    theirs = ours.to_torch()
    theirs.in_proj_weight.data.zero_()
    assert ours.W_q.weight.all()
    again = MultiHeadAttention.from_torch(theirs)
    again.W_q.weight.data.fill_(1.0)
    assert not theirs.in_proj_weight.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"add_bias_kv": True}, "nowhere .*add_bias_kv=True"),
        ({"add_zero_attn": True}, "nowhere .*add_zero_attn=True"),
        ({"kdim": 13, "vdim": 17}, "one context, but kdim=13 and vdim=17"),
    ],
)
def test_what_ours_does_not_have_is_not_copied(options, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention.from_torch(
            nn.MultiheadAttention(D_MODEL, HEADS, **options)
        )


@pytest.mark.parametrize(
    "attend",
    [partial(attention, scale=1.0), Weighed(), linear_attention],
    ids=["another scale", "a module", "another kernel"],
)
def test_another_mechanism_is_not_copied_to_pytorch(attend):
    """PyTorch's layer cannot have it: the copy computed plain attention."""
    with pytest.raises(ValueError, match="`attention` and nothing else"):
        layer_of(attend=attend).to_torch()


def test_shared_heads_are_not_copied_to_pytorch():
    layer = MultiHeadAttention(20, 4, n_kv_heads=2)
    with pytest.raises(ValueError, match=r"n_heads=4 and n_kv_heads=2"):
        layer.to_torch()


# Against loops


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("d_context", [None, D_CONTEXT])
@pytest.mark.parametrize("causal", [False, True])
def test_query_head_i_reads_key_head_i_over_group(
    n_kv_heads, d_context, causal
):
    heads, d_model = 6, 6 * D_HEAD
    layer = MultiHeadAttention(
        d_model,
        heads,
        n_kv_heads=n_kv_heads,
        d_context=d_context,
        projection_bias=True,
    ).double()
    x, context = tokens(N_Q, d_model), tokens(N_K, d_context or d_model)
    group = heads // n_kv_heads
    outputs = []
    for i in range(heads):
        mine = slice(i * D_HEAD, (i + 1) * D_HEAD)
        shared = slice(i // group * D_HEAD, (i // group + 1) * D_HEAD)
        outputs.append(
            attention(
                layer.W_q(x)[..., mine],
                layer.W_k(context)[..., shared],
                layer.W_v(context)[..., shared],
                causal=causal,
            )
        )
    expected = layer.W_o(torch.cat(outputs, dim=-1))
    out = layer(x, context, causal=causal)
    assert_close(out, expected)
    everything = [x, context, *layer.parameters()]
    g = torch.randn_like(out)
    for a, e in zip(
        torch.autograd.grad(out, everything, g, retain_graph=True),
        torch.autograd.grad(expected, everything, g),
        strict=True,
    ):
        assert_close(a, e)


@pytest.mark.parametrize(("n_kv_heads", "width"), [(1, 5), (2, 10), (6, 30)])
def test_shared_heads_save_parameters(n_kv_heads, width):
    layer = MultiHeadAttention(30, 6, n_kv_heads=n_kv_heads)
    shapes = {n: tuple(p.shape) for n, p in layer.named_parameters()}
    assert shapes == {
        "W_q.weight": (30, 30),
        "W_k.weight": (width, 30),
        "W_v.weight": (width, 30),
        "W_o.weight": (30, 30),
    }


def test_projections_add_a_bias_only_when_asked():
    names = dict(MultiHeadAttention(15, 3).named_parameters())
    assert not any(name.endswith("bias") for name in names)
    layer = MultiHeadAttention(15, 3, projection_bias=True)
    biases = [n for n, _ in layer.named_parameters() if n.endswith("bias")]
    assert biases == ["W_q.bias", "W_k.bias", "W_v.bias", "W_o.bias"]


def test_without_context_a_layer_attends_to_itself():
    layer, x = layer_of(), tokens()
    assert torch.equal(layer(x), layer(x, x))
    assert torch.equal(layer.weights(x), layer.weights(x, x))
    assert not torch.allclose(layer(x), layer(x, tokens(N_K)))


def test_one_head_is_one_attention():
    layer, x = layer_of(heads=1), tokens()
    q, k, v = layer.W_q(x), layer.W_k(x), layer.W_v(x)
    assert_close(layer(x), layer.W_o(attention(q, k, v)))


def test_heads_are_cut_from_neighbouring_features():
    x = torch.arange(2 * 7 * 15).view(2, 7, 15).float()
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 7, 5)
    for i in range(3):
        assert torch.equal(heads[:, i], x[..., 5 * i : 5 * i + 5])
    assert torch.equal(merge_heads(heads), x)
    assert merge_heads(torch.zeros(7, 2, 3, 11, 5)).shape == (7, 2, 11, 15)


# Masks, biases, weights


@pytest.mark.parametrize("attend", [attention, fused_attention, Weighed()])
def test_the_weights_shown_are_those_that_made_the_output(attend):
    layer = layer_of(attend=attend)
    x, context = tokens(), tokens(N_K)
    options = {
        "mask": torch.rand(BATCH, HEADS, N_Q, N_K) < 0.7,
        "bias": torch.randn(HEADS, 1, N_K).double()[None],
        "causal": True,
    }
    weights = layer.weights(x, context, **options)
    assert weights.shape == (BATCH, HEADS, N_Q, N_K)
    _, _, v = layer.heads(x, context)
    out = layer(x, context, **options)
    assert_close(layer.W_o(merge_heads(weights @ v)), out)
    for name in options:  # each of them counts, in both
        fewer = {n: o for n, o in options.items() if n != name}
        assert not torch.allclose(layer(x, context, **fewer), out)
        assert not torch.allclose(layer.weights(x, context, **fewer), weights)


@pytest.mark.parametrize("attend", [attention, fused_attention])
def test_the_weights_of_a_bound_scale_use_it(attend):
    layer = layer_of(attend=partial(attend, scale=1.0))
    x = tokens()
    _, _, v = layer.heads(x)
    weights = layer.weights(x)
    assert_close(layer.W_o(merge_heads(weights @ v)), layer(x))
    layer.attend = attend
    assert not torch.allclose(layer.weights(x), weights)


@pytest.mark.parametrize("attend", [only_here, partial(only_here)])
def test_what_has_no_weights_says_so(attend):
    layer = MultiHeadAttention(D_MODEL, HEADS, attend=attend)
    with pytest.raises(ValueError, match=r"table of weights.*only_here"):
        layer.weights(torch.randn(2, 7, D_MODEL))


@pytest.mark.parametrize("name", ["mask", "bias"])
@pytest.mark.parametrize("method", ["forward", "weights"])
def test_three_axes_could_be_batch_or_heads(name, method):
    table = torch.ones(BATCH, N_Q, N_Q)
    table = table.bool() if name == "mask" else table.double()
    message = rf"{name} must be .*\(2, 7, 7\); write {name}\[:, None\]"
    with pytest.raises(ValueError, match=message):
        getattr(layer_of(), method)(tokens(), **{name: table})


def test_a_mask_of_four_axes_is_batch_and_heads():
    layer, x = layer_of(), tokens()
    mask = torch.rand(BATCH, 1, N_Q, N_Q) < 0.6
    out = layer(x, mask=mask)
    for b in range(BATCH):
        alone = layer(x[b : b + 1], mask=mask[b, 0])
        assert_close(out[b : b + 1], alone)


# Dropout


@pytest.mark.parametrize("attend", [attention, fused_attention])
def test_weights_are_dropped_in_training_only(attend):
    layer, x = layer_of(dropout=0.5, attend=attend), tokens()
    plain = layer_of(attend=attend)
    plain.load_state_dict(layer.state_dict())
    assert torch.equal(layer.eval()(x), plain(x))
    layer.train()
    assert not torch.allclose(layer(x), plain(x))
    torch.manual_seed(3)
    dropped = layer(x)
    torch.manual_seed(3)
    q, k, v = layer.heads(x)
    expected = layer.W_o(merge_heads(attend(q, k, v, dropout_p=0.5)))
    assert_close(dropped, expected)


def test_the_weights_shown_are_never_dropped():
    layer, x = layer_of(dropout=0.5).train(), tokens()
    weights = layer.weights(x)
    assert torch.equal(weights, layer.eval().weights(x))
    assert (weights > 0).all()


@pytest.mark.parametrize("attend", [attention, Weighed()])
def test_an_option_of_a_mechanism_that_is_misspelt_is_refused(attend):
    """Python said so at the first call, in words of its own."""
    with pytest.raises(TypeError, match=r"^attend must take what is bound"):
        layer_of(attend=partial(attend, scales=3.0))
    with pytest.raises(ValueError, match=r"^a mechanism must take mask"):
        layer_of(attend=partial(torch.softmax, dim=-1))


@pytest.mark.parametrize(
    "bound",
    [
        {"causal": True},
        {"mask": torch.ones(N_Q, N_Q, dtype=torch.bool).tril()},
        {"bias": torch.zeros(N_Q, N_Q)},
        {"dropout_p": 0.5},
    ],
    ids=lambda bound: next(iter(bound)),
)
@pytest.mark.parametrize("attend", [attention, Weighed()])
def test_what_the_layer_gives_at_each_call_cannot_be_bound_before(
    attend, bound
):
    """The layer's own ``causal=False`` overrode a causal partial, and every
    token saw those after it, without a word.
    """
    (name,) = bound
    message = rf"cannot be bound beforehand, but attend binds {name}"
    bound = partial(attend, **bound)
    with pytest.raises(ValueError, match=message):
        layer_of(attend=bound)
    with pytest.raises(ValueError, match=message):
        layer_of(attend=partial(bound, scale=1.0))  # one more around it
    layer, x = layer_of(), tokens()
    layer.attend = bound  # and not by the back door
    for call in (layer, layer.weights):
        with pytest.raises(ValueError, match=message):
            call(x)


def test_the_parameters_of_a_bound_mechanism_are_the_layers():
    """They were none: nothing trained them, and nothing saved them."""

    class Scaled(Weighed):
        def forward(self, q, k, v, *, scale=1.0, **options):
            return super().forward(scale * q, k, v, **options)

    layer, x = layer_of(attend=partial(Scaled(), scale=3.0)), tokens()
    assert layer.attend.func.gain in set(layer.parameters())
    layer(x).sum().backward()
    assert layer.attend.func.gain.grad is not None
    twin = copy.deepcopy(layer)
    assert twin.attend.func.gain in set(twin.parameters())
    with torch.no_grad():
        twin.attend.func.gain.mul_(2)
    assert not torch.equal(twin(x), layer(x))


def test_dropout_needs_a_mechanism_that_drops():
    with pytest.raises(ValueError, match=r"takes dropout_p, .*dropout=0\.1"):
        MultiHeadAttention(15, 3, dropout=0.1, attend=only_here)
    MultiHeadAttention(15, 3, attend=only_here)
    MultiHeadAttention(
        15, 3, dropout=0.1, attend=partial(attention, scale=1.0)
    )


@pytest.mark.parametrize("dropout", [-0.1, 1.1])
def test_dropout_is_a_share(dropout):
    with pytest.raises(ValueError, match="between 0 and 1"):
        MultiHeadAttention(15, 3, dropout=dropout)


# Rotation


def turn(x, offset=0):
    """Each pair of features, seen as a complex number, times e^{ip/10^i}."""
    p = torch.arange(offset, offset + x.shape[-2])[:, None]
    angle = p / 10.0 ** torch.arange(x.shape[-1] // 2)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turned = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def rotating(n_kv_heads, **options):
    layer = MultiHeadAttention(
        24, 6, n_kv_heads=n_kv_heads, rotate=turn, **options
    )
    return layer.double()


@pytest.mark.parametrize("n_kv_heads", [1, 2, 6])
@pytest.mark.parametrize("n_q", [1, 7, 11])
def test_queries_and_keys_are_rotated_and_values_are_not(n_kv_heads, n_q):
    layer = rotating(n_kv_heads)
    x, context = tokens(n_q, 24), tokens(N_K, 24)
    q, k, v = layer.heads(x, context)
    layer.rotate = None
    plain = layer.heads(x, context)
    for p in range(n_q):  # the last query sits on the last key
        at = N_K - n_q + p
        assert_close(q[:, :, p : p + 1], turn(plain[0][:, :, p : p + 1], at))
    for p in range(N_K):
        assert_close(k[:, :, p : p + 1], turn(plain[1][:, :, p : p + 1], p))
    assert torch.equal(v, plain[2])
    assert (q - plain[0]).abs().max() > 0.1


def test_shared_keys_are_rotated_once_and_then_shared():
    seen = []

    def watch(x, offset):
        seen.append((x.shape[-3], offset))
        return turn(x, offset)

    layer = rotating(2)
    layer.rotate = watch
    layer(tokens(N_Q, 24), tokens(N_K, 24))
    assert sorted(seen) == [(2, 0), (6, N_K - N_Q)]


@pytest.mark.parametrize("n_kv_heads", [2, 6])
@pytest.mark.parametrize("new", [1, 3])
def test_new_tokens_on_old_ones_give_the_last_rows_of_the_whole(
    n_kv_heads, new
):
    layer, x = rotating(n_kv_heads), tokens(N_K, 24)
    whole = layer(x, causal=True)
    assert_close(layer(x[:, -new:], x, causal=True), whole[:, -new:])
    # A cache that forgets its oldest tokens counts anew from the ones left.
    window = torch.arange(N_K) >= 4
    kept = layer(x[:, -new:], x[:, 4:], causal=True)
    assert_close(kept, layer(x, causal=True, mask=window[None])[:, -new:])


@pytest.mark.parametrize("n_kv_heads", [2, 6])
def test_keys_and_values_kept_are_those_made_anew(n_kv_heads):
    """Piece by piece, with a rotation that goes on where it stopped."""
    layer, x = rotating(n_kv_heads), tokens(N_K, 24)
    kept = layer.keys_values(x[:, :5])
    first = [part.clone() for part in kept]
    longer = layer.keys_values(x[:, 5:], kept)
    assert longer.k.shape == longer.v.shape == (BATCH, n_kv_heads, N_K, 4)
    assert_close(longer, layer.keys_values(x))
    assert all(map(torch.equal, kept, first))  # the past can be used again
    asked = x[:, -3:]
    whole = layer(x, causal=True)[:, -3:]
    assert_close(layer(asked, longer, causal=True), whole)
    shown = layer.weights(asked, longer, causal=True)
    assert_close(shown, layer.weights(x, causal=True)[:, :, -3:])


def test_keys_are_refused_of_another_width():
    with pytest.raises(ValueError, match=r"24 features.*\(2, 7, 23\)"):
        rotating(2).keys_values(tokens(N_Q, 23))


def test_rotation_is_in_the_weights_shown():
    layer, x = rotating(3), tokens(N_Q, 24)
    weights = layer.weights(x)
    _, _, v = layer.heads(x)
    assert_close(layer.W_o(merge_heads(weights @ v)), layer(x))
    order = torch.randperm(N_Q)
    assert (layer(x[:, order]) - layer(x)[:, order]).abs().max() > 1e-3
    layer.rotate = None
    assert not torch.allclose(layer.weights(x), weights)
    assert_close(layer(x[:, order]), layer(x)[:, order])


def test_what_rotates_is_not_copied_to_pytorch():
    with pytest.raises(ValueError, match="does not rotate queries and keys"):
        rotating(6).to_torch()


# Errors


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ((4,), "n_heads must divide d_model, but n_heads=4 and d_model=15"),
        ((0,), "n_heads must divide d_model, but n_heads=0"),
        ((-3,), "n_heads must divide d_model, but n_heads=-3"),
        ((3, 2), "n_kv_heads must divide n_heads, but n_kv_heads=2 and"),
        ((3, 0), "n_kv_heads must divide n_heads, but n_kv_heads=0 and"),
        ((3, 6), "n_kv_heads must divide n_heads, but n_kv_heads=6 and"),
    ],
)
def test_heads_that_do_not_divide_are_named(heads, message):
    n_heads, *n_kv_heads = heads
    options = {"n_kv_heads": n_kv_heads[0]} if n_kv_heads else {}
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(15, n_heads, **options)


@pytest.mark.parametrize("method", ["forward", "weights", "heads"])
def test_another_width_is_named(method):
    call = getattr(layer_of(d_context=D_CONTEXT), method)
    x, context = tokens(), tokens(N_K, D_CONTEXT)
    call(x, context)
    with pytest.raises(ValueError, match=r"^x must have 15 .*\(2, 11, 13\)"):
        call(context, context)
    with pytest.raises(ValueError, match=r"context .*13 feat.*\(2, 7, 15\)"):
        call(x)


# A module like any other


def test_state_can_be_saved_and_loaded(tmp_path):
    layer, x = layer_of(projection_bias=True, n_kv_heads=1), tokens()
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    again = layer_of(projection_bias=True, n_kv_heads=1)
    assert not torch.allclose(again(x), layer(x))
    again.load_state_dict(torch.load(tmp_path / "layer.pt"))
    assert torch.equal(again(x), layer(x))


def test_a_deep_copy_is_independent():
    layer, x = layer_of(attend=Weighed()), tokens()
    twin = copy.deepcopy(layer)
    assert torch.equal(twin(x), layer(x))
    twin.W_v.weight.data.zero_()
    twin.attend.gain.data.zero_()
    assert not torch.allclose(twin(x), layer(x))


def test_a_mechanisms_parameters_are_the_layers():
    layer = layer_of(attend=Weighed())
    assert "attend.gain" in dict(layer.named_parameters())
    layer(tokens()).sum().backward()
    assert layer.attend.gain.grad.abs() > 0


def test_a_layer_keeps_nothing_of_what_it_saw():
    layer = layer_of()
    before = set(vars(layer))
    layer(tokens())
    assert set(vars(layer)) == before
    assert not list(layer.buffers())


@pytest.mark.parametrize("attend", [attention, fused_attention])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_close(device, attend, dtype):
    layer = layer_of(device, attend=attend)
    x = tokens(device=device).detach()
    exact = layer(x)
    out = layer.to(dtype)(x.to(dtype))
    assert out.dtype == dtype
    # Weights, inputs and three projections are each rounded once, to eps/2,
    # and their errors add up over 15 features.
    bound = 15 * torch.finfo(dtype).eps * exact.abs().max()
    assert (out.double() - exact).abs().max() < bound


def test_parameters_follow_the_device(device):
    layer = layer_of().to(device)
    assert layer(tokens(device=device)).device.type == device
    assert {p.device.type for p in layer.parameters()} == {device}


def test_options_are_keywords():
    """A mask in the place of the context would be a silent mistake."""
    kinds = inspect.signature(MultiHeadAttention.forward).parameters
    for name in ("mask", "bias", "causal"):
        assert kinds[name].kind is inspect.Parameter.KEYWORD_ONLY


def test_causal_is_the_causal_mask():
    layer, x, context = layer_of(), tokens(), tokens(N_K)
    assert_close(
        layer(x, context, causal=True),
        layer(x, context, mask=causal_mask(N_Q, N_K)),
    )


def test_keys_kept_of_another_batch_are_refused():
    """Those of one sequence would broadcast to all, and not say so."""
    layer = MultiHeadAttention(8, 4, n_kv_heads=2)
    x = torch.randn(3, 5, 8)
    kept = layer.keys_values(x)
    one = KeysValues(kept.k[:1], kept.v[:1])
    with pytest.raises(ValueError, match=r"context must hold .*\(3, 2, 5, 2"):
        layer(x, one)
    with pytest.raises(ValueError, match=r"past must hold .*k is \(1, 2, 5, "):
        layer.keys_values(x, one)


def test_keys_kept_of_another_type_or_layer_are_refused():
    layer = MultiHeadAttention(8, 4, n_kv_heads=2)
    x = torch.randn(3, 5, 8)
    kept = layer.keys_values(x)
    double = KeysValues(kept.k.double(), kept.v.double())
    with pytest.raises(ValueError, match=r"context must have the type of x"):
        layer(x, double)
    fewer = KeysValues(kept.k[:, :1], kept.v[:, :1])
    with pytest.raises(ValueError, match=r"n_kv_heads.* but k is \(3, 1, 5"):
        layer(x, fewer)
    short = KeysValues(kept.k, kept.v[:, :, :-1])
    with pytest.raises(ValueError, match=r"and v is \(3, 2, 4, 2\)"):
        layer(x, short)


def test_x_of_another_type_is_refused_but_under_autocast():
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(1, 3, 8, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="x must have the type of the layer"):
        layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        kept = layer.keys_values(x)
        assert layer(x.float(), kept).shape == (1, 3, 8)


WAYS = {
    "swin_attention": lambda x: partial(
        swin_attention, grid=(2, 2), window=(2, 2), relative_bias=x
    ),
    "linear_attention": lambda x: partial(
        linear_attention, feature_map=nn.Sequential(Scaled(x), nn.Softplus())
    ),
    "a module": lambda x: partial(Scaled(x)),
    "a module bound by place": lambda x: partial(by_another, Scaled(x)),
}


class Scaled(nn.Module):
    """Something with one parameter, as a map or as a mechanism."""

    def __init__(self, x):
        super().__init__()
        self.x = x

    def forward(self, q, k=None, v=None, **tables):
        return q * self.x.sum()


def by_another(module, q, k, v, **tables):
    """A mechanism that asks a module."""
    return module(q) + v


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("late", [False, True])
def test_what_a_mechanism_binds_is_the_layers(way, late):
    """Registered, moved, swapped and trained; in a partial, none of it was."""
    own = nn.Parameter(torch.ones(2, 3, 3))
    layer = MultiHeadAttention(8, 2, attend=attention if late else way(own))
    if late:
        layer.attend = way(own)
    [name] = [n for n, x in layer.named_parameters() if x is own]
    layer.double()
    x = torch.randn(1, 4, 8).double()
    layer(x).square().sum().backward()
    assert own.grad.dtype == torch.float64
    assert own.grad.isfinite().all()
    weights = dict(layer.named_parameters()) | {name: own.detach() * 3}
    other = torch.func.functional_call(layer, weights, (x,))
    again = copy.deepcopy(layer)
    with torch.no_grad():
        dict(again.named_parameters())[name].mul_(3)
    assert_close(other, again(x))
    layer.attend = attention  # which takes its place, its parameters with it
    assert name not in dict(layer.named_parameters())
    assert not any(x is own for x in layer.parameters())


def test_a_rotation_that_is_bound_is_the_layers():
    turn = partial(
        lambda x, by, offset: x * by, by=nn.Parameter(torch.ones(1))
    )
    layer = MultiHeadAttention(8, 2, rotate=turn)
    assert "rotate.learned.by" in dict(layer.named_parameters())
    layer.rotate = None
    assert [n for n, _ in layer.named_parameters()] == [
        f"W_{x}.weight" for x in "qkvo"
    ]


def test_a_bound_mechanism_with_weights_shows_them():
    shaw = ShawAttention(4, max_distance=2)
    x = torch.randn(1, 5, 8)
    bare = MultiHeadAttention(8, 2, attend=shaw)
    layer = copy.deepcopy(bare)
    layer.attend = partial(layer.attend)
    assert_close(layer.weights(x), bare.weights(x))


def test_the_advice_for_a_copy_can_be_followed():
    """A function could not take the place of a module."""
    layer = MultiHeadAttention(8, 2, attend=LinformerAttention(nn.Identity()))
    with pytest.raises(ValueError, match=r"set layer\.attend = attention"):
        layer.to_torch()
    layer.attend = attention
    x = torch.randn(1, 3, 8)
    assert_close(layer.to_torch()(x, x, x)[0], layer(x))


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (lambda q, k, v, **t: q[:, :, :1], r"attend must return .*\(1, 2, 1"),
        (lambda q, k, v, **t: (q, None), "what attend returns must be a ten"),
        (lambda q, k, v, **t: q[..., :1], "attend must return"),
        (lambda q, k, v, **t: q.mean(1, True), "attend must return"),
    ],
)
def test_a_mechanism_that_returns_no_such_thing_is_named(unchecked, odd, told):
    """One token for three was taken without a word."""
    layer = MultiHeadAttention(8, 2, attend=odd)
    with pytest.raises((TypeError, ValueError), match=told):
        layer(torch.randn(1, 3, 8))


def test_a_mechanism_is_no_class_and_no_builtin_that_drops():
    with pytest.raises(TypeError, match="attend must be a function or a mod"):
        MultiHeadAttention(8, 2, attend=LinformerAttention)
    with pytest.raises(ValueError, match="take mask, bias and causal by name"):
        MultiHeadAttention(
            8, 2, dropout=0.1, attend=F.scaled_dot_product_attention
        )


def test_what_is_kept_in_float32_is_asked_under_autocast():
    """It was refused as of another type, or made all new keys float32."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 5, 8)
    kept = layer.keys_values(x[:, :4])
    wanted = layer(x)[:, 4:]
    with torch.autocast("cpu", torch.bfloat16):
        longer = layer.keys_values(x[:, 4:], kept)
        found = layer(x[:, 4:], longer)
        assert longer.k.dtype == longer.v.dtype == torch.bfloat16
        layer(x, kept)
    assert_close(found.float(), wanted, atol=0.05, rtol=0.05)


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (KeysValues(None, None), r"\.k must be a tensor"),
        (
            KeysValues(*torch.zeros(2, 1, 2, 1, 4, device="meta")),
            r"\.k must be where x is.*meta",
        ),
    ],
)
def test_what_is_kept_elsewhere_or_is_nothing_is_named(kept, told):
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 2, 8)
    for call in (partial(layer, x, kept), partial(layer.keys_values, x, kept)):
        with pytest.raises((TypeError, ValueError), match=told):
            call()


def test_a_copy_of_pytorchs_layer_is_where_that_is():
    """Under another default device, it was made there first."""
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.device("meta"):
        ours = MultiHeadAttention.from_torch(theirs)
        back = ours.to_torch()
    x = torch.randn(1, 3, 8)
    assert_close(ours(x), theirs(x, x, x)[0])
    assert_close(back(x, x, x)[0], ours(x))


def test_a_trace_passes_the_check_of_torch_jit(unchecked):
    """It traces once more without gradients, and found other names: a column
    was cut off, to look at, for gradients alone.
    """
    layer, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    with pytest.warns(Warning):  # of constants; and that it is not for long
        traced = torch.jit.trace(layer, x)
    other = torch.randn(3, 7, 12)
    assert_close(traced(other), layer(other))


def test_a_matrix_may_learn_its_width_at_the_first_call():
    """Until then it says that it takes no features, and was refused."""
    layer, x = layer_of(), tokens()
    layer.W_q = nn.LazyLinear(layer.d_model, bias=False, dtype=x.dtype)
    found = layer(x)
    assert layer.W_q.in_features == layer.d_model
    assert_close(layer(x), found)
