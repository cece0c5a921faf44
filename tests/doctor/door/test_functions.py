"""Functions are told apart by what they take and give back."""

import torch
from torch import nn
from torch.nn.functional import elu, layer_norm

from selfattn import attention
from selfattn.doctor.door import functions
from selfattn.doctor.door.functions import BY_NAME, kinds_of
from selfattn.doctor.door.guessing import guess
from selfattn.masks import causal_mask, padding_mask
from selfattn.positions import rope, sinusoidal


def first(f, name="f"):
    """The likeliest kind, or nothing."""
    found = kinds_of(f, name)
    return found[0][0] if found else ""


def linear(q, k, v, window=3):
    return v


def test_the_package_s_own_functions_are_known_under_any_name():
    known = {
        "attention": attention,
        "causal-mask": causal_mask,
        "padding-mask": padding_mask,
        "softmax": lambda scores: scores.softmax(dim=-1),
        "sinusoidal": sinusoidal,
        "rope": rope,
        "rms-norm": lambda x, gain: (
            x / x.square().mean(-1, keepdim=True).sqrt() * gain
        ),
        "layer-norm": lambda x, gain, shift: layer_norm(
            x, x.shape[-1:], gain, shift
        ),
        "positions": lambda x: x + torch.arange(x.shape[1])[:, None] / 9,
    }
    assert {kind: first(f) for kind, f in known.items()} == {
        kind: kind for kind in known
    }


def test_three_arguments_without_their_names_are_averaged_or_not():
    assert first(lambda a, b, c: attention(a, b, c)) == "attention"
    assert first(lambda a, b, c: a + b) == ""


def test_a_name_may_end_in_q_k_and_v_and_tokens_may_come_before_heads():
    assert first(lambda xq, xk, xv, t=1: xv) == "attention"

    def of_tokens_first(a, b, c):
        heads_first = (x.transpose(1, 2) for x in (a, b, c))
        return attention(*heads_first).transpose(1, 2)

    assert first(of_tokens_first) == "attention"


def test_a_mask_that_blocks_is_no_block():
    assert first(lambda q, k, v, block_mask=None: v) == "attention"
    assert first(lambda q, k, v, block=64: v) == "efficient"


def test_what_saves_work_says_so_by_its_names():
    assert [kind for kind, _ in kinds_of(linear, "f")] == [
        "efficient",
        "attention",
    ]


def test_a_softmax_over_another_axis_is_one_and_a_feature_map_is_none():
    assert first(lambda x: x.softmax(dim=0)) == "softmax"
    assert first(lambda x: x.bfloat16().softmax(-1).to(x.dtype)) == "softmax"
    assert first(lambda x: elu(x) + 1) == ""
    assert first(lambda x: elu(x) + 1, "softmax") == "softmax"


def test_halves_that_change_places_are_no_rotation():
    def rotate_half(x):
        one, other = x.chunk(2, dim=-1)
        return torch.cat((-other, one), dim=-1)

    assert first(rotate_half, "rotate_half") == ""
    assert kinds_of(rotate_half, "apply_rotary") == [("rope", BY_NAME)]


def test_a_rotation_may_be_handed_its_cosines():
    def turned(x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    assert first(turned) == "rope"


def test_a_rotation_of_a_query_and_a_key_is_no_norm():
    """Called with a gain, a shift and an eps, it gave tokens another size."""

    def turned(x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    def both(q, k, cos, sin):
        return turned(q, cos, sin), turned(k, cos, sin)

    def spread(q, k, cos, sin, unsqueeze_dim=1):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        return both(q, k, cos, sin)

    why = "it turns tokens by tables that it is handed"
    for f in (both, spread, turned):
        assert kinds_of(f, "apply_rotary_pos_emb")[0] == ("rope", why)
        assert kinds_of(f, "f") == [("rope", why)]


def test_who_asks_for_more_than_a_kind_is_called_with_is_none_of_it():
    def rms_norm_backward(dy, x, gain, eps):
        return dy * gain / (dy.square().mean(-1, keepdim=True) + eps).sqrt()

    def softmax_positions(x, one, two, three, four, five):
        return x

    for f in (rms_norm_backward, softmax_positions):
        assert kinds_of(f, f.__name__) == []
        assert not guess(f, f.__name__).kind


def test_a_norm_is_known_by_what_it_does_whatever_its_gain():
    """Whatever it takes for a token's size, too: an ill one is known."""
    gain, shift = torch.rand(8) + 0.5, torch.randn(8)

    def by_spread(x, weight, bias):
        centred = x - x.mean(dim=-1, keepdim=True)
        return gain * centred / centred.abs().amax(-1, keepdim=True) + shift

    def by_size(x, weight):
        return gain * x / (x.abs().mean(dim=-1, keepdim=True) + 1e-3)

    assert first(by_spread) == "layer-norm" and first(by_size) == "rms-norm"
    assert not first(lambda x, weight: x * gain)


class L2Norm(nn.Module):
    def forward(self, x):
        return x / x.norm(dim=-1, keepdim=True)


def test_a_norm_that_says_to_leave_lengths_alike_is_none_of_ours():
    """It was taken for an RMS norm that sums instead of averaging."""
    assert guess(L2Norm(), "L2Norm").kind == ""
    assert guess(L2Norm(), "L2Norm").why.startswith("it looks like nothing")
    mean = type("RMSNorm", (L2Norm,), {})
    assert guess(mean(), "RMSNorm").kind == "rms-norm"


def test_two_numbers_that_hide_nothing_are_no_mask():
    assert not first(lambda n, m: 5 * torch.ones(n, m).tril())
    same = lambda tokens: torch.zeros(2, 5).bool()  # noqa: E731
    assert not first(same)


def test_a_table_of_two_values_is_a_mask_and_one_of_many_is_none():
    assert first(lambda n: torch.ones(n, n).tril()) == "causal-mask"
    assert first(lambda n, d: torch.rand(n, d)) == "sinusoidal"
    assert first(lambda n: torch.ones(n)) == ""
    assert functions.of_a_padding_mask(lambda ids: ids == 0, "f")
    assert not functions.of_a_padding_mask(lambda ids: ids, "f")


def test_the_name_alone_comes_last():
    """What it does is looked at before what it is called."""
    found = kinds_of(lambda x: x.softmax(-1), "rope")
    assert [kind for kind, _ in found] == ["softmax", "rope"]


def dense(q, k, v):
    return attention(q, k, v)


def in_blocks(q, k, v):
    return v


def whole(q, k, v):
    return dense(q, k, v)


def in_parts(q, k, v):
    return in_blocks(q, k, v)


def test_what_its_code_calls_speaks_for_a_kind():
    assert first(whole) == "attention" and first(in_parts) == "efficient"


def test_a_number_is_no_mask():
    def lost(n, m=0):
        return torch.tensor(1.0)

    assert first(lost) == ""
