"""The mask of a layer, or of a softmax, whatever its argument is called."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.layer.calling import looked_up
from selfattn.doctor.kinds.layer.inputs import inputs_of

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
