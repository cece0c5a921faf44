"""One of a class is made by the names of its arguments."""

import pytest
from torch import nn

from selfattn.doctor.door.making import a_number, made


class Layer(nn.Module):
    def __init__(self, width, n_heads, d_ff, drop_rate, bias=True, *rest):
        super().__init__()
        self.given = width, n_heads, d_ff, drop_rate
        self.drop = nn.Dropout(drop_rate)


class Asks(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.width = config.width


def test_numbers_fit_together():
    width, heads, hidden, rate = made(Layer).given
    assert width % heads == 0 and hidden > width and rate == 0.0
    assert a_number("n_kv_heads") in (1, heads)
    assert a_number("max_positions") > 50


def test_what_is_made_is_evaluated_and_what_is_there_stays():
    layer = made(Layer)
    assert not layer.training
    assert made(layer) is layer and made(max) is max


def test_what_cannot_be_made_so_says_why():
    with pytest.raises(AttributeError, match="width"):
        made(Asks)
