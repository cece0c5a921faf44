"""What strangers build, and has words now; and what gives them away."""

import functools
import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.cached_decoder.signs import of_lengths, sign
from selfattn.doctor.patient import Patient

here = functools.partial(examine, time_limit=None)


class FlatBlock(nn.Module):
    """All maps lie in the block; what is wrong with it is told."""

    def __init__(self, wrong=""):
        super().__init__()
        for name in ("q", "k", "v", "o"):
            setattr(self, name, nn.Linear(8, 8))
        self.n_heads = 2
        self.up, self.down = nn.Linear(8, 12), nn.Linear(12, 8)
        self.norm_a, self.norm_b = nn.LayerNorm(8), nn.LayerNorm(8)
        self.wrong = wrong

    def attend(self, x):
        q, k, v = (
            m(x).unflatten(-1, (2, 4)) for m in (self.q, self.k, self.v)
        )
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        heads = (q @ k.mT / math.sqrt(4)).softmax(dim=-1) @ v
        if self.wrong != "merged without transpose":
            heads = heads.transpose(1, 2)
        out = self.o(heads.reshape(x.shape))
        return out + x if self.wrong == "input added" else out

    def forward(self, x):
        brought = self.attend(self.norm_a(x))
        x = {
            "residual subtracted": x - brought,
            "no residual around the attention": brought,
        }.get(self.wrong, x + brought)
        inner = self.up(self.norm_b(x))
        if self.wrong != "network without a bend":
            inner = torch.relu(inner)
        return x + self.down(inner)


def test_a_block_may_have_its_parts_flat():
    report = here(FlatBlock(), kind="encoder-block")
    assert report.passed, report
    told = {
        "flat_attention": ("q", "k", "v", "o"),
        "flat_feed_forward": ("up", "relu", "down"),
        "order": "pre",
    }
    assert here(FlatBlock(), kind="encoder-block", **told).passed


def test_flat_parts_have_as_many_heads_as_any_attribute_says():
    """A block was ill for its heads' name, which a layer may well use."""
    for name in ("num_attention_heads", "config"):
        block = FlatBlock()
        del block.n_heads
        is_config = name == "config"
        setattr(block, name, SimpleNamespace(num_heads=2) if is_config else 2)
        report = here(block, kind="encoder-block")
        assert report.passed, report


def test_a_map_that_makes_all_three_is_not_taken_for_three():
    """The trouble was called the doctor's own, or the block ill."""
    block = FlatBlock()
    block.qkv = nn.Linear(8, 24)
    for names in (("qkv", "o"), ("qkv", "qkv", "qkv", "o")):
        report = here(block, kind="encoder-block", flat_attention=names)
        assert report.question.startswith("flat_attention=(q, k, v, out) na")
        assert "a module of its own" in report.question


@pytest.mark.parametrize(
    "name",
    [
        "residual subtracted",
        "no residual around the attention",
        "network without a bend",
        "merged without transpose",
        "input added",
    ],
)
def test_a_sublayer_wrongly_joined_has_its_name(name):
    report = here(FlatBlock(name), kind="encoder-block", order="pre")
    assert report.mistake is not None, report
    assert report.mistake.name == name


class Look(nn.Module):
    """Attention whose arguments are not called by their usual names."""

    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(8, 8), nn.Linear(8, 16)

    def forward(self, x, y, allowed):
        k, v = self.kv(y).chunk(2, dim=-1)
        table = self.q(x) @ k.mT / 8**0.5
        if allowed is not None:
            table = table.masked_fill(~allowed, -torch.inf)
        return table.softmax(dim=-1) @ v


class Decoder(nn.Module):
    """A decoder block that calls its parts in a way of its own."""

    def __init__(self, own="a", triangle=torch.tril):
        super().__init__()
        self.triangle = triangle
        self.a, self.c = Look(), Look()
        self.f = nn.Sequential(nn.Linear(8, 9), nn.ReLU(), nn.Linear(9, 8))
        self.n = nn.ModuleList(nn.LayerNorm(8) for _ in range(3))
        self.own = own

    def forward(self, x, y):
        past = self.triangle(torch.ones(x.shape[1], x.shape[1])).bool()
        x = self.n[0](x + getattr(self, self.own)(x, x, past))
        x = self.n[1](x + self.c(x, y, None))
        return self.n[2](x + self.f(x))


PARTS = {
    "self_attention": "a",
    "cross_attention": "c",
    "feed_forward": "f",
    "norms": ["n.0", "n.1", "n.2"],
    "order": "post",
}


def test_parts_are_called_as_the_block_calls_them():
    assert here(Decoder(), kind="decoder-block", **PARTS).passed
    report = here(Decoder("c"), kind="decoder-block", **PARTS)
    assert report.mistake.name == "attentions exchanged"
    report = here(Decoder("a", torch.triu), kind="decoder-block", **PARTS)
    assert report.mistake.name == "from the other side"


class Wrapped(nn.Module):
    """One wrapper around both sublayers: what is wrong, is wrong twice."""

    def __init__(self, path):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(8, 9), nn.ReLU(), nn.Linear(9, 8))
        self.norm_a, self.norm_b = nn.LayerNorm(8), nn.LayerNorm(8)
        self.path = path

    def forward(self, x):
        x = self.path(x, self.norm_a, lambda y: self.attention(y, y, y)[0])
        return self.path(x, self.norm_b, self.mlp)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (lambda x, norm, layer: x + layer(norm(norm(x))), "norm before and"),
        (lambda x, norm, layer: x - layer(norm(x)), "residual subtracted"),
        (lambda x, norm, layer: x + norm(layer(x)), "norm behind the sub"),
    ],
)
def test_what_a_wrapper_does_to_all_sublayers_has_its_name(path, name):
    report = here(Wrapped(path), kind="encoder-block", order="pre")
    assert report.mistake is not None, report
    assert report.mistake.name.startswith(name)


class Cached(nn.Module):
    """A decoder with a cache; what is wrong with it is told."""

    def __init__(self, wrong=""):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(6, 6) for _ in "qkv")
        self.wrong = wrong

    def forward(self, x, cache):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if cache is not None:
            old = cache["k"], cache["v"]
            if self.wrong == "keys kept as values":
                old = old[::-1]
            if self.wrong == "rounded as it is read":
                old = old[0].bfloat16().to(x.dtype), old[1]
            if self.wrong == "first text for all":
                old = tuple(one[:1].expand_as(one) for one in old)
            pairs = [(old[0], k), (old[1], v)]
            if self.wrong == "new ones in front":
                pairs = [pair[::-1] for pair in pairs]
            k, v = (torch.cat(pair, dim=1) for pair in pairs)
        n, m = q.shape[1], k.shape[1]
        past = torch.ones(n, m).tril(m - n).bool()
        if self.wrong == "no scale":
            q = q * 6**0.5
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=past)
        weights = (q @ k.mT / 6**0.5).softmax(dim=-1)
        if self.wrong == "mask after softmax":
            out = weights * past @ v
        if self.wrong == "weights averaged":
            out = weights.mean(dim=1, keepdim=True).expand_as(weights) @ v
        if self.wrong == "kept in half precision":
            k, v = (x.bfloat16().to(x.dtype) for x in (k, v))
        if self.wrong == "last word not kept":
            k, v = k[:, :-1], v[:, :-1]
        return out, {"k": k, "v": v}


def call(model, x, cache):
    return model(x, cache)


@pytest.mark.parametrize(
    "name",
    [
        "keys kept as values",
        "first text for all",
        "new ones in front",
        "kept in half precision",
        "last word not kept",
        "mask after softmax",
        "weights averaged",
    ],
)
def test_a_cache_gives_a_decoder_away(name):
    torch.manual_seed(0)
    told = {"d_model": 6, "call": call}
    report = here(Cached(name), kind="cached-decoder", **told)
    assert report.mistake is not None, report
    assert report.mistake.name == name


def test_what_is_rounded_as_it_is_read_was_as_good_as_kept_so():
    """Only what was there before is of few digits, and so nothing was seen."""
    torch.manual_seed(0)
    told = {"d_model": 6, "call": call}
    wrong = Cached("rounded as it is read")
    report = here(wrong, kind="cached-decoder", **told)
    assert report.mistake.name == "kept in half precision"


def written_over(model, x, cache):
    """There is room for all, and the new ones are put at its beginning."""
    k, v, start = cache or (x.new_zeros(2, 9, 6), x.new_zeros(2, 9, 6), 0)
    k, v, n = k.clone(), v.clone(), x.shape[1]
    k[: len(x), :n], v[: len(x), :n] = model.k(x), model.v(x)
    end = start + n
    seen = torch.arange(end) <= torch.arange(start, end)[:, None]
    keys, values = k[: len(x), :end], v[: len(x), :end]
    out = F.scaled_dot_product_attention(
        model.q(x), keys, values, attn_mask=seen
    )
    return out, (k, v, end)


def test_what_is_written_over_is_not_called_a_mask_left_out():
    """A chunk saw later words of its own, where old ones should have been."""
    torch.manual_seed(0)
    told = {"d_model": 6, "call": written_over}
    report = here(Cached(), kind="cached-decoder", **told)
    assert report.mistake.name == "only the last chunk kept"


def first_on_first(model, x, cache):
    """Beside what it says itself, it hears but the beginning."""
    q, k, v = model.q(x), model.k(x), model.v(x)
    if cache is not None:
        k, v = (
            torch.cat((o, n), 1) for o, n in zip(cache, (k, v), strict=True)
        )
    seen = torch.ones(q.shape[1], k.shape[1]).tril().bool()
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    return x + out, (k, v)


def test_a_path_past_the_layer_does_not_hide_where_a_mask_begins():
    """Each token moved with itself, and it was called another mistake."""
    torch.manual_seed(0)
    told = {"d_model": 6, "call": first_on_first}
    report = here(Cached(), kind="cached-decoder", **told)
    assert report.mistake.name == "first on first"


def test_a_sound_cache_gives_nothing_away():
    torch.manual_seed(0)
    facts = {"call": call}
    model = Patient(
        Cached(), facts, lambda thing, facts: functools.partial(call, thing)
    )
    assert sign(model, 6) == ""
    assert of_lengths([2, 3, 5]) == ""
    assert of_lengths([2, 2, 2]) == "cache never grows"


def masked(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1)


def by_length(scores, lengths=None):
    keys = torch.arange(scores.shape[-1])
    if lengths is None:
        return masked(scores)
    return masked(scores, keys < lengths[:, None, None])


def test_a_softmax_may_take_a_mask_or_lengths():
    assert here(masked, kind="softmax").passed
    assert here(by_length, kind="softmax").passed
    wrong = here(
        lambda scores, mask=None: (
            masked(scores, mask and ~mask)
            if mask is None
            else masked(scores, ~mask)
        ),
        kind="softmax",
        mask="keep",
    )
    assert wrong.mistake.name == "mask upside down"
