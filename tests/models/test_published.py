"""Published layouts of Llama, T5 and ViT, from a file that theirs wrote."""

import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from theirs import (
    BATCH,
    HEADS,
    REAL,
    close,
    ids,
    saved,
    small_llama,
    small_t5,
    small_vit,
)

from selfattn.models import complete, load_llama, load_t5, load_vit


@torch.no_grad()
@pytest.mark.parametrize("tied", [False, True])
def test_llama_has_the_same_logits_and_writes_the_same_text(tied, tmp_path):
    theirs = small_llama(rms_norm_eps=1e-4, tie_word_embeddings=tied)
    ours = load_llama(saved(theirs, tmp_path), n_heads=6, eps=1e-4)
    tokens = ids()
    close(ours(tokens), theirs(tokens).logits)
    prompt = ids(5)
    expected = theirs.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=9,
        do_sample=False,
        pad_token_id=0,
    )
    assert torch.equal(complete(ours.step, prompt, 9), expected)
    assert (ours.head.weight is ours.embed.tokens.weight) == tied
    assert ours.blocks[0].attention.n_kv_heads == 2


@torch.no_grad()
def test_another_base_and_numbers_that_follow_are_read(tmp_path):
    """Older files hold the angles of the rotation, too."""
    options = {"rope_type": "default", "rope_theta": 500.0}
    theirs = small_llama(rms_norm_eps=1e-4, rope_parameters=options)
    path = saved(theirs, tmp_path)
    weights = load_file(path)
    angles = torch.tensor([1.0, 500.0**-0.5])
    both = weights | {"model.layers.0.self_attn.rotary_emb.inv_freq": angles}
    save_file(both, path)
    tokens = ids()
    ours = load_llama(path, n_heads=6, eps=1e-4, base=500.0)
    close(ours(tokens), theirs(tokens).logits)
    save_file(weights, path)
    with pytest.raises(ValueError, match=r"rope_theta=500\.0, and base=10000"):
        load_llama(path, n_heads=6, eps=1e-4)
    (tmp_path / "config.json").unlink()
    other = load_llama(path, n_heads=6, eps=1e-4)(tokens)
    assert (other - ours(tokens)).abs().max() > 0.01


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    torch.manual_seed(0)
    theirs = small_t5()
    return theirs, saved(theirs, tmp_path_factory.mktemp("t5"))


@torch.no_grad()
def test_t5_has_the_same_logits(t5, tmp_path):
    theirs, path = t5
    ours = load_t5(path, max_distance=13)
    source, target = ids(), ids(7)
    close(
        ours(source, target), theirs(source, decoder_input_ids=target).logits
    )
    padded = theirs(
        source, attention_mask=REAL[:, 0, 0].long(), decoder_input_ids=target
    ).logits
    close(ours(source, target, mask=REAL), padded)
    alone = shutil.copy(path, tmp_path)  # without what tells the distance
    other = load_t5(alone)(source, target)  # another distance: other buckets
    assert (other - ours(source, target)).abs().max() > 0.001


@torch.no_grad()
@pytest.mark.parametrize(
    ("image", "patch", "told"),
    [((15, 14), (5, 7), True), (12, 4, False)],
)
def test_vit_has_the_same_logits(image, patch, told, tmp_path):
    theirs = small_vit(image_size=image, patch_size=patch)
    path = saved(theirs, tmp_path)
    size = {"image_size": image} if told else {}
    ours = load_vit(path, n_heads=HEADS, **size)
    shape = image if told else (image, image)
    images = torch.randn(BATCH, 2, *shape)
    close(ours(images), theirs(images).logits)


@torch.no_grad()
def test_vit_is_read_from_the_form_in_which_it_was_published(tmp_path):
    theirs = small_vit(image_size=12, patch_size=4)
    names = {
        r"vit\.layers\.": "vit.encoder.layer.",
        r"\.attention\.q_proj\.": ".attention.attention.query.",
        r"\.attention\.k_proj\.": ".attention.attention.key.",
        r"\.attention\.v_proj\.": ".attention.attention.value.",
        r"\.attention\.o_proj\.": ".attention.output.dense.",
        r"\.mlp\.fc1\.": ".intermediate.dense.",
        r"\.mlp\.fc2\.": ".output.dense.",
    }
    weights = {}
    for name, weight in theirs.state_dict().items():
        for new, old in names.items():
            name = re.sub(new, old, name)
        weights[name] = weight.clone()
    path = tmp_path / "model.safetensors"
    save_file(weights, path)
    images = torch.randn(BATCH, 2, 12, 12)
    ours = load_vit(path, n_heads=HEADS)
    close(ours(images), theirs(images).logits)


@pytest.mark.parametrize(
    ("load", "options"),
    [(load_llama, {"n_heads": 6}), (load_t5, {}), (load_vit, {})],
)
def test_a_file_of_another_model_is_refused(load, options, tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"other.weight": torch.zeros(2, 3)}, path)
    with pytest.raises(ValueError, match=r"must hold every|has a first"):
        load(path, **options)


def test_a_weight_too_many_is_refused(tmp_path):
    path = saved(small_llama(), tmp_path)
    save_file(load_file(path) | {"extra.weight": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match=r"extra\.weight"):
        load_llama(path, n_heads=6, eps=1e-6)
