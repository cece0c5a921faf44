"""Configurations: what the file beside the weights says of a model.

Of weights alone one cannot tell how their model reckons: a rotation that is
stretched, or a gain of 1 + w, has weights of the same names and shapes. Where
a ``config.json`` lies beside them, it is asked, and what is not ours refused.
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfattn.models.weights import same
from selfattn.signatures import REAL, shown

# Fields that change how a model reckons, and what they hold where ours does.
LLAMA = {
    "model_type": ("llama", "mistral"),
    "rope_scaling": (None,),
    "embedding_multiplier": (None, 1),
    "hidden_act": (None, "silu"),
    "attention_bias": (None, False),
    "mlp_bias": (None, False),
    "is_causal": (None, True),
}
BERT = {
    "model_type": ("bert",),
    "is_decoder": (None, False),
    "is_causal": (None, False),
    "add_cross_attention": (None, False),
    "hidden_act": (None, "gelu"),
    "position_embedding_type": (None, "absolute"),
}
GPT2 = {
    "model_type": ("gpt2",),
    "activation_function": (None, "gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_by_inverse_layer_idx": (None, False),
    "scale_attn_weights": (None, True),
    "add_cross_attention": (None, False),
    "is_causal": (None, True),
}
T5 = {
    "model_type": ("t5",),
    "is_encoder_decoder": (None, True),
    "is_causal": (None,),  # one half is, the other not
    "feed_forward_proj": (None, "relu"),
    "is_gated_act": (None, False),
    "dense_act_fn": (None, "relu"),
}
VIT = {
    "model_type": ("vit",),
    "hidden_act": (None, "gelu"),
    "qkv_bias": (None, True),
    "is_causal": (None, False),
}
# No block may be of another kind than the rest.
EVERY: dict[str, tuple[Any, ...]] = {"per_layer_config": (None, {})}
# Names that a configuration of the same model may use instead, or as well.
OTHER_NAMES = {
    "n_embd": ("hidden_size",),
    "n_head": ("num_attention_heads",),
    "n_layer": ("num_hidden_layers",),
    "n_positions": ("n_ctx", "max_position_embeddings"),
    "d_model": ("hidden_size",),
    "d_kv": ("head_dim",),
    "num_heads": ("num_attention_heads",),
    "num_layers": ("num_hidden_layers",),
    "num_labels": ("id2label",),
}
# What a null stands for: so many times what another field holds.
NULLS = {
    "n_inner": (4, "n_embd"),
    "num_decoder_layers": (1, "num_layers"),
    "num_key_value_heads": (1, "num_attention_heads"),
}
PLAIN = (None, "default")
ROTATIONS = ("rope_scaling", "rope_parameters")


def beside(path: str | Path) -> dict[str, Any]:
    """What the ``config.json`` beside a file says; nothing without one.

    Raises:
        ValueError: if one is there, and cannot be read.
    """
    found = Path(path).parent / "config.json"
    try:
        if not os.path.lexists(found):  # a link to nothing is one
            return {}
        if not found.is_file():  # a pipe would be waited for
            raise ValueError("it is no file")
        told = json.loads(found.read_text(encoding="utf-8"))
        if not isinstance(told, dict):
            raise ValueError(f"it holds no fields, but {shown(told)}")
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"a config.json beside weights must be readable, but the one "
            f"beside {path} is not: {error}"
        ) from error
    return told


def check_config(
    path: str | Path, ours: Mapping[str, tuple[Any, ...]]
) -> None:
    """Raise if a configuration beside a file says that its model is another.

    Raises:
        ValueError: naming the field.
    """
    told = beside(path)
    for field, right in {**ours, **EVERY}.items():
        value = told.get(field)
        if field == "rope_scaling":
            field, value = stretched(told)
        if not any(agree(x, value) for x in (None, *right)):
            raise ValueError(
                f"the model must reckon as ours does, but the config.json "
                f"beside {path} says {field}={value!r}"
            )


def yes_or_no(
    path: str | Path, field: str, missing: bool | None = None
) -> bool | None:
    """What a configuration beside a file says of a field that is yes or no.

    Args:
        path: the file of the weights.
        field: what the field is called.
        missing: what it is taken for where it is not there.

    Returns:
        The answer; None for a null, or where nothing is said.

    Raises:
        ValueError: if it is neither, nor null: ``"false"`` would be a yes.
    """
    told = beside(path).get(field, missing)
    if told is not None and type(told) is not bool:
        raise ValueError(
            f"{field} must be true or false, but the config.json beside "
            f"{path} says {field}={told!r}"
        )
    return told


def share_table(
    scores: str, table: str, weights: dict[str, Any], path: str | Path
) -> None:
    """Have the scores made with the table, if a file has no matrix for them.

    Raises:
        ValueError: if a configuration says that they have one of their own,
            or that they have none, and the file has another; or if it says
            neither yes nor no.
    """
    told = yes_or_no(path, "tie_word_embeddings")
    if scores not in weights and told is False:
        raise ValueError(
            "a file must hold every weight of its model, but the config.json "
            f"beside {path} says tie_word_embeddings=False, and no matrix is "
            f"there for {scores}"
        )
    weights.setdefault(scores, weights[table])
    if told is True and not same(weights[scores], weights[table]):
        raise ValueError(
            "a model must be made as its config.json says, but the one "
            f"beside {path} says tie_word_embeddings=True, and there is "
            f"another matrix for {scores} than for {table}"
        )


def check_sizes(path: str | Path, **ours: tuple[str, Any]) -> None:
    """Raise if a configuration beside a file tells of other sizes.

    Args:
        path: the file of the weights.
        ours: for each field of the configuration, what it is called here, and
            what it is in the model as it was made. Whatever else the
            configuration may call it, is asked as well.

    Raises:
        ValueError: naming the field.
    """
    told = beside(path)
    asked = (
        (called, *mine)
        for field, mine in ours.items()
        for called in (field, *OTHER_NAMES.get(field, ()))
    )
    for field, name, value in asked:
        for theirs in said_of(field, told):
            if agree(value, theirs):
                continue
            raise ValueError(
                f"a model must be made as its config.json says, but the one "
                f"beside {path} says {field}={theirs!r}, and {name}={value!r}"
            )


def said_of(field: str, told: Mapping[str, Any]) -> list[Any]:
    """All that a configuration says of a size; of a base of rotation it may
    say two things, in two places, of which others read the one that they know.
    Of names of classes, it says how many there are.

    >>> said_of("rope_theta", {"rope_theta": 1e4, "rope_scaling": None})
    [10000.0]
    >>> said_of("sliding_window", {"sliding_window": None})  # there is none
    [None]
    >>> said_of("n_inner", {"n_inner": None, "n_embd": 8})
    [32]
    """
    places = [told]
    if field == "rope_theta":
        held = (told.get(x) for x in ROTATIONS)
        places += [x for x in held if isinstance(x, dict)]
    if field == "sliding_window" and field in told:
        return [told[field]]
    if field in NULLS and field in told and told[field] is None:
        times, other = NULLS[field]
        return [times * x for x in said_of(other, told)]
    if field == "id2label" and isinstance(told.get(field), dict):
        return [len(told[field])]
    return [x[field] for x in places if x.get(field) is not None]


def sizes_in_file(
    block: Any, d_model: str, d_ff: str, embed: Any = None
) -> dict[str, tuple[str, int]]:
    """What `check_sizes` compares of the shapes in a file, which need not be
    those of the model that the configuration beside it is of.

    Args:
        block: a block of the model that was made by these shapes.
        d_model: what the configuration calls its width.
        d_ff: what it calls the width within its feed-forward layer.
        embed: the tokens' embedding, if the model has any.
    """
    wide = block.feed_forward.W_in
    sizes = {
        d_model: ("d_model in the file", wide.in_features),
        d_ff: ("d_ff in the file", wide.out_features),
    }
    if embed is not None:
        n_tokens = embed.tokens.num_embeddings
        sizes["vocab_size"] = "tokens in the file", n_tokens
    return sizes


def check_encoder(
    path: str | Path,
    encoder: Any,
    embed: Any = None,
    **more: tuple[str, Any],
) -> None:
    """Raise if a configuration tells of other blocks than these, or of other
    tokens than are embedded, if any are; or of more that is other.

    Raises:
        ValueError: naming the field.
    """
    first = encoder.blocks[0]
    check_sizes(
        path,
        **sizes_in_file(first, "hidden_size", "intermediate_size", embed),
        num_attention_heads=("n_heads", first.attention.n_heads),
        layer_norm_eps=("eps", first.add_norm_1.norm.eps),
        num_hidden_layers=("the number of blocks", len(encoder.blocks)),
        **more,
    )


def agree(value: Any, theirs: Any) -> bool:
    """Whether two numbers are one, but for how they were rounded; or two
    sides those that one number may stand for. Yes and no are no numbers.

    >>> agree(1, True), agree(False, 0), agree((4, 4), 4), agree((1, 1), True)
    (False, False, True, False)
    """
    if isinstance(value, tuple):
        sides = theirs if isinstance(theirs, list) else [theirs] * len(value)
        return len(sides) == len(value) and all(map(agree, value, sides))
    both = value, theirs
    if any(type(x) is bool for x in both):
        return value is theirs
    if all(isinstance(x, REAL) for x in both):
        try:
            return math.isclose(value, theirs, rel_tol=1e-6)
        except OverflowError:  # no float is so large
            return False
    return value == theirs


def stretched(told: Mapping[str, Any]) -> tuple[str, Any]:
    """The field that tells how a rotation is stretched, and what it holds."""
    for field in ROTATIONS:
        held = told.get(field)
        if not (held is None or is_plain(held)):
            return field, held
    return "rope_scaling", None


def is_plain(held: Any) -> bool:
    """Whether a rotation is not stretched, by what is told of it: by fields,
    of which none is of some layers alone.

    >>> is_plain({"rope_type": "default", "rope_theta": 1e4}), is_plain("ntk")
    (True, False)
    """
    if not isinstance(held, dict):
        return False
    kinds = held.get("rope_type"), held.get("type")
    told = any(kinds) or "factor" not in held
    nested = any(isinstance(x, dict) for x in held.values())
    return told and not nested and all(kind in PLAIN for kind in kinds)
