"""The mask of a layer, or of a softmax, whatever its argument is called."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.layer.calling import looked_up
from selfattn.doctor.kinds.layer.inputs import inputs_of
from selfattn.doctor.kinds.layer.library import library_layer

here = functools.partial(examine, time_limit=None)
TOLD = {"layout": "BND", "n_heads": 2}


def within(lengths, n):
    return torch.arange(n) < lengths[:, None]


class Across(nn.Module):
    """Attention from one sequence to another, under a mask of keys."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))

    def attend(self, x, y, seen):
        q, k, v = (
            t.unflatten(-1, (2, 4)).transpose(1, 2)
            for t in (self.q(x), self.k(y), self.v(y))
        )
        s = (q @ k.mT / 2).masked_fill(~seen[:, None, None], -torch.inf)
        return self.o((s.softmax(-1) @ v).transpose(1, 2).flatten(2))


class ByLengths(Across):
    def forward(self, queries, bank, bank_lengths):
        return self.attend(queries, bank, within(bank_lengths, bank.shape[1]))


class Shown(Across):
    def forward(self, here, there, real):
        return self.attend(here, there, real)


class Padded(Across):
    def forward(self, image, text, text_pad=None):
        every = torch.zeros(text.shape[:2], dtype=torch.bool)
        return self.attend(
            image, text, ~(every if text_pad is None else text_pad)
        )


class OfThree(Across):
    def forward(self, query, key, value, key_mask):
        return self.attend(query, key, key_mask)


class Wrong(Across):
    def forward(self, here, there, real):
        return self.attend(here, there, ~real)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (ByLengths, {"mask": "lengths"}),
        (Shown, {"mask": "keep", "mask_axes": "BN"}),
        (Shown, {"padding": "keep"}),
        (Padded, {"mask": "block", "mask_axes": "BN"}),
        (Padded, {"padding": "block"}),
        (OfThree, {"mask": "keep", "mask_axes": "BN"}),
        (OfThree, {"padding": "keep"}),
    ],
)
def test_a_mask_may_have_any_name_and_must_perhaps_be_told(made, told):
    """It was asked after, or said to lack it; or not handed over."""
    report = here(made(), kind="cross-attention", **TOLD, **told)
    assert report.passed and not {*told} & {*report.lacking}, report


def test_a_mask_of_any_name_that_is_upside_down_is_ill():
    told = {"mask": "keep", "mask_axes": "BN", **TOLD}
    report = here(Wrong(), kind="cross-attention", **told)
    assert report.exit_code == 1, report


def test_texts_come_before_the_mask_that_they_are_handed_over_with():
    masked = {"mask": "keep"}
    assert inputs_of(Shown(), masked) == {"x": "here", "context": "there"}
    assert inputs_of(Shown(), {}) == {}
    names = looked_up(Shown().forward, masked, inputs_of(Shown(), masked))
    assert (names["mask"], names["padding"]) == ("real", None)


class FromMemory(Across):
    def forward(self, memory, tokens, real):
        return self.attend(tokens, memory, real)


def test_a_context_that_comes_first_is_known_by_its_name():
    told = {"padding": "keep", **TOLD}
    assert here(FromMemory(), kind="cross-attention", **told).passed


class OfOne(Across):
    """What may stay unsaid is no mask, as it is of heads, or of places."""

    def forward(self, x, real, head_scale=None, positions=None):
        return self.attend(x, x, real)


def test_what_is_of_heads_or_of_places_is_no_mask():
    names = looked_up(OfOne().forward, {"mask": "keep"}, {})
    assert names["mask"] == "real"
    assert here(OfOne(), kind="self-attention", padding="keep", **TOLD).passed


class FromADictionary(nn.Module):
    """Its weights lie in a dictionary, and so do its outputs."""

    def __init__(self, slip=False):
        super().__init__()
        made = {f"{name}_w": torch.randn(8, 8) / 3 for name in "qkvo"}
        made |= {f"{name}_b": torch.zeros(8) for name in "qkvo"}
        self.n_heads, self.slip = 2, slip
        self.weights = nn.ParameterDict(made)

    def forward(self, x):
        def project(name, x):
            made = x @ self.weights[f"{name}_w"] + self.weights[f"{name}_b"]
            return made

        q, k, v = (
            project(name, x).unflatten(-1, (2, 4)).transpose(1, 2)
            for name in ("qkk" if self.slip else "qkv")
        )
        w = (q @ k.mT / 2).softmax(-1)
        made = project("o", (w @ v).transpose(1, 2).flatten(2))
        return {"output": made, "weights": w}


def test_weights_in_a_dictionary_are_a_layers_own():
    """They were not seen, and so its numbers were not asked."""
    told = {"layout": "BND", "causal": False, "n_heads": 2}
    sound = here(FromADictionary(), kind="self-attention", **told)
    assert sound.passed and "numbers" not in sound.lacking, sound
    wrong = here(FromADictionary(slip=True), kind="self-attention", **told)
    assert wrong.mistake.name == "keys are the values", wrong


def of_real(logits, sizes):
    """A softmax of the first keys of each text."""
    seen = within(sizes, logits.shape[-1])[:, None]
    return logits.masked_fill(~seen, -torch.inf).softmax(-1)


def test_what_a_softmax_asks_for_besides_scores_is_its_mask():
    """It was called without, and said to raise however it was called."""
    report = here(of_real, kind="softmax")
    assert report.passed, report
    assert report.facts["mask"] == "lengths", report


class LibraryLayer(nn.Module):
    """The library's layer within another, its context wider than x."""

    def __init__(self, **more):
        super().__init__()
        made = functools.partial(nn.MultiheadAttention, 8, 2)
        self.inner = made(kdim=6, vdim=6, batch_first=True, **more)

    def forward(self, words, frames):
        return self.inner(words, frames, frames, need_weights=False)[0]


class Reversed(LibraryLayer):
    """Its values are those of the frames in reverse."""

    def forward(self, words, frames):
        back = frames.flip(1)
        return self.inner(words, frames, back, need_weights=False)[0]


def test_the_librarys_layer_within_another_is_held_to_its_numbers():
    """It was asked which of two arguments is what."""
    sound = here(LibraryLayer(), kind="cross-attention")
    assert sound.passed and "numbers" not in sound.lacking, sound
    assert not here(Reversed(), kind="cross-attention").passed
    assert library_layer(LibraryLayer()) is not None
    for more in ({"add_zero_attn": True}, {"add_bias_kv": True}):
        assert library_layer(LibraryLayer(**more)) is None


class ContextFirst(Across):
    """Its mask stands between the context and x."""

    def forward(self, frames, frame_lengths, words):
        seen = within(frame_lengths, frames.shape[1])
        return self.attend(words, frames, seen)


def test_which_is_x_is_told_by_a_call_under_a_mask():
    for told in ({"mask": "lengths", **TOLD}, {}):
        report = here(ContextFirst(), kind="cross-attention", **told)
        assert report.passed, report


class Keeps(nn.Module):
    """It hands out keys and values to be kept, and takes ten tokens."""

    def __init__(self):
        super().__init__()
        self.n_heads, self.end = 2, 10
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        if x.shape[1] > self.end:
            raise ValueError("too long")
        q, k, v = (
            t.unflatten(-1, (2, 4)).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        made = (q @ k.mT / 2).softmax(-1) @ v
        return self.out(made.transpose(1, 2).flatten(2)), torch.stack((k, v))


def test_what_is_kept_is_no_weights_and_a_text_may_have_an_end():
    """Keys and values were summed up as rows of weights."""
    report = here(Keeps(), kind="self-attention")
    assert report.passed and "weights" in report.lacking, report
    assert here(Keeps(), kind="self-attention", **TOLD).passed


class Axes(nn.Module):
    """A map into heads, whose kernel has three axes."""

    def __init__(self, *size):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(*size) / 3)

    def forward(self, x):
        return torch.einsum("bnd,dhe->bhne", x, self.kernel)


class OfAxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = (Axes(9, 2, 4) for _ in range(3))
        self.back = nn.Parameter(torch.randn(2, 4, 9) / 3)

    def forward(self, x):
        q, k, v = self.one(x), self.two(x), self.three(x)
        made = (q @ k.mT / 2).softmax(-1) @ v
        return torch.einsum("bhne,hed->bnd", made, self.back)


def test_how_wide_x_is_is_seen_by_a_call():
    """It was asked, as no map has two axes."""
    report = here(OfAxes(), kind="self-attention", causal=False)
    assert report.passed, report


class OfStates(Across):
    """States are hidden by their name alone."""

    def forward(self, hidden_states, other_states):
        every = torch.ones(other_states.shape[:2]).bool()
        return self.attend(hidden_states, other_states, every)


def test_hidden_states_are_not_what_hides():
    for told in ({}, TOLD):
        assert here(OfStates(), kind="cross-attention", **told).passed


def test_queries_keys_and_values_are_no_text_context_and_mask() -> None:
    """Who said what masks mean had PyTorch's values taken for one.

    Then queries and keys were exchanged, and the layer accused of it.
    """
    layer = nn.MultiheadAttention(3, 1, kdim=8, vdim=8, batch_first=True)
    told = {"mask": "keep"}
    assert inputs_of(layer, told) == {}
    names = looked_up(layer.forward, told, {})
    assert names["qkv"] == ["query", "key", "value"]
