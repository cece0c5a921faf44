"""Sound attention that was called ill for how it is called, or not at all."""

import functools
import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

attention = functools.partial(examine, kind="attention", time_limit=None)
cross = functools.partial(examine, kind="cross-attention", time_limit=None)
itself = functools.partial(examine, kind="self-attention", time_limit=None)


def under(scores, seen, v):
    return scores.masked_fill(~seen, -1e9).softmax(dim=-1) @ v


def by_lengths(q, k, v, valid_lens=None):
    """Lengths are one for each text, or one for each of its queries."""
    scores = torch.bmm(q, k.mT) / math.sqrt(q.shape[-1])
    if valid_lens is None:
        return scores.softmax(dim=-1) @ v
    lengths = valid_lens[:, None] if valid_lens.ndim == 1 else valid_lens
    return under(scores, torch.arange(k.shape[1]) < lengths[..., None], v)


def of_heads(q, k, v, key_lengths=None):
    """Lengths are one for each text, of all heads."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if key_lengths is None:
        return scores.softmax(dim=-1) @ v
    seen = torch.arange(k.shape[-2]) < key_lengths[:, None, None, None]
    return under(scores, seen, v)


def must_be_told_lengths(q, k, v, lengths):
    return by_lengths(q, k, v, lengths)


LENGTHS = [
    (by_lengths, "BND"),
    (of_heads, "BHND"),
    (must_be_told_lengths, "BND"),
]


@pytest.mark.parametrize(("attend", "layout"), LENGTHS)
def test_what_hides_may_be_said_by_lengths(attend, layout):
    """Layers had the word, and functions had none for the same thing."""
    told = attention(attend, layout=layout, mask="lengths")
    assert told.passed, told
    assert attention(attend).passed


def test_lengths_that_hide_too_little_are_a_mistake():
    def one_more(q, k, v, valid_lens=None):
        return by_lengths(
            q, k, v, None if valid_lens is None else valid_lens + 1
        )

    report = attention(one_more, layout="BND", mask="lengths")
    assert report.exit_code == 1, report


def one_key_more(q, k, v, key_lengths=None):
    """Nobody told what its lengths are, but they hide what is behind them."""
    longer = None if key_lengths is None else key_lengths + 1
    return of_heads(q, k, v, longer)


def test_lengths_of_which_nobody_told_are_held_to_what_they_hide():
    report = attention(one_key_more)
    assert report.findings and report.facts["mask"] == "lengths", report


def within_a_length(q, k, v, max_length=None):
    """No mask, but the longest text that it takes."""
    if max_length is not None and q.shape[-2] > max_length:
        raise ValueError("too long")
    return of_heads(q, k, v)


def sharper_in_longer(q, k, v, train_length=None):
    """No mask, but what its scores are multiplied by."""
    if train_length is not None:
        length = torch.as_tensor(train_length).flatten()[0]
        q = q * math.log(k.shape[-2]) / length.log()
    return of_heads(q, k, v)


def sharper_by_lengths(q, k, v, lengths=None):
    """The same, of a name that says no more."""
    return sharper_in_longer(q, k, v, lengths)


@pytest.mark.parametrize(
    "attend", [within_a_length, sharper_in_longer, sharper_by_lengths]
)
def test_a_length_that_hides_no_key_is_no_mask(attend):
    """It was handed lengths of texts, and called ill for what it made."""
    report = attention(attend)
    assert report.passed, report
    assert "a mask" in str(report.not_asked) or "mask" in report.lacking


def must_have_a_mask(q, k, v, mask):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ v


def must_have_none(q, k, v, mask):
    if mask is None:
        return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v
    return must_have_a_mask(q, k, v, mask)


def must_have_padding(q, k, v, mask):
    return must_have_a_mask(q, k, v, ~mask[:, None, None])


@pytest.mark.parametrize(
    ("attend", "told"),
    [
        (must_have_a_mask, {"mask": "keep"}),
        (must_have_none, {"mask": "keep"}),
        (must_have_padding, {"mask": "block", "layout": "BHND"}),
    ],
)
def test_who_must_be_handed_a_mask_is_handed_one(attend, told):
    """It was called without, and raised wherever nothing is hidden."""
    assert attention(attend, **told).passed
    assert attention(attend).passed


def must_have_scores(q, k, v, mask):
    """What it is handed is added, whether or not it is a mask of numbers."""
    scores = q @ k.mT / math.sqrt(q.shape[-1]) + mask
    return scores.softmax(dim=-1) @ v


def must_have_what_hides(q, k, v, mask):
    """It has no scale; and whoever is handed only what hides is lost."""
    return (q @ k.mT).masked_fill(mask, -torch.inf).softmax(dim=-1) @ v


def must_have_scores_unscaled(q, k, v, mask):
    return (q @ k.mT + mask).softmax(dim=-1) @ v


def test_what_a_mask_says_that_must_be_told_is_seen_by_one_that_hides():
    """By one that hides nothing True allows, forbids or is added alike."""
    report = attention(must_have_scores)
    assert report.passed, report
    assert report.facts["mask"] == "add"


@pytest.mark.parametrize(
    ("attend", "meaning"),
    [(must_have_what_hides, "block"), (must_have_scores_unscaled, "add")],
)
def test_what_it_says_is_seen_of_one_without_a_scale(attend, meaning):
    report = attention(attend)
    assert report.mistake.name == "no scale", report
    assert report.facts["mask"] == meaning
    assert "scale=1.0" in report.different
    assert attention(attend, scale=1.0).passed


def may_have_a_mask(q, k, v, mask=None, causal=False):
    n_q, n_k = q.shape[-2], k.shape[-2]
    if causal:
        past = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
        mask = past if mask is None else mask & past
    return must_have_none(q, k, v, mask)


@pytest.mark.parametrize("ours", ["mask", "causal"])
def test_a_name_that_is_told_to_be_none_is_none(ours):
    """It was looked for among the masks all the same, and raised."""
    report = attention(may_have_a_mask, names={ours: None})
    assert report.passed, report
    assert ours in report.lacking


def in_other_words(q, k, v, mask=None):
    """A mask of words, of which nobody told."""
    if mask is not None:
        raise ValueError("a mask is 'past' or 'none'")
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v


def counted_from_one(q, k, v, mask=None):
    """The n-th query sees as many keys as the n-th number says, and one."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is None:
        return scores.softmax(dim=-1) @ v
    seen = torch.arange(k.shape[-2]) <= mask.float().sum(-1, keepdim=True) / 2
    return under(scores, seen, v)


@pytest.mark.parametrize("attend", [in_other_words, counted_from_one])
def test_nobody_is_accused_by_what_a_mask_is_assumed_to_say(attend):
    """What it says was neither told nor seen, and it was called ill by it."""
    report = attention(attend, layout="any")
    assert report.exit_code == 3, report
    assert "mask=…" in report.different
    assert attention(attend, layout="any", mask="keep").exit_code == 1


def test_a_mistake_with_a_name_is_one_whatever_a_mask_says():
    def not_used(q, k, v, mask=None):
        return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v

    report = attention(not_used, layout="any")
    assert report.mistake is not None, report
    assert report.exit_code == 1


class Across(nn.Module):
    """Cross-attention of three heads, of x and what it looks at."""

    def __init__(self, d=12, d_context=12):
        super().__init__()
        self.n_heads = 3
        self.q, self.out = nn.Linear(d, d), nn.Linear(d, d)
        self.k, self.v = (nn.Linear(d_context, d) for _ in range(2))

    def look(self, x, context):
        q, k, v = (
            part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for part in (self.q(x), self.k(context), self.v(context))
        )
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class SecondAsks(Across):
    def forward(self, x, y):
        return self.look(y, x)


class Hidden(Across):
    def forward(self, decoder_hidden, encoder_outputs):
        return self.look(decoder_hidden, encoder_outputs)


class HiddenBehind(Across):
    def forward(self, encoder_outputs, decoder_hidden):
        return self.look(decoder_hidden, encoder_outputs)


@pytest.mark.parametrize("of", [SecondAsks, Hidden, HiddenBehind])
@pytest.mark.parametrize("d_context", [12, 9])
def test_who_asks_is_who_is_as_long_as_the_output(of, d_context):
    """Names came first: y was the context, and what is hidden a mask."""
    for told in ({}, {"layout": "BND", "causal": False}):
        report = cross(of(12, d_context), **told)
        assert report.passed, report


def test_who_asks_with_what_is_plainly_the_context_is_wrong():
    class Turned(Across):
        def forward(self, x, context):
            return self.look(context, x)

    assert not cross(Turned(), layout="BND", causal=False).passed


class Added(nn.Module):
    """Scores of a small network; values are the context itself."""

    def __init__(self):
        super().__init__()
        self.W, self.U = nn.Linear(8, 10), nn.Linear(6, 10)
        self.score = nn.Linear(10, 1)

    def forward(self, states, encoder_states):
        both = self.W(states)[:, :, None] + self.U(encoder_states)[:, None]
        weights = self.score(both.tanh()).squeeze(-1).softmax(dim=-1)
        return weights @ encoder_states


class Bilinear(nn.Module):
    """One matrix between the two; values are the context itself."""

    def __init__(self):
        super().__init__()
        self.W = nn.Linear(6, 8)

    def forward(self, states, encoder_states):
        scores = states @ self.W(encoder_states).mT
        return scores.softmax(dim=-1) @ encoder_states


@pytest.mark.parametrize("of", [Added, Bilinear])
def test_widths_that_no_map_tells_are_seen_by_calls(of):
    report = cross(of(), layout="BND", causal=False, formula="own")
    assert report.passed, report


class KeysAndValuesByHead(Across):
    """One map makes a head's keys and its values, then the next head's."""

    def __init__(self):
        super().__init__()
        del self.k, self.v
        self.kv = nn.Linear(12, 24)

    def forward(self, x, context):
        cut = self.kv(context).unflatten(-1, (self.n_heads, -1))
        k, v = cut.transpose(1, 2).chunk(2, dim=-1)
        q = self.q(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


def test_keys_and_values_may_come_a_head_after_the_other():
    told = {"layout": "BND", "causal": False, "packed": "by head"}
    assert cross(KeysAndValuesByHead(), **told).passed
    assert cross(KeysAndValuesByHead()).passed


class OneForAll(nn.Module):
    """One map of a head's features for all heads."""

    def __init__(self, with_out=True):
        super().__init__()
        self.n_heads = 3
        self.q_map, self.k_map, self.v_map = (
            nn.Linear(4, 4, bias=bias) for bias in (False, True, False)
        )
        self.out = nn.Linear(12, 12) if with_out else nn.Identity()

    def forward(self, values, keys, queries, mask):
        q, k, v = (
            part(x.unflatten(-1, (self.n_heads, -1))).transpose(1, 2)
            for part, x in (
                (self.q_map, queries),
                (self.k_map, keys),
                (self.v_map, values),
            )
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-1e20"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class OneEach(nn.Module):
    """A map of a head's features for each head, of its piece of x."""

    def __init__(self):
        super().__init__()
        self.d_head = 4
        self.q_mappings, self.k_mappings, self.v_mappings = (
            nn.ModuleList(nn.Linear(4, 4) for _ in range(3)) for _ in range(3)
        )

    def forward(self, x):
        made = []
        for i, piece in enumerate(x.split(self.d_head, dim=-1)):
            q, k, v = (
                maps[i](piece)
                for maps in (self.q_mappings, self.k_mappings, self.v_mappings)
            )
            made.append((q @ k.mT / self.d_head**0.5).softmax(dim=-1) @ v)
        return torch.cat(made, dim=-1)


@pytest.mark.parametrize(
    "made",
    [OneForAll(), OneForAll(with_out=False), OneEach()],
    ids=["one for all", "without a map out", "one each"],
)
def test_each_head_may_map_its_own_piece_of_x(made):
    """The width of x was taken from the maps, and all of it raised."""
    report = itself(made, layout="BND", causal=False, n_heads=3)
    assert report.passed, report
    assert report.facts.get("formula") != "own"  # its numbers are known


def test_pieces_are_held_to_their_numbers():
    class Unscaled(OneForAll):
        def forward(self, values, keys, queries, mask):
            return super().forward(values, keys, 2 * queries, mask)

    report = itself(Unscaled(), layout="BND", causal=False, n_heads=3)
    assert report.exit_code == 1, report


def test_who_raises_at_nearly_all_is_called_wrongly_it_may_be():
    """A layer of a grid's points, say, which takes texts of nine alone."""

    class OfAGrid(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value = (
                nn.Linear(12, 12) for _ in range(3)
            )

        def forward(self, x):
            n, size, _ = x.shape
            x = x.reshape(n, 3, size // 3, 12).flatten(1, 2)
            q, k, v = self.query(x), self.key(x), self.value(x)
            return (q @ k.mT / math.sqrt(12)).softmax(dim=-1) @ v

    report = itself(OfAGrid(), layout="BND", causal=False, n_heads=1)
    assert report.exit_code == 3, report
    assert "However I call it, it raises" in report.different
