"""Files that another loader would take: the same is asked of each of ours."""

import math
import re

import pytest
import torch
from hostile.scenes import (
    bert_weights,
    gpt2_weights,
    llama_weights,
    t5_weights,
    vit_weights,
)
from safetensors.torch import save_file
from theirs import close, ids, saved, small_llama

from selfattn.models import (
    load_bert,
    load_gpt2,
    load_llama,
    load_t5,
    load_vit,
)
from selfattn.models.vision import PatchEmbedding

WEIGHTS = {
    load_gpt2: gpt2_weights,
    load_bert: bert_weights,
    load_llama: llama_weights,
    load_t5: t5_weights,
    load_vit: vit_weights,
}
HEADS = {load: {"n_heads": 2} for load in WEIGHTS} | {load_t5: {}}
TABLES = {
    load_gpt2: "wte.weight",
    load_llama: "model.embed_tokens.weight",
    load_t5: "shared.weight",
}
each = pytest.mark.parametrize("load", WEIGHTS, ids=lambda f: f.__name__)
tied = pytest.mark.parametrize("load", TABLES, ids=lambda f: f.__name__)


@pytest.fixture
def loaded(tmp_path):
    """Load a file of these weights, or of what is left of them."""

    def load_from(load, weights, **options):
        path = tmp_path / "bent.safetensors"
        save_file({n: w for n, w in weights.items() if w is not None}, path)
        return load(path, **HEADS[load] | options)

    return load_from


def with_nan(weight):
    """The same, with NaN for its last row."""
    other = weight.clone()
    other[-1] = math.nan
    return other


@each
@pytest.mark.parametrize(
    "dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.int8, torch.bool]
)
def test_types_that_cannot_be_multiplied_are_refused(load, dtype, loaded):
    """A model in float8 was loaded, and PyTorch refused its first product."""
    weights = {n: w.to(dtype) for n, w in WEIGHTS[load]().items()}
    with pytest.raises(ValueError, match=r"two bytes.*bent\.safetensors has"):
        loaded(load, weights)


@tied
def test_a_row_of_nan_unties_nothing(load, loaded):
    """NaN equals nothing: T5's last norm lost 1/√d, others became untied."""
    table = TABLES[load]
    whole = {n: w for n, w in WEIGHTS[load]().items() if "lm_head" not in n}
    broken = whole | {table: with_nan(whole[table])}
    sound, model = loaded(load, whole), loaded(load, broken)
    assert model.head.weight is model.embed.tokens.weight or load is load_t5
    tokens = torch.tensor([[3, 1, 4]])
    given = (tokens, tokens) if load is load_t5 else (tokens,)
    # The last token, whose row is NaN, is not among them.
    assert torch.equal(model(*given)[..., :-1], sound(*given)[..., :-1])
    assert model(*given)[..., -1].isnan().all()
    twice = broken | {"lm_head.weight": broken[table].clone()}
    assert torch.equal(
        loaded(load, twice)(*given)[..., :-1], sound(*given)[..., :-1]
    )


def test_one_weight_under_two_names_may_hold_nan(loaded):
    """They were refused as two that differ."""
    whole = gpt2_weights()
    table = with_nan(whole["wte.weight"])
    both = whole | {"wte.weight": table, "transformer.wte.weight": table + 0}
    assert len(loaded(load_gpt2, both).blocks) == 2
    with pytest.raises(ValueError, match="two that differ"):
        loaded(load_gpt2, both | {"wte.weight": table + 1})


@each
def test_whatever_is_empty_or_bent_names_its_file(load, loaded):
    """Width 0 was a ZeroDivisionError, or 0.0 to a negative power."""
    whole = WEIGHTS[load]()
    for name, weight in whole.items():
        for axis in range(weight.ndim):
            bent = [weight.narrow(axis, 0, 0), weight.narrow(axis, 0, 1)]
            bent.append(torch.cat((weight, weight), axis))
            bent.append(weight.unsqueeze(axis))
            for other in bent:
                if other.shape == weight.shape or other.shape == (1, 2, 8):
                    continue
                try:
                    loaded(load, whole | {name: other.contiguous()})
                except ValueError as error:
                    assert "bent.safetensors" in str(error), (name, axis)
                else:
                    assert name in FREE[load], (name, tuple(other.shape))


# What may be of another size, where nothing else depends on it.
FREE = {
    load_gpt2: ("wpe.weight", "wte.weight"),
    load_bert: tuple(
        f"embeddings.{table}_embeddings.weight"
        for table in ("word", "position", "token_type")
    ),
    load_llama: (),
    load_t5: ("shared.weight",),
    load_vit: (
        "vit.embeddings.patch_embeddings.projection.weight",
        "vit.embeddings.position_embeddings",
    ),
}


@each
def test_a_width_of_nothing_names_its_file(load, loaded):
    flat = {n: w[..., :0].contiguous() for n, w in WEIGHTS[load]().items()}
    with pytest.raises(ValueError, match=r"bent\.safetensors"):
        loaded(load, flat)


@each
def test_what_is_missing_names_itself(load, loaded):
    """Without T5's last norm the file was told to have one of length 0."""
    whole = WEIGHTS[load]()
    optional = {"lm_head.weight"}
    for name in whole:
        if name in optional:
            continue
        with pytest.raises(ValueError, match=r"bent\.safetensors") as error:
            loaded(load, whole | {name: None})
        assert "(0,)" not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [
        *({"eps": -1.0}, {"eps": math.inf}, {"base": -1.0}),
        *({"base": math.inf}, {"base": 0.0}),
    ],
)
def test_llama_has_no_such_norm_and_no_such_rotation(options, loaded):
    """They were taken, and refused at the first forward pass or never."""
    [name] = options
    with pytest.raises(ValueError, match=f"^{name} must be a finite number"):
        loaded(load_llama, llama_weights(), **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_angles_in_a_file_are_those_that_were_asked_for(
    dtype, tmp_path, loaded
):
    """Another base, or number of heads, gave other logits in silence."""
    torch.manual_seed(0)
    theirs = small_llama(rms_norm_eps=1e-4)
    path = saved(theirs, tmp_path)
    weights = {n: w.clone() for n, w in theirs.state_dict().items()}
    angles = theirs.model.rotary_emb.inv_freq.to(dtype)
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    both = {name: angles.clone(), name.replace("0", "1"): angles.clone()}
    ours = loaded(load_llama, weights | both, n_heads=6, eps=1e-4)
    tokens = ids()
    close(ours(tokens), theirs(tokens).logits)
    for options in ({"base": 500.0}, {"base": 10_500.0}, {"n_heads": 3}):
        told = {"n_heads": 6, "eps": 1e-4} | options
        if options == {"base": 10_500.0} and dtype is torch.bfloat16:
            continue  # which it cannot tell from the other
        with pytest.raises(ValueError, match=re.escape("bent.safetensors")):
            loaded(load_llama, weights | both, **told)
    (tmp_path / "config.json").unlink()
    assert load_llama(path, n_heads=6, base=500.0)  # it says nothing


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.bool, torch.complex64, torch.float8_e5m2]
)
def test_angles_are_numbers_of_the_kind_that_weights_are(dtype, loaded):
    """Of whole ones, PyTorch's limits were asked for; of complex ones, half
    was dropped.
    """
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    angles = {name: torch.tensor([1.0, 0.01]).to(dtype)}
    with pytest.raises(ValueError, match=rf"bent.*{name} of torch\."):
        loaded(load_llama, llama_weights() | angles, n_heads=2)


def test_angles_are_compared_whatever_device_is_the_default(loaded):
    """Those wanted were on it, and those of a file on the processor."""
    weights = llama_weights()
    d_model = weights["model.norm.weight"].numel()
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    angles = 1e4 ** -(torch.arange(0, d_model // 2, 2) / (d_model // 2))
    with torch.device("meta"):
        made = loaded(load_llama, weights | {name: angles}, n_heads=2)
    assert not any(x.is_meta for x in made.parameters())


@pytest.mark.parametrize(
    "size", [(-12, -12), (-4, -36), (0, 0), (4, -4), (0, 4)]
)
def test_no_image_is_less_than_a_pixel_high(size, loaded):
    """Of two negative sides, the patches were positive in number."""
    for make in (
        lambda: loaded(load_vit, vit_weights(), image_size=size),
        lambda: PatchEmbedding(size, (2, 2), n_channels=1, d_model=4),
    ):
        with pytest.raises(ValueError, match=r"at least 1 by 1 .*are \("):
            make()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("position_embeddings", (2, 5, 8)),
        ("position_embeddings", (5, 8)),
        ("position_embeddings", (8,)),
        ("position_embeddings", ()),
        ("position_embeddings", (1, 0, 8)),
        ("position_embeddings", (1, 1, 8)),
        ("cls_token", (2, 1, 4)),
        ("cls_token", (8,)),
        ("patch_embeddings.projection.weight", (8, 0, 2, 2)),
        ("patch_embeddings.projection.weight", (8, 1, 4)),
    ],
)
def test_the_embedding_of_vit_has_its_three_shapes(name, shape, loaded):
    """They were flattened before anybody looked: other weights, as many."""
    bent = {f"vit.embeddings.{name}": torch.randn(shape)}
    with pytest.raises(ValueError, match=r"has a first token.*bent\.safe"):
        loaded(load_vit, vit_weights() | bent)
