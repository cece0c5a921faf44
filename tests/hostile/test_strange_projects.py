"""What strangers found who used all this in projects of their own."""

import json
import math
import os
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.cost import peak_bytes
from selfattn.devices.heads import tensor_parallel
from selfattn.devices.ulysses import ulysses_attention
from selfattn.devices.world import on_ranks
from selfattn.layers import RMSNorm, SwiGLU
from selfattn.looking_inside import change_heads, record_heads, record_weights
from selfattn.masks import padding_mask
from selfattn.models.config import beside, check_sizes
from selfattn.models.decoder import Decoder
from selfattn.models.embedding import Embedding
from selfattn.multihead import MultiHeadAttention


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


# Hidden tokens and the weights around attention


def gradients(block, x, mask, up):
    """Of all parameters, by a sum over the tokens that are not hidden."""
    out = block(x, mask=mask)[:, :3]
    return torch.autograd.grad((out * up).sum(), [*block.parameters()])


@pytest.mark.parametrize("pre", [True, False])
@pytest.mark.parametrize("parts", ["usual", "gated"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf, "largest"])
def test_a_padded_token_is_not_felt_by_norms_and_networks(
    pre, parts, dtype, poison
):
    """Their weights' gradients were 0 · NaN: one step killed the model."""
    options = {"norm": RMSNorm, "feed_forward": SwiGLU}
    options = options if parts == "gated" else {}
    block = EncoderBlock(8, 2, 16, pre=pre, **options).to(dtype)
    x, up = torch.randn(2, 1, 4, 8, dtype=dtype)
    mask = padding_mask(torch.tensor([3]), 4)
    x[:, 3] = 0.0
    wanted = gradients(block, x, mask, up[:, :3])
    largest = torch.finfo(dtype).max
    x[:, 3] = largest if poison == "largest" else poison
    found = gradients(block, x, mask, up[:, :3])
    torch.testing.assert_close(found, wanted)


def test_a_remembered_token_is_not_felt_by_a_norm():
    """The garbage was a hidden key only, and the gain still got NaN."""
    block = EncoderBlock(8, 2, 16, pre=True)
    x = torch.randn(1, 4, 8)
    x[:, 3] = math.nan
    mask = padding_mask(torch.tensor([3]), 4)
    out = block(torch.randn(1, 2, 8), kept=block.remember(x), mask=mask)
    out.sum().backward()
    assert all(p.grad.isfinite().all() for p in block.parameters())


# Models


def tied_model():
    blocks = [EncoderBlock(8, 2, 16, pre=True)]
    return Decoder(Embedding(11, 8), blocks)


def test_a_tied_table_stays_one_however_it_is_loaded():
    """It became two, with no word, and one step of training parted them."""
    made = tied_model()
    with torch.device("meta"):
        assigned = tied_model()
    assigned.load_state_dict(made.state_dict(), assign=True)
    emptied = tied_model().to("meta").to_empty(device="cpu")
    emptied.load_state_dict(made.state_dict())
    for model in (assigned, emptied, tied_model().half().double()):
        assert model.head.weight is model.embed.tokens.weight
    other = made.state_dict()
    other["head.weight"] = other["head.weight"] + 1
    untied = tied_model()
    untied.load_state_dict(state_dict=other, assign=True)
    assert untied.head.weight is not untied.embed.tokens.weight
    larger = nn.Sequential(tied_model())
    larger.load_state_dict(nn.Sequential(made).state_dict(), assign=True)
    assert larger[0].head.weight is larger[0].embed.tokens.weight


def attends_by_position(q, k, v, m):
    return v


@pytest.mark.parametrize(
    "attend",
    [torch.nn.functional.scaled_dot_product_attention, attends_by_position],
)
def test_a_mechanism_that_takes_no_mask_by_name_is_refused(attend):
    """At the first call Python said "unexpected keyword argument"."""
    with pytest.raises(ValueError, match="take mask, bias and causal by name"):
        MultiHeadAttention(8, 2, attend=attend)


class Plain(nn.Module):
    """A mechanism that is a module, and drops no weights."""

    def forward(self, q, k, v, *, mask=None, bias=None, causal=False):
        return v


def any_options(q, k, v, **options):
    return v


@pytest.mark.parametrize("attend", [Plain(), any_options])
def test_a_mechanism_that_names_no_dropout_drops_nothing(attend):
    """A module, or one that takes any options, was handed it all the same."""
    MultiHeadAttention(8, 2, attend=attend)(torch.randn(1, 3, 8))
    with pytest.raises(ValueError, match="needs a mechanism that takes drop"):
        MultiHeadAttention(8, 2, attend=attend, dropout=0.1)


def test_a_module_that_takes_no_mask_is_refused():
    """Of modules only their call was asked, which takes anything."""
    with pytest.raises(ValueError, match="take mask, bias and causal by name"):
        MultiHeadAttention(8, 2, attend=nn.Bilinear(4, 4, 4))


def torchs(d_model, n_heads):
    return nn.MultiheadAttention(d_model, n_heads, batch_first=True)


@pytest.mark.parametrize("block", [EncoderBlock, DecoderBlock])
@pytest.mark.parametrize("multihead", [torchs, lambda *_: nn.Identity()])
def test_a_layer_of_another_kind_is_refused(block, multihead):
    """Likewise; and remembering said that there is no attribute."""
    with pytest.raises(ValueError, match="multihead must make a layer that"):
        block(8, 2, 16, pre=True, multihead=multihead)


class Forgetful(nn.Module):
    """It attends to what it is given at once, and keeps nothing."""

    def forward(self, x, *, context, mask, bias, causal):
        return x


def test_a_layer_that_cannot_remember_says_so():
    block = EncoderBlock(8, 2, 16, pre=True, multihead=lambda *_: Forgetful())
    with pytest.raises(ValueError, match="must have keys_values"):
        block.remember(block(torch.randn(1, 3, 8)))


# Files


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "beside .* is not: "),
        ('["llama"]', "holds no fields"),
        ('"llama"', "holds no fields"),
    ],
)
def test_a_config_that_is_none_is_told_by_its_place(tmp_path, text, told):
    """A list was ignored; deep brackets were Python's own error."""
    (tmp_path / "config.json").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=told):
        beside(tmp_path / "model.safetensors")


def test_a_config_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ValueError, match="it is no file"):
        beside(tmp_path / "model.safetensors")


@pytest.mark.parametrize("to", ["nowhere", "config.json"])
def test_a_config_that_is_a_link_to_nothing_is_not_read(tmp_path, to):
    """As in a cache whose file is gone: it was taken for none."""
    (tmp_path / "config.json").symlink_to(to)
    with pytest.raises(ValueError, match="beside weights must be readable"):
        beside(tmp_path / "model.safetensors")


def test_a_number_that_no_float_holds_is_another(tmp_path):
    """An OverflowError, of no file."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"eps": 10**400}), "utf-8")
    with pytest.raises(ValueError, match="says eps=1000"):
        check_sizes(tmp_path / "model.safetensors", eps=("eps", 1e-5))


# Looking inside


def test_a_compiled_model_is_not_looked_into():
    """Hooks hung later do not run: a head switched off changed nothing."""
    layer = MultiHeadAttention(8, 2)
    inside = MultiHeadAttention(8, 2)
    inside.compile(backend="eager")
    models = torch.compile(layer, backend="eager"), nn.Sequential(inside)
    for model in models:
        for look in (
            record_weights,
            record_heads,
            partial(change_heads, instead={"1.1": 0.0}),
        ):
            with (
                pytest.raises(ValueError, match="must not be compiled"),
                look(model),
            ):
                pass
    with record_heads(layer) as heads:
        layer(torch.randn(1, 3, 8))
    assert len(heads) == 2


def its_own_heads(rank, n_ranks):
    """What a rank records of its heads, and what is left without them."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 4), torch.randn(1, 3, 8)
    with record_heads(layer) as whole:
        layer(x)
    mesh = init_device_mesh("cpu", (n_ranks,))
    part = tensor_parallel(layer, mesh)
    with record_heads(part) as own:
        part(x)
    names = ["1.1", "1.2"]
    wanted = [whole[f"1.{1 + 2 * rank}"], whole[f"1.{2 + 2 * rank}"]]
    torch.testing.assert_close([own[name] for name in names], wanted)
    with change_heads(part, dict.fromkeys(names, 0.0)):
        return part(x).abs().max().item()


def test_each_rank_records_its_own_heads_and_changes_them():
    """All recorded those of the first rank; changing them failed."""
    assert on_ranks(its_own_heads, 2) == [0.0, 0.0]


# Devices, memory


def for_three_heads(rank, n_ranks):
    q = torch.randn(1, 4, 3, 2)
    mask = torch.ones(3, 1, 3 * n_ranks, dtype=torch.bool)
    return ulysses_attention(q, q, q, mask=mask)


@pytest.mark.parametrize("ranks", [1, 2])
def test_tables_for_other_heads_are_refused_on_every_rank(ranks):
    """They were cut to the heads of a rank, and the rest was lost."""
    with pytest.raises(RuntimeError, match="mask must broadcast") as raised:
        on_ranks(for_three_heads, ranks)
    assert str(raised.value).count("mask must broadcast") == ranks


class SpeechlessError(Exception):
    def __str__(self):
        raise RuntimeError


def ends_by_itself(rank, n_ranks):
    dist.destroy_process_group()
    return rank


def says_nothing(rank, n_ranks):
    raise SpeechlessError


def test_work_may_leave_the_group_and_an_error_may_be_without_words():
    """One was called a failure, of the other it was said that it ended."""
    assert on_ranks(ends_by_itself, 2) == [0, 1]
    with pytest.raises(RuntimeError, match="rank 0: SpeechlessError"):
        on_ranks(says_nothing, 2)


def test_what_is_made_of_a_list_is_counted():
    """A tensor made of numbers held no bytes."""
    numbers = [0.0] * 1000
    assert peak_bytes(lambda: torch.tensor(numbers)) == 4000
    made = (torch.tensor(numbers) for _ in "abc")
    assert peak_bytes(lambda: torch.stack([*made])) == 24_000
