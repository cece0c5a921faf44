"""What names say, of things and of arguments."""

import pytest

from selfattn.doctor.door.names import CACHES, MASKS, WORDS, says, snake
from selfattn.doctor.kinds import kinds


def test_every_kind_has_words():
    assert set(WORDS) == set(kinds())


@pytest.mark.parametrize(
    ("name", "kind", "speaks"),
    [
        ("MultiHeadSelfAttention", "self-attention", True),
        ("RMSNorm", "rms-norm", True),
        ("RMSNorm", "layer-norm", False),
        ("LayerNorm", "layer-norm", True),
        ("apply_rotary", "rope", True),
        ("rotate_half", "rope", False),
        ("rotate_every_two", "rope", False),
        ("rotate", "rope", True),
        ("look_ahead_mask", "causal-mask", True),
        ("length_mask", "padding-mask", True),
        ("feature_map", "softmax", False),
    ],
)
def test_a_name_speaks_for_a_kind(name, kind, speaks):
    assert says(name, kind) == speaks


def test_words_come_apart_at_capitals():
    assert snake("MyBERTLayer2") == "my_bert_layer2"
    assert snake("attend") == "attend"


def test_arguments_are_told_apart_by_their_names():
    assert all(map(MASKS.search, ("attn_mask", "key_padding", "is_causal")))
    assert not any(map(MASKS.search, ("context", "memory", "y")))
    assert all(map(CACHES.search, ("kv_cache", "past_key_values", "state")))
    assert not any(
        map(CACHES.search, ("encoder_hidden_states", "context", "x"))
    )
