"""What the door makes of modules for pictures, or for texts of one length."""

import pytest
import torch
from torch import nn

from selfattn.doctor.door.guessing import guess
from selfattn.doctor.door.other_texts import as_text, is_a_filter
from tests.doctor.test_one_length import InAWindow, Mixes, TimeThenSpace
from tests.doctor.test_pictures import (
    FeaturesLast,
    OfChannels,
    OfFeatures,
    OfPixels,
    OfTheirSize,
    ToldOfInWords,
)


class Filtered(nn.Module):
    """Two convolutions and a path past them: no attention is in it."""

    def __init__(self):
        super().__init__()
        self.both = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1),
            nn.GroupNorm(1, 8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1),
        )

    def forward(self, x):
        return x + self.both(x)


@pytest.mark.parametrize(
    ("thing", "kind", "why"),
    [
        (OfPixels(), "self-attention", "those of a picture"),
        (OfPixels(maps=nn.Conv1d), "self-attention", "features come before"),
        (FeaturesLast(), "self-attention", "those of a picture"),
        (ToldOfInWords(), "cross-attention", "those of a picture"),
        (OfFeatures(), "encoder-block", "those of a picture"),
        (InAWindow(), "self-attention", "its texts have 9 tokens"),
        (Mixes(), "encoder-block", "its texts have 8 tokens"),
        (TimeThenSpace(), "encoder-block", "its texts have 15 tokens"),
    ],
)
def test_who_takes_no_text_as_others_do_is_known(thing, kind, why):
    found = guess(thing.eval(), "thing")
    assert (found.kind, why in found.why) == (kind, True)


def test_a_convolution_is_no_attention_and_a_network_none_of_a_picture():
    assert is_a_filter(Filtered())
    assert guess(Filtered().eval(), "thing").kind == ""
    maps = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 6))
    assert guess(maps, "thing").kind == ""  # six tokens would be features
    assert not is_a_filter(nn.Conv2d(8, 8, 1))


def test_a_copy_takes_a_text_and_the_module_is_left_alone():
    thing = OfPixels().eval()
    text = torch.randn(2, 5, 12)
    made = as_text(thing, "BDHW", 6)(text)
    assert made.shape == text.shape
    assert not (thing._forward_hooks or thing._forward_pre_hooks)
    with pytest.raises(RuntimeError, match="channels"):
        thing(text)
    right = thing(nn.functional.pad(text, (0, 0, 0, 1)).mT.view(2, 12, 2, 3))
    torch.testing.assert_close(made, right.flatten(2).mT[:, :5])


def test_what_it_is_handed_besides_stays_as_it_is():
    thing, words = ToldOfInWords().eval(), torch.randn(2, 4, 10)
    x = torch.randn(2, 6, 12)
    made = as_text(thing, "BDHW", 6)(x, words)
    right = thing(x.mT.reshape(2, 12, 2, 3), words).flatten(2).mT
    torch.testing.assert_close(made, right)


def test_a_norm_of_pixels_is_known_as_one_of_tokens():
    assert guess(OfChannels(), "thing").kind == "layer-norm"
    assert guess(OfTheirSize(), "thing").kind == "rms-norm"
