"""Sound code of parts that were taken for others, or asked for too much."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.efficient.exercise import KERNELS, of_claim
from selfattn.doctor.kinds.efficient.feature_maps import alike
from selfattn.doctor.kinds.layer.learnt.scores import afterwards
from selfattn.doctor.kinds.positions.added import seen
from selfattn.positions import sinusoidal

here = functools.partial(examine, time_limit=None)


class LikePyTorch(nn.Module):
    """Bare weights of (out, in), one for all three, and a bias for them."""

    def __init__(self, name="in_proj_weight", bias="in_proj_bias"):
        super().__init__()
        self.names = name, bias
        setattr(self, name, nn.Parameter(torch.randn(24, 8)))
        setattr(self, bias, nn.Parameter(torch.zeros(24)))
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        W, b = (getattr(self, name) for name in self.names)
        q, k, v = F.linear(x, W, b).chunk(3, dim=-1)
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in (q, k, v))
        made = F.scaled_dot_product_attention(q, k, v)
        return self.out(made.transpose(1, 2).flatten(2))


def test_a_bare_matrix_with_its_outputs_first_keeps_its_bias():
    """Its bias was as wide as its inputs, and so was taken for none."""
    told = {"n_heads": 2, "packed": "by part", "causal": False}
    for names in ((), ("W_qkv", "b_qkv")):
        report = here(LikePyTorch(*names), kind="self-attention", **told)
        assert report.passed, report


def by_a_product(x, weight, bias, eps=1e-5):
    """The mean is taken away by a matrix."""
    n = x.shape[-1]
    one = torch.ones(n, n, dtype=x.dtype)
    centred = x @ (torch.eye(n, dtype=x.dtype) - one / n)
    var = centred.square().mean(-1, keepdim=True)
    return centred * (var + eps).rsqrt() * weight + bias


def test_the_last_digit_of_a_mean_is_no_mistake_where_nothing_varies():
    """It is divided by √eps there, and so comes three hundred times."""
    report = here(by_a_product, kind="layer-norm", eps=1e-5)
    assert report.passed, report


def bells(x):
    """Features that are next to nothing, far from where they lie."""
    centres = torch.linspace(-2, 2, 9, dtype=x.dtype)
    far = (x[..., None, :] - centres[:, None]).square().mean(dim=-1)
    return torch.exp(-4 * far)


def with_bells(q, k, v):
    q, k = bells(q), bells(k)
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None])


def test_a_kernel_is_not_asked_where_its_features_are_nothing():
    """Zero by zero was divided by whoever claimed such features."""
    told = {"kernel": bells, "dtypes": ["float32"]}
    report = here(with_bells, kind="efficient", **told)
    assert report.passed, report
    kept = of_claim(KERNELS, alike(bells), False).probes
    usual = of_claim(KERNELS, alike(lambda x: F.elu(x) + 1), False).probes
    left = {p.claim for p in usual} - {p.claim for p in kept}
    assert left == {"scores in the hundreds"}


class Talking(nn.Module):
    """Heads mix their weights; the padding's stay zero."""

    def __init__(self, leaks=False):
        super().__init__()
        self.leaks, self.n_heads = leaks, 2
        self.qkv, self.proj = nn.Linear(8, 24), nn.Linear(8, 8)
        self.talk = nn.Linear(2, 2)

    def forward(self, x, key_padding_mask=None):
        q, k, v = (
            t.unflatten(-1, (2, 4)).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        s, hidden = q @ k.mT / 2, key_padding_mask
        if hidden is not None:
            hidden = hidden[:, None, None]
            s = s.masked_fill(hidden, -torch.inf)
        w = self.talk(s.softmax(-1).movedim(1, -1)).movedim(-1, 1)
        if hidden is not None and not self.leaks:
            w = w.masked_fill(hidden, 0.0)
        return self.proj((w @ v).transpose(1, 2).flatten(2))


def test_heads_that_talk_add_nothing_to_what_is_hidden():
    """The reference saw the padding by what the map adds to all weights."""
    more = afterwards(lambda weights: weights + 1)
    allowed = torch.tensor([True, False])
    assert more(torch.zeros(2), allowed).tolist() == [1.0, 0.0]
    told = {"formula": "own", "padding": "block", "n_heads": 2}
    told |= {"packed": "by part", "causal": False, "layout": "BND"}
    sound = here(Talking(), kind="self-attention", **told)
    assert sound.passed, sound
    assert not here(Talking(leaks=True), kind="self-attention", **told).passed


def waves(rows, d):
    at = torch.arange(rows).double()[:, None] * 100.0 ** -torch.arange(d)
    return torch.sin(at + 0.3 * torch.arange(d)).float()


class Grows(nn.Module):
    """Its table is made anew where a text is longer."""

    def __init__(self, behind="more"):
        super().__init__()
        self.behind = behind

    def forward(self, x):
        n, d = x.shape[1:]
        table = waves(max(n, 9), d)
        if self.behind == "again" and n > 9:
            table = table[torch.arange(n) % 9]
        return x + table[:n].to(x)


def test_a_table_that_goes_on_need_not_refuse_a_longer_text():
    """Whoever told its first rows was said to repeat the last of them."""
    told = {"table": waves(9, 6), "layout": "BND"}
    assert here(Grows(), kind="positions", **told).passed
    again = here(Grows("again"), kind="positions", **told)
    assert again.exit_code == 1


class Embedded(nn.Module):
    """Rows of its table, so many times, from one of them on."""

    def __init__(self, times=1.0, first=0):
        super().__init__()
        self.times, self.first = times, first
        self.rows = nn.Embedding(12, 6)

    def forward(self, x):
        ids = torch.arange(x.shape[1]) + self.first
        return x + self.times * self.rows(ids)


def test_a_table_may_be_added_several_times_or_have_spare_rows():
    """It was held to be added once, and from its first row on."""
    for made in (Embedded(), Embedded(0.5), Embedded(first=2)):
        report = here(made, kind="positions")
        assert report.passed, report
    assert not here(Embedded(first=1), kind="positions").passed
    told = {"table": Embedded().rows.weight.detach(), "layout": "BND"}
    assert not here(Embedded(0.5), kind="positions", **told).passed


class OfTwo(nn.Module):
    """A row for every four tokens and one for each of these."""

    def __init__(self):
        super().__init__()
        self.coarse = nn.Parameter(torch.randn(4, 6))
        self.fine = nn.Parameter(torch.randn(4, 6))

    def forward(self, x):
        n = x.shape[0]
        if n > 16:
            raise ValueError("too long")
        both = self.coarse[:, None] + self.fine
        return x + both.flatten(0, 1)[:n, None]


def test_a_table_made_of_two_is_seen_by_what_is_added():
    """Two tables were found in it, and so it was asked for one."""
    report = here(OfTwo(), kind="positions")
    assert report.passed and report.facts["layout"] == "NBD", report


def test_the_longest_text_that_is_taken_is_found():
    def up_to(most):
        def call(x):
            assert x.shape[1] <= most
            return x + waves(x.shape[1], x.shape[2])

        return call

    assert [seen.longest(up_to(n), 6) for n in (3, 12, 63)] == [3, 12, 63]
    assert seen.longest(up_to(1000), 6) == seen.MOST


def in_fours(q, k, v, key_mask=None):
    """(batch, tokens, heads, features); of three axes it takes any."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    seen = None if key_mask is None else key_mask[:, None, None, :]
    made = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    return made.transpose(1, 2)


def test_tokens_before_heads_are_not_features_before_tokens():
    """Of three axes it took the last for tokens, but for its mask."""
    report = here(in_fours, kind="attention")
    assert report.passed and report.facts["layout"] == "BNHD", report


def scored(q, k, v, slopes, hidden):
    steps = torch.arange(q.shape[-2])
    far = (steps[:, None] - steps).to(q.dtype)
    s = q @ k.mT / q.shape[-1] ** 0.5
    s = s - slopes[:, None, None].to(q.dtype) * far.abs()
    return s.masked_fill(hidden(far), -torch.inf).softmax(-1) @ v


def of_slopes(q, k, v):
    """Causal, and the farther away a key, the less it counts."""
    slopes = 0.3 * torch.arange(1, q.shape[1] + 1)
    return scored(q, k, v, slopes, lambda far: far < 0)


def sees_three(q, k, v):
    """Causal, and no more than three."""
    hidden = lambda far: (far < 0) | (far > 2)  # noqa: E731
    return scored(q, k, v, torch.zeros(q.shape[1]), hidden)


def sees_one_later(q, k, v):
    """Causal, but one place off."""
    zeros = torch.zeros(q.shape[1])
    return scored(q, k, v, zeros, lambda far: far < -1)


def test_what_a_function_plainly_does_on_purpose_is_its_claim():
    """Of whom nothing was told was asked what he is."""
    for made in (of_slopes, sees_three):
        report = here(made, kind="attention")
        assert report.passed, report
    assert not here(sees_one_later, kind="attention").passed
    told = {"layout": "BHND", "causal": True}
    asked = here(of_slopes, kind="attention", **told)
    assert "say bias=…" in asked.different, asked


def turn(x):
    rates = 1e4 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = torch.arange(x.shape[-2])[:, None] * rates
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    made = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(made).flatten(-2).to(x)


class WithRope(nn.Module):
    """It turns by a function that stands outside of it."""

    def __init__(self):
        super().__init__()
        self.n_heads, self.qkv = 2, nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        rope = turn
        q, k, v = (
            t.unflatten(-1, (2, 4)).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        made = F.scaled_dot_product_attention(rope(q), rope(k), v)
        return self.out(made.transpose(1, 2).flatten(2))


def test_a_layer_that_says_that_it_turns_may_turn_by_a_function():
    """Nothing of it was a part of the module, and so it was held to none."""
    assert here(WithRope(), kind="self-attention").passed


class HidesWithMuch(nn.Module):
    """It hides by a number that is too large for float16."""

    def __init__(self):
        super().__init__()
        self.n_heads, self.qkv = 2, nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask=None):
        q, k, v = (
            t.unflatten(-1, (2, 4)).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        s = q @ k.mT / 2
        if mask is not None:
            s = s.masked_fill(~mask[:, None], -1e9)
        return self.out((s.softmax(-1) @ v).transpose(1, 2).flatten(2))


def test_half_precision_that_raises_under_a_mask_alone_is_asked_after():
    """Nobody promised it; who did is held to it."""
    report = here(HidesWithMuch(), kind="self-attention")
    assert report.mistake is None and report.different
    assert "Nobody promised this: float16" in str(report)
    told = {"dtypes": ["float32", "float16"], "mask_axes": "BNN"}
    assert not here(HidesWithMuch(), kind="self-attention", **told).passed


def norm_of_a_course(x, gamma, beta, settings=None):
    """It may be told its eps among other things, and need not."""
    eps = (settings or {}).get("eps", 1e-5)
    return F.layer_norm(x, x.shape[-1:], gamma, beta, eps)


def norm_of_names(x, scale, offset, *, epsilon=1e-6):
    return F.layer_norm(x, x.shape[-1:], scale, offset, epsilon)


def test_what_a_norm_need_not_be_told_is_not_handed_over():
    """A number was handed over as its settings, or an eps by its place."""
    for norm in (norm_of_a_course, norm_of_names):
        report = here(norm, kind="layer-norm")
        assert report.passed, report
    assert here(norm_of_a_course, kind="layer-norm", eps=1e-5).passed


def table_of_names(rows, *, features):
    return sinusoidal(rows, features)


def test_a_width_may_be_asked_for_by_its_name_alone():
    assert here(table_of_names, kind="sinusoidal", layout="pairs").passed


class Warm(nn.Module):
    """Scores over a number that it holds."""

    def __init__(self, says_so=True):
        super().__init__()
        self.held = [1 / 0.4]
        if says_so:
            self.warmth = 2.5

    def forward(self, q, k, v):
        return (q @ k.mT / self.held[0]).softmax(-1) @ v


def test_a_scale_that_a_module_holds_is_its_claim():
    """Nobody told of it, and so it was wrong."""
    assert here(Warm(), kind="attention").passed
    assert not here(Warm(says_so=False), kind="attention").passed


def capped(q, k, v):
    scores = 5 * torch.tanh(q @ k.mT / q.shape[-1] ** 0.5 / 5)
    return scores.softmax(dim=-1) @ v


def test_a_cap_of_which_nobody_spoke_is_a_claim():
    """Nobody caps scores by mistake."""
    assert here(capped, kind="attention").passed
