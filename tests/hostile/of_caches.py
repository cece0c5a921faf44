"""Hostile caches: of another batch, another model, another place."""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from hostile.recipes import decoder, encoder_decoder, translator
from hostile.verdicts import Trial
from selfattn.blocks import EncoderBlock
from selfattn.efficient.linear import Memory, linear_attention_step
from selfattn.models import complete
from selfattn.multihead import KeysValues, MultiHeadAttention

NAMES = ("cache", "past", "kept", "memory", "context", "tokens", "prompt")


def trials(rng: Random) -> Iterator[Trial]:
    """For all that goes on where it stopped."""
    torch.manual_seed(rng.randrange(1000))
    n, batch = rng.randint(2, 5), rng.randint(2, 4)
    yield from of_decoder(n, batch)
    yield from of_layer(n, batch)
    yield from of_readers(n, batch)
    yield from of_memory(batch)
    yield from of_texts(n, batch)


def refused(detail: str, run: Callable[[], Any], *names: str) -> Trial:
    """A cache that does not fit."""
    return Trial("a cache", detail, run, None, names=(*NAMES, *names))


def ids(batch: int, n: int) -> Tensor:
    """Token numbers."""
    return torch.randint(0, 11, (batch, n))


def bad_caches(cache: list[KeysValues]) -> dict[str, Any]:
    """What a cache of two blocks can be instead."""
    first, second = cache
    return {
        "of a block less": cache[:1],
        "of a block more": [*cache, second],
        "of no block": [],
        "of None": [None, None],
        "of tensors": [first.k, second.k],
        "of pairs": [tuple(first), tuple(second)],
        "of one sequence": [KeysValues(*(x[:1] for x in kv)) for kv in cache],
        "of a sequence more": [
            KeysValues(*(torch.cat((x, x[:1])) for x in kv)) for kv in cache
        ],
        "of a head less": [
            KeysValues(*(x[:, :1] for x in kv)) for kv in cache
        ],
        "of a feature less": [
            KeysValues(*(x[..., :-1] for x in kv)) for kv in cache
        ],
        "of float64": [KeysValues(*(x.double() for x in kv)) for kv in cache],
        "of unequal lengths": [
            first,
            KeysValues(*(x[:, :, :-1] for x in second)),
        ],
        "of more keys than values": [
            KeysValues(kv.k, kv.v[:, :, :-1]) for kv in cache
        ],
        "a text": "cache",
        "a tensor": first.k,
    }


def of_decoder(n: int, batch: int) -> Iterator[Trial]:
    """A decoder's own cache, bent."""
    model = decoder().eval()
    tokens = ids(batch, n)
    _, cache = model.step(tokens)
    new = ids(batch, 1)
    for name, bad in bad_caches(cache).items():
        if name == "of pairs":
            continue
        run = partial(model.step, new, bad)
        yield refused(f"Decoder.step with a cache {name}", run)
    yield refused(
        "Decoder.step past the last position",
        partial(model.step, ids(batch, 17)),
        "offset",
        "n",
    )
    for wrong in (11, -1, 10**6):
        bad_ids = new.clone()
        bad_ids[0, 0] = wrong
        yield refused(f"token {wrong}", partial(model.step, bad_ids))
        yield refused(f"a text of {wrong}", partial(model, bad_ids))

    def whole() -> Any:
        return model(torch.cat((tokens, new), 1))[:, -1]

    def in_steps() -> Any:
        return model.step(new, model.step(tokens)[1])[0]

    yield Trial(
        "a cache", "in two steps", in_steps, whole, dtype=torch.float32
    )


def of_layer(n: int, batch: int) -> Iterator[Trial]:
    """The keys and values of one layer, and of one block."""
    layer = MultiHeadAttention(8, 4, n_kv_heads=2)
    block = EncoderBlock(8, 2, 12, pre=True)
    x, new = torch.randn(batch, n, 8), torch.randn(batch, 1, 8)
    for name, keep, ask in (
        ("MultiHeadAttention", layer.keys_values, layer),
        ("EncoderBlock", block.remember, kept_by(block)),
    ):
        own = keep(x)
        for how, [bad] in {
            k: [c[0]]
            for k, c in bad_caches([own, own]).items()
            if isinstance(c, list) and len(c) == 2 and c[0] is not None
        }.items():
            if how in ("of unequal lengths", "of pairs", "of tensors"):
                continue
            yield refused(f"{name} asks one {how}", partial(ask, new, bad))
            if how != "of more keys than values":
                yield refused(
                    f"{name} adds to one {how}", partial(keep, new, bad)
                )
        for bad in ("text", 3, own.k, [own]):
            what = type(bad).__name__
            yield refused(f"{name} adds to {what}", partial(keep, new, bad))
            if not isinstance(bad, Tensor):
                yield refused(f"{name} asks {what}", partial(ask, new, bad))


def kept_by(block: nn.Module) -> Callable[[Tensor, Any], Tensor]:
    """A block as it is asked with what it kept."""
    return lambda x, kept: block(x, kept=kept)


def of_readers(n: int, batch: int) -> Iterator[Trial]:
    """What an encoder has read, for another batch of writers."""
    for model in (encoder_decoder().eval(), translator().eval()):
        name = type(model).__name__
        memory = model.read(ids(batch, n))
        for size in (1, batch + 1):
            tokens = ids(size, 1) % 7
            run = partial(model.step, tokens, memory=memory)
            yield refused(f"{name}.step of {size} after {batch}", run)
        for bad in (None, "text", 3, (), memory[:1]):
            tokens = ids(batch, 1) % 7
            run = partial(model.step, tokens, memory=bad)
            yield refused(f"{name}.step with memory={type(bad)}", run)
    reader = translator()
    for lengths in ([0] * batch, [n + 1] * batch, [n] * (batch + 1), [-1] * n):
        run = partial(reader.read, ids(batch, n), torch.tensor(lengths))
        yield refused(f"Translator.read {lengths}", run, "lengths")


def of_memory(batch: int) -> Iterator[Trial]:
    """Linear attention's memory."""
    q, k, v = torch.randn(3, batch, 4)
    _, memory = linear_attention_step(q, k, v)
    bad = {
        "of another width": Memory(memory.pairs[..., :-1], memory.total),
        "of other features": Memory(memory.pairs[:, :-1], memory.total),
        "of another total": Memory(memory.pairs, memory.total[..., :-1]),
        "of one sequence more": Memory(
            *(torch.cat((x, x[:1])) for x in memory)
        ),
        "of more axes": Memory(memory.pairs[None], memory.total[None]),
        "a text": "memory",
        "a tensor": memory.pairs,
    }
    for name, wrong in bad.items():
        run = partial(linear_attention_step, q, k, v, wrong)
        yield refused(f"linear_attention_step with one {name}", run)


def of_texts(n: int, batch: int) -> Iterator[Trial]:
    """Prompts and steps that cannot go on."""
    model = decoder().eval()
    prompt = ids(batch, n)
    yield refused(
        "an empty prompt", partial(complete, model.step, prompt[:, :0], 2)
    )
    yield refused("no batch axis", partial(complete, model.step, prompt[0], 2))
    yield refused(
        "a prompt of floats", partial(complete, model.step, prompt.float(), 2)
    )
    yield refused(
        "a negative number", partial(complete, model.step, prompt, -1), "n_new"
    )
    yield refused(
        "too many", partial(complete, model.step, prompt, 40), "offset", "n"
    )

    def cached(yes: bool) -> Any:
        return complete(model.step, prompt, 4, cached=yes)

    yield Trial(
        "a cache",
        "the same text",
        partial(cached, True),
        partial(cached, False),
    )
