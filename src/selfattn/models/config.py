"""Configurations: what the file beside the weights says of a model.

Of weights alone one cannot tell how their model reckons: a rotation that is
stretched, or a gain of 1 + w, has weights of the same names and shapes. Where
a ``config.json`` lies beside them, it is asked, and what is not ours refused.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Fields that change how a model reckons, and what they hold where ours does.
LLAMA = {
    "model_type": ("llama", "mistral"),
    "rope_scaling": (None,),
    "embedding_multiplier": (None, 1),
    "hidden_act": (None, "silu"),
}
BERT = {
    "model_type": ("bert",),
    "is_decoder": (None, False),
    "hidden_act": (None, "gelu"),
    "position_embedding_type": (None, "absolute"),
}
GPT2 = {
    "model_type": ("gpt2",),
    "activation_function": (None, "gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_by_inverse_layer_idx": (None, False),
    "scale_attn_weights": (None, True),
}
PLAIN = (None, "default")


def beside(path: str | Path) -> dict[str, Any]:
    """What the ``config.json`` beside a file says; nothing without one."""
    found = Path(path).parent / "config.json"
    try:
        told = json.loads(found.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def check_config(
    path: str | Path, ours: Mapping[str, tuple[Any, ...]]
) -> None:
    """Raise if a configuration beside a file says that its model is another.

    Raises:
        ValueError: naming the field.
    """
    told = beside(path)
    for field, right in ours.items():
        value = told.get(field)
        if field == "rope_scaling":
            field, value = stretched(told)
        if value is not None and value not in right:
            raise ValueError(
                f"the model must reckon as ours does, but the config.json "
                f"beside {path} says {field}={value!r}"
            )


def stretched(told: Mapping[str, Any]) -> tuple[str, Any]:
    """The field that tells how a rotation is stretched, and what it holds."""
    for field in ("rope_scaling", "rope_parameters"):
        held = told.get(field)
        if isinstance(held, dict):
            kind = held.get("rope_type", held.get("type"))
            if kind not in PLAIN:
                return field, held
    return "rope_scaling", None
