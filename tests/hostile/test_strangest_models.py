"""Stranger still: of models that are compiled, loaded, or called amiss.

As in `test_strangers`, each is a single story.
"""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch._dynamo.exc import Unsupported
from torch.distributed.device_mesh import init_device_mesh
from torch.func import functional_call
from torch.testing import assert_close

from selfattn import attention
from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.called import known_as
from selfattn.devices.heads import tensor_parallel
from selfattn.devices.world import on_ranks
from selfattn.models import Decoder, Embedding, Encoder, EncoderDecoder
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import AdditiveAttention, Recurrent, Translator

D = 8


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def padded(n):
    """A mask that hides the last token of each of two texts."""
    mask = torch.ones(2, 1, 1, n, dtype=torch.bool)
    mask[..., -1] = False
    return mask


# Compiled


def test_the_first_mask_may_come_when_lengths_vary_already():
    """A length that was known and one that was a symbol were compared by
    ``in``, which `torch.compile` answers with no: the mask was refused.
    """
    torch._dynamo.reset()
    layer = MultiHeadAttention(D, 2)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    compiled(torch.randn(2, 4, D))
    x = torch.randn(2, 5, D)
    found = compiled(x, mask=padded(5))
    assert_close(found, layer(x, mask=padded(5)))


@pytest.mark.parametrize("table", ["mask", "bias"])
def test_so_may_a_table_of_the_mechanism_itself(table):
    """There it stood: in what is asked of each table."""
    torch._dynamo.reset()
    compiled = torch.compile(attention, backend="eager", fullgraph=True)
    few, more = torch.randn(2, 4, D), torch.randn(2, 5, D)
    compiled(few, few, few)
    mask = padded(5)[:, 0]
    tables = {table: mask if table == "mask" else mask.float()}
    found = compiled(more, more, more, **tables)
    assert_close(found, attention(more, more, more, **tables))


# Called amiss


def test_values_of_another_batch_are_told_as_such():
    """The weights of the layer were blamed, which had nothing to do with it:
    they fit each other.
    """
    layer = AdditiveAttention(3, 5, 4)
    q, k, v = torch.randn(2, 3, 3), torch.randn(2, 4, 5), torch.randn(3, 4, 7)
    with pytest.raises(ValueError, match=r"together.*and v is \(3, 4, 7\)"):
        layer(q, k, v)


# Loaded


def reader_and_writer():
    """An `EncoderDecoder` both of whose stacks read by one embedding."""
    embed = Embedding(11, D)
    encoder = Encoder(embed, [EncoderBlock(D, 2, 16, pre=True)])
    return EncoderDecoder(encoder, embed, [DecoderBlock(D, 2, 16, pre=True)])


def test_a_shared_table_may_come_by_its_first_name_alone():
    """As `named_parameters` tells each once: assigned, it was the embedding's
    and not the scores', which were made with the numbers from before.
    """
    trained, model = reader_and_writer(), reader_and_writer()
    numbers = {n: x.detach().clone() for n, x in trained.named_parameters()}
    assert "embed.tokens.weight" not in numbers
    model.load_state_dict(numbers, strict=False, assign=True)
    assert model.head.weight is model.embed.tokens.weight
    texts = torch.randint(11, (2, 2, 5))
    assert_close(model(*texts), trained(*texts))


def test_two_tables_do_not_fit_into_one():
    """The scores' were copied over the embedding's, and nothing was said."""
    blocks = [EncoderBlock(D, 2, 16, pre=True)]
    numbers = Decoder(Embedding(11, D), blocks, tied=False).state_dict()
    model = nn.Sequential(Decoder(Embedding(11, D), blocks))
    numbers = {f"0.{name}": x for name, x in numbers.items()}
    words = r"0\.head\.weight and 0\.embed\.tokens\.weight must be alike"
    with pytest.raises(RuntimeError, match=words):
        model.load_state_dict(numbers)
    model.load_state_dict(numbers, assign=True)  # which makes them two
    assert_close(
        model[0].embed.tokens.weight, numbers["0.embed.tokens.weight"]
    )


def test_nor_do_they_under_a_third_name():
    model = reader_and_writer()
    model.reader = model.embed  # which is the encoder's as well
    numbers = model.state_dict() | {"reader.tokens.weight": torch.ones(11, D)}
    words = r"head\.weight and reader\.tokens\.weight must be alike"
    with pytest.raises(RuntimeError, match=words):
        model.load_state_dict(numbers)


def test_a_model_with_two_tables_loads_two():
    one, other = (
        Decoder(
            Embedding(11, D), [EncoderBlock(D, 2, 16, pre=True)], tied=False
        )
        for _ in range(2)
    )
    one.load_state_dict(other.state_dict())
    assert_close(one.state_dict(), other.state_dict())


@pytest.mark.parametrize(
    ("head", "words"),
    [(torch.ones(12, D), "size mismatch"), (3, "expected torch.Tensor")],
)
def test_of_what_is_no_such_table_only_pytorch_speaks(head, words):
    """That it differs from the other one is not the matter."""
    model = Decoder(Embedding(11, D), [EncoderBlock(D, 2, 16, pre=True)])
    numbers = {**model.state_dict(), "head.weight": head}
    with pytest.raises(RuntimeError, match=words) as refused:
        model.load_state_dict(numbers)
    assert "must be alike" not in str(refused.value)


# One embedding, twice


def test_a_functional_call_takes_no_embedding_away():
    """PyTorch put back what it had put in: of a module under two names, what
    was found under the second is what the first was given.
    """
    model, texts = reader_and_writer(), torch.randint(11, (2, 2, 5))
    before = dict(model.named_parameters())
    for names in (before, model.state_dict()):
        numbers = {
            n: torch.zeros_like(before[n]) for n in names if n in before
        }
        assert functional_call(model, numbers, tuple(texts)).eq(0).all()
        for name, x in model.named_parameters():
            assert x is before[name]
    assert len(before) == len([*model.parameters()])


def test_an_embedding_may_still_become_another():
    """It is found in the encoder, unless the target has its own."""
    model, texts = reader_and_writer(), torch.randint(11, (2, 2, 5))
    shared, own = model.embed, Embedding(11, D)
    assert shared is model.encoder.embed
    model.embed = own
    assert model.embed is own and model.encoder.embed is shared
    assert "embed.tokens.weight" in model.state_dict()
    model(*texts)
    model.embed = shared
    assert "embed.tokens.weight" not in model.state_dict()
    assert pickle.loads(pickle.dumps(model)).embed.tokens.weight.equal(
        shared.tokens.weight
    )


@pytest.mark.parametrize("names", ["both", "first", "second"])
def test_a_shared_embedding_is_loaded_by_either_name(names):
    """Numbers that were saved while it had two names."""
    trained, model = reader_and_writer(), nn.Sequential(reader_and_writer())
    numbers = trained.state_dict()
    table = numbers["encoder.embed.tokens.weight"]
    if names != "first":
        numbers["embed.tokens.weight"] = table.clone()
    if names == "second":
        del numbers["encoder.embed.tokens.weight"]
    given = {f"0.{name}": x for name, x in numbers.items()}
    model.load_state_dict(given)
    texts = torch.randint(11, (2, 2, 5))
    assert_close(model[0](*texts), trained(*texts))
    assert len(given) == len(numbers)


def overwritten(larger):
    replace = torch.__future__.set_overwrite_module_params_on_conversion
    replace(True)
    try:
        larger.double()
    finally:
        replace(False)


CHANGES = {
    "assigned": lambda x: x.load_state_dict(x.state_dict(), assign=True),
    "emptied": lambda x: x.to("meta").to_empty(device="cpu"),
    "overwritten": overwritten,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("copied", [False, True])
def test_a_tied_table_is_one_where_its_part_has_another_name(
    change, first, copied
):
    """A larger model had the embedding beside the one that scores with it:
    where either was changed alone, the other kept the table from before.
    """
    model = reader_and_writer()
    parts = {"words": model.embed, "model": model}
    names = ["words", "model"] if first else ["model", "words"]
    larger = nn.ModuleDict({name: parts[name] for name in names})
    larger = copy.deepcopy(larger) if copied else larger
    change(larger)
    model = larger["model"]
    assert model.head.weight is larger["words"].tokens.weight
    assert model.is_one()
    model.head.weight = nn.Parameter(torch.ones(11, D))  # no longer
    change(larger)
    assert not model.is_one()


@pytest.mark.parametrize("assign", [False, True])
def test_two_embeddings_do_not_fit_into_one(assign):
    """The second's numbers were copied over the first's."""
    model = reader_and_writer()
    numbers = model.state_dict()
    numbers["embed.tokens.weight"] = torch.ones(11, D)
    words = (
        r"encoder\.embed\.tokens\.weight and embed\.tokens\.weight must be "
        "alike, for they are one embedding's"
    )
    with pytest.raises(RuntimeError, match=words):
        model.load_state_dict(numbers, assign=assign)


# Two recurrent networks


def translator():
    """With a source and a target for it."""
    model = Translator(11, 7, D, attend=AdditiveAttention(D, D, 4))
    return model, torch.randint(11, (2, 5)), torch.randint(7, (2, 3))


def test_a_translator_says_what_cannot_be_mapped():
    """`Recurrent` did; here PyTorch spoke of a batching rule for aten::gru."""
    model, source, target = translator()
    memory = model.read(source[:1])

    def read(text):
        return model.read(text[None]).states

    def write(text):
        return model.write(text[None], memory)[0]

    def align(text):
        return model.alignment(source[:1], text[None])

    for function, texts in ((read, source), (write, target), (align, target)):
        with pytest.raises(
            ValueError, match=r"cannot map .* recurrent layers"
        ):
            torch.func.vmap(function)(texts)


def test_what_fails_otherwise_within_a_transform_is_told_as_it_is():
    """Whatever did was said to be what `torch.func.vmap` cannot map."""

    class Fails(nn.GRU):
        def forward(self, x):
            raise RuntimeError("no room")

    network = Recurrent(Fails(D, D, batch_first=True))
    with pytest.raises(RuntimeError, match=r"^no room$"):
        torch.func.grad(lambda x: network(x).sum())(torch.randn(2, 5, D))


@torch.no_grad()  # else PyTorch warns of what its own graph asks
def test_lengths_may_be_compiled():
    """They were refused as not at hand, in words for meta and for exports."""
    torch._dynamo.reset()
    model, source, target = translator()
    lengths = torch.tensor([2, 5])
    compiled = torch.compile(model, backend="eager")
    found = compiled(source, target, lengths)
    assert_close(found, model(source, target, lengths))


@pytest.mark.parametrize(
    ("strict", "error"), [(False, ValueError), (True, Unsupported)]
)
def test_lengths_may_not_be_exported(strict, error):
    """There no graph breaks; of one that does PyTorch would speak."""
    model, source, target = translator()
    given = source, target, torch.tensor([2, 5])
    with pytest.raises(error, match=r"lengths must be .* in an export"):
        torch.export.export(model, given, strict=strict)


# By its own name


def of_more_heads():
    """An `EncoderDecoder` that writes with more heads than it reads with: a
    mask for each of the latter is refused where it looks at the memory.
    """
    embed = Embedding(11, D)
    encoder = Encoder(embed, [EncoderBlock(D, 2, 16, pre=True)])
    return EncoderDecoder(encoder, embed, [DecoderBlock(D, 4, 16, pre=True)])


def refusals():
    """Calls that are refused, each by the name of what is wrong."""
    model, block = reader_and_writer(), DecoderBlock(D, 2, 16, pre=True)
    text, x = torch.zeros(2, 5, dtype=torch.long), torch.randn(2, 5, D)
    memory = model.read(text)
    _, cache = model.step(text, memory=memory)
    other = memory._replace(mask=padded(7))
    writer = Decoder(Embedding(11, D), [EncoderBlock(D, 2, 16, pre=True)])
    _, own = writer.step(text)
    one = text[:1]
    old, source, told = translator()
    said = old.read(source)._replace(mask=padded(7)[:, 0])
    far = [kv._replace(k=kv.k.to("meta"), v=kv.v.to("meta")) for kv in own]
    return {
        r"^memory_mask must bro": (block, (x, x), {"memory_mask": padded(7)}),
        r"^memory_mask must.*write memory_mask\[:": (
            block,
            (x, x),
            {"memory_mask": padded(5)[:, 0]},
        ),
        r"^mask must": (block, (x, x), {"mask": padded(7)}),
        r"^target_mask must": (
            model,
            (text, text),
            {"target_mask": padded(7)},
        ),
        r"^source must": (model, (text + 11, text), {}),
        r"^target must": (model, (text, text + 11), {}),
        r"^cache\[0\] must": (model.step, (one, cache), {"memory": memory}),
        r"^memory\.mask must": (model.step, (text,), {"memory": other}),
        r"^memory\.kept\[0\] must": (model.step, (one,), {"memory": memory}),
        r"^cache\[0\] must hold": (writer.step, (one, own), {}),
        r"^memory\.mask must bro": (old.step, (told,), {"memory": said}),
        r"^source must.*from 0 to 10, ": (model.read, (text + 11,), {}),
        r"^mask must.* = \(2, 4": (
            of_more_heads(),
            (text, text),
            {"mask": torch.ones(2, 2, 1, 5, dtype=torch.bool)},
        ),
        r"^memory\.mask must be a t.*is 3$": (
            old.step,
            (told,),
            {"memory": said._replace(mask=3)},
        ),
        r"^cache\[0\]\.k must be where x": (writer.step, (text, far), {}),
        r"^memory\.kept must hold": (
            model.step,
            (text,),
            {"memory": memory._replace(kept=[3])},
        ),
        r"^memory\.kept\[0\]\.k must": (
            model.step,
            (text,),
            {"memory": memory._replace(kept=[type(own[0])(3, 4)])},
        ),
    }


@pytest.mark.parametrize("words", refusals())
def test_what_is_refused_further_in_has_the_name_it_was_given_by(words):
    """A mask of the memory was refused as the mask, of which there is one
    besides; a target as tokens, and a cache as the past.
    """
    call, given, more = refusals()[words]
    with pytest.raises((ValueError, TypeError), match=words):
        call(*given, **more)


def test_a_name_that_another_ends_with_is_left_alone():
    def read(k):
        raise ValueError(f"k must be one of bank=[1, 2], but k={k}")

    with pytest.raises(ValueError, match=r"^key .* of bank=.* but key=3$"):
        known_as({"k": "key"}, read, 3)


# On several ranks


def dealt(rank, n_ranks):
    """What a layer whose heads are dealt out says of tokens that are none."""
    mesh = init_device_mesh("cpu", (n_ranks,))
    layer = tensor_parallel(MultiHeadAttention(D, 2), mesh)
    said = []
    for x in (torch.randn(2, 5, D).to_sparse(), torch.ones(2, 5, D).long()):
        refused = pytest.raises((TypeError, ValueError), match="x must be a t")
        with refused:
            layer(x)
        said.append(True)
    return said


def test_what_cannot_be_dealt_out_is_refused_in_words():
    """Of a sparse tensor PyTorch said that it has no such operation, before
    the layer itself was asked.
    """
    assert on_ranks(dealt, 2) == [[True, True]] * 2


def other_reader(model):
    """Another encoder, of other tokens, or another embedding in the same."""
    model.encoder = Encoder(
        Embedding(19, 8), [EncoderBlock(8, 2, 16, pre=True)]
    )


def other_table(model):
    """Another embedding in the same encoder."""
    model.encoder.embed = Embedding(19, 8)


@pytest.mark.parametrize("change", [other_reader, other_table])
@pytest.mark.parametrize(
    "keep",
    [lambda x: x, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
)
@pytest.mark.parametrize("look", [False, True])
def test_a_target_keeps_its_embedding_when_the_source_gets_another(
    change, keep, look
):
    """The new encoder's embedding became the target's as well: it took
    tokens of which it had none, and its own was lost in silence.
    """
    embed = Embedding(11, 8)
    model = keep(
        EncoderDecoder(
            Encoder(embed, [EncoderBlock(8, 2, 16, pre=True)]),
            embed,
            [DecoderBlock(8, 2, 16, pre=True)],
        )
    )
    own = model.encoder.embed = model.embed  # which changes nothing
    assert [n for n in model.state_dict() if n.startswith("embed.")] == []
    change(model)
    every = model.named_parameters(remove_duplicate=False)
    names = [n for n, _ in every] if look else [*model.state_dict()]
    assert {"embed.tokens.weight", "encoder.embed.tokens.weight"} <= {*names}
    assert model.embed is own and model.is_one()
    source, target = torch.tensor([[15]]), torch.tensor([[3, 10]])
    assert model(source, target).shape == (1, 2, 11)
    with pytest.raises(ValueError, match=r"target must be numbers from 0 to"):
        model(source, source)
    model.encoder.embed = own  # and shared again
    model.embed = own
    assert [n for n in model.state_dict() if n.startswith("embed.")] == []
