"""What lies beside the weights: models that only their config tells apart."""

import json
import re
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from theirs import (
    saved,
    small_bert,
    small_gpt2,
    small_llama,
    small_t5,
    small_vit,
)
from torch import nn
from torch.testing import assert_close

from selfattn.devices.ulysses import ulysses_attention
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import linear_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.models import (
    load_bert,
    load_gpt2,
    load_llama,
    load_t5,
    load_vit,
)
from selfattn.models.config import check_config, check_sizes

D = 8
LINEAR = {"rope_type": "linear", "factor": 2.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "rope_theta": 5e5}
OLD = {"type": "dynamic", "factor": 2.0}


def llama(path, config=None):
    block = "model.layers.0."
    sizes = {
        "model.embed_tokens": (11, D),
        "model.norm": (D,),
        f"{block}input_layernorm": (D,),
        f"{block}post_attention_layernorm": (D,),
        f"{block}mlp.gate_proj": (12, D),
        f"{block}mlp.up_proj": (12, D),
        f"{block}mlp.down_proj": (D, 12),
        **{f"{block}self_attn.{i}_proj": (D, D) for i in "qkvo"},
    }
    weights = {f"{n}.weight": torch.randn(s) for n, s in sizes.items()}
    save_file(weights, path / "model.safetensors")
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    return load_llama(path / "model.safetensors", n_heads=2)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rope_scaling", LINEAR),
        ("rope_scaling", OLD),
        ("rope_scaling", {"type": "dynamic"}),
        ("rope_parameters", LLAMA3),
        ("model_type", "gemma"),
    ],
)
def test_a_model_that_reckons_otherwise_is_refused_by_its_field(
    tmp_path, field, value
):
    with pytest.raises(ValueError, match=rf"says {field}="):
        llama(tmp_path, {"model_type": "llama", field: value})


def test_a_config_that_tells_of_ours_changes_nothing(tmp_path):
    plain = {"rope_type": "default", "rope_theta": 1e4}
    told = {"model_type": "llama", "rope_parameters": plain}
    torch.manual_seed(0)
    alone = llama(tmp_path)
    torch.manual_seed(0)
    beside = llama(tmp_path, told | {"rope_scaling": None})
    tokens = torch.arange(5)[None]
    assert_close(alone(tokens), beside(tokens))


@pytest.mark.parametrize(
    ("load", "config"),
    [
        (load_bert, {"model_type": "roberta"}),
        (load_bert, {"model_type": "bert", "is_decoder": True}),
        (load_gpt2, {"model_type": "gpt2", "activation_function": "relu"}),
        (load_t5, {"model_type": "t5", "feed_forward_proj": "gated-gelu"}),
        (load_t5, {"model_type": "mt5"}),
        (load_vit, {"model_type": "vit", "hidden_act": "relu"}),
    ],
)
def test_others_of_the_same_names_are_refused(tmp_path, load, config):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=f"says {list(config)[-1]}="):
        load(tmp_path / "model.safetensors")


RIGHT = {
    "llama": partial(load_llama, n_heads=6, eps=1e-6),
    "t5": partial(load_t5, max_distance=13),
    "vit": partial(load_vit, n_heads=3),
    "bert": partial(load_bert, n_heads=3),
    "gpt2": partial(load_gpt2, n_heads=3),
}
MADE = {
    "llama": small_llama,
    "t5": small_t5,
    "vit": small_vit,
    "bert": small_bert,
    "gpt2": small_gpt2,
}

HEADS = {
    "llama": "lm_head.weight",
    "gpt2": "lm_head.weight",
    "bert": "cls.predictions.decoder.weight",
}
TABLES = re.compile(r"(wte|embed_tokens|word_embeddings)\.weight$")


def told_besides(path, **fields):
    """Write more into the configuration beside a file, or something else."""
    config = Path(path).with_name("config.json")
    told = json.loads(config.read_text())
    config.write_text(json.dumps(told | fields))
    return config


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        *(("llama", "num_attention_heads", 3), ("llama", "rope_theta", 5e5)),
        *(("llama", "rms_norm_eps", 1e-5), ("llama", "num_hidden_layers", 3)),
        *(("llama", "num_key_value_heads", 6), ("llama", "sliding_window", 3)),
        ("llama", "rope_parameters", {"rope_theta": 5e5}),
        *(
            ("t5", "relative_attention_max_distance", 128),
            ("t5", "num_layers", 1),
        ),
        *(("t5", "layer_norm_epsilon", 1e-5), ("t5", "num_heads", 6)),
        *(
            ("t5", "num_decoder_layers", 2),
            ("t5", "tie_word_embeddings", False),
        ),
        *(("vit", "num_attention_heads", 6), ("vit", "layer_norm_eps", 1e-6)),
        *(("vit", "image_size", [224, 112]), ("vit", "num_hidden_layers", 1)),
        # Of the file's own shapes: those of another model's configuration.
        *(("llama", "hidden_size", 4096), ("llama", "vocab_size", 32_000)),
        *(("llama", "intermediate_size", 11_008), ("llama", "head_dim", 128)),
        *(("t5", "d_model", 512), ("t5", "d_ff", 2048)),
        *(("t5", "vocab_size", 32_128), ("vit", "hidden_size", 768)),
        *(("vit", "intermediate_size", 3072), ("vit", "head_dim", 64)),
        *(("bert", "hidden_size", 768), ("bert", "vocab_size", 30_522)),
        *(("bert", "intermediate_size", 3072), ("gpt2", "n_embd", 768)),
        *(("gpt2", "vocab_size", 50_257), ("gpt2", "n_inner", 3072)),
    ],
)
def test_what_a_config_tells_of_sizes_is_compared(
    tmp_path, kind, field, value
):
    """Another base, eps or number of heads gave other logits, and no word."""
    path = saved(MADE[kind](), tmp_path)
    assert RIGHT[kind](path)
    config = told_besides(path, **{field: value})
    name = "rope_theta" if isinstance(value, dict) else field
    with pytest.raises(ValueError, match=rf"says {name}=.*, and [\w ]+="):
        RIGHT[kind](path)
    config.unlink()
    assert RIGHT[kind](path)


def test_a_picture_of_two_equal_sides_may_be_told_by_both(tmp_path):
    path = saved(small_vit(), tmp_path)
    told_besides(path, image_size=[224, 224])
    assert RIGHT["vit"](path)


def test_names_of_classes_are_as_many_as_classes(tmp_path):
    """Other than in number, they may be whatever they are."""
    path = saved(small_vit(), tmp_path)
    told_besides(path, id2label={str(i): "a cat" for i in range(13)})
    assert RIGHT["vit"](path)
    told_besides(path, id2label={str(i): "a cat" for i in range(12)})
    with pytest.raises(ValueError, match=r"says id2label=12, and classes"):
        RIGHT["vit"](path)


@pytest.mark.parametrize("field", ["n_ctx", "max_position_embeddings"])
def test_positions_are_asked_under_each_of_their_names(tmp_path, field):
    path = saved(small_gpt2(), tmp_path)
    told_besides(path, **{field: 29})
    assert RIGHT["gpt2"](path)
    told_besides(path, **{field: 1024})
    with pytest.raises(ValueError, match=rf"says {field}=1024, and positions"):
        RIGHT["gpt2"](path)


def test_yes_is_no_number_and_a_number_is_no_yes(tmp_path):
    """Of a model of one block, true was its number of blocks."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"n_layer": True, "mlp_bias": 0}))
    with pytest.raises(ValueError, match="says n_layer=True, and blocks=1"):
        check_sizes(tmp_path / "one", n_layer=("blocks", 1))
    with pytest.raises(ValueError, match="says mlp_bias=0"):
        check_config(tmp_path / "one", {"mlp_bias": (None, False)})
    config.write_text(json.dumps({"n_layer": 1.0, "mlp_bias": None}))
    check_sizes(tmp_path / "one", n_layer=("blocks", 1))
    check_config(tmp_path / "one", {"mlp_bias": (None, False)})


@pytest.mark.parametrize("said", ["false", 0, 1, [1], {}])
def test_what_is_neither_yes_nor_no_is_refused(tmp_path, said):
    """By its truth, the last vectors of a T5 were divided."""
    path = saved(small_t5(), tmp_path)
    told_besides(path, scale_decoder_outputs=said)
    with pytest.raises(ValueError, match="scale_decoder_outputs must be true"):
        RIGHT["t5"](path)


@pytest.mark.parametrize("text", ["{", "\xff\xfe"])
def test_a_config_that_cannot_be_read_is_no_missing_one(tmp_path, text):
    """It was taken for none, and nothing was compared."""
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"config\.json .* must be readable"):
        load_llama(tmp_path / "model.safetensors", n_heads=2)


def test_a_window_is_bound_to_the_mechanism(tmp_path):
    """It was not asked: from the fourth token on the logits were others."""
    path = saved(small_llama(), tmp_path)
    told_besides(path, sliding_window=3)
    window = partial(sliding_window_attention, window=4)
    with pytest.raises(ValueError, match=r"sliding_window=3, and .*=4"):
        RIGHT["llama"](path, attend=window)
    assert RIGHT["llama"](path, attend=partial(window, window=3))


class Elsewhere(nn.Module):
    """A mechanism of somebody's, who may well keep to a window inside."""

    def forward(self, q, k, v, *, mask=None, bias=None, causal=False):
        return attention(q, k, v, mask=mask, bias=bias, causal=causal)


@pytest.mark.parametrize(
    "attend",
    [
        *(attention, flash_attention, linear_attention, fused_attention),
        *(partial(fused_attention), partial(attention, scale=0.5)),
        partial(linear_attention, feature_map=nn.Sigmoid()),
        partial(ulysses_attention, attend=attention),
    ],
)
def test_a_window_is_asked_of_each_mechanism_of_ours(tmp_path, attend):
    """Only a bare `fused_attention` was asked: logits were off by 4.67."""
    path = saved(small_llama(), tmp_path)
    assert RIGHT["llama"](path, attend=attend)
    told_besides(path, sliding_window=3)
    with pytest.raises(ValueError, match=r"sliding_window=3, and .*=None"):
        RIGHT["llama"](path, attend=attend)
    assert RIGHT["llama"](path, attend=Elsewhere())


def test_a_window_within_what_ranks_do_is_found(tmp_path):
    path = saved(small_llama(), tmp_path)
    told_besides(path, sliding_window=3)
    window = partial(sliding_window_attention, window=3)
    assert RIGHT["llama"](
        path, attend=partial(ulysses_attention, attend=window)
    )
    window = partial(sliding_window_attention, window=4)
    with pytest.raises(ValueError, match=r"sliding_window=3, and .*=4"):
        RIGHT["llama"](path, attend=partial(ulysses_attention, attend=window))


def test_where_there_is_none_no_window_may_be_bound(tmp_path):
    """It was accepted, and the logits were those of another model."""
    path = saved(small_llama(), tmp_path)
    window = partial(sliding_window_attention, window=4)
    assert RIGHT["llama"](path, attend=window)  # of a window it says nothing
    told_besides(path, sliding_window=None)
    with pytest.raises(ValueError, match=r"sliding_window=None, and .*=4"):
        RIGHT["llama"](path, attend=window)
    assert RIGHT["llama"](path)


@pytest.mark.parametrize("bases", [(1e4, 5e5), (5e5, 1e4)])
@pytest.mark.parametrize("base", [1e4, 5e5])
def test_of_two_bases_neither_is_overlooked(tmp_path, bases, base):
    """Theirs read the one, and what was compared was the other."""
    path = saved(small_llama(), tmp_path)
    first, second = bases
    rotation = {"rope_type": "default", "rope_theta": second}
    told_besides(path, rope_theta=first, rope_parameters=rotation)
    with pytest.raises(ValueError, match=r"says rope_theta=.*, and base="):
        RIGHT["llama"](path, base=base)
    rotation["rope_theta"] = first
    told_besides(path, rope_parameters=rotation)
    assert RIGHT["llama"](path, base=first)


@pytest.mark.parametrize("no", [False, None])
def test_a_t5_whose_scores_are_not_scaled_is_loaded_so(tmp_path, no):
    """Its tables are equal, so they were: logits were off by 4. A null is
    no, too, and was taken for a field that is not there.
    """
    path = saved(small_t5(), tmp_path)
    scaled = RIGHT["t5"](path)
    told_besides(path, scale_decoder_outputs=no)
    source, target = torch.arange(10).view(2, 1, 5)
    found = RIGHT["t5"](path)(source, target)
    root = scaled.embed.tokens.weight.shape[1] ** 0.5
    assert_close(found, root * scaled(source, target))


def test_a_t5_that_does_not_read_is_refused(tmp_path):
    """Of one that is no encoder and decoder, scores are others."""
    path = saved(small_t5(), tmp_path)
    told_besides(path, is_encoder_decoder=False)
    with pytest.raises(ValueError, match="is_encoder_decoder"):
        load_t5(path)


@pytest.mark.parametrize("untied", [True, False, None])
def test_a_head_of_its_own_has_to_be_there(tmp_path, untied):
    """Where a config.json says that there is one, the table is none."""
    path = saved(small_llama(tie_word_embeddings=False), tmp_path)
    weights = load_file(path)
    del weights["lm_head.weight"]
    save_file(weights, path)
    config = tmp_path / "config.json"
    told = json.loads(config.read_text())
    told["tie_word_embeddings"] = untied if untied is None else not untied
    config.write_text(json.dumps(told))
    options = {"n_heads": told["num_attention_heads"]}
    options["eps"] = told["rms_norm_eps"]
    if untied:
        with pytest.raises(ValueError, match=r"=False, .* head\.weight"):
            load_llama(path, **options)
    else:
        assert load_llama(path, **options).is_one()


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bert"])
def test_a_head_is_the_table_where_a_config_says_so(tmp_path, kind):
    """Beside another matrix, that was loaded, and no word said."""
    model = MADE[kind]()
    path = saved(model, tmp_path)
    weights = load_file(path)
    [table] = (n for n in weights if TABLES.search(n))
    head = HEADS[kind]
    weights[head] = weights[table].clone()
    save_file(weights, path)
    told_besides(path, tie_word_embeddings=True)
    assert RIGHT[kind](path)
    weights[head][1, 1] += 1.0
    save_file(weights, path)
    with pytest.raises(ValueError, match=r"says tie_word_embeddings=True, "):
        RIGHT[kind](path)
    told_besides(path, tie_word_embeddings=None)  # it says nothing
    assert RIGHT[kind](path)
