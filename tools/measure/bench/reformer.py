"""LSH attention, of Reformer: what is raced, and against what.

Declared here, run and timed by `tools.measure.bench` as all races are.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn import attention, lsh_attention
from selfattn.efficient.reformer import lsh_mask
from selfattn.masks import causal_mask
from tools.measure.bench.race import (
    HEADS,
    Around,
    D,
    Race,
    lean_sizes,
    sdpa,
)

Core = Callable[[Tensor, Tensor], Tensor]  # of queries and values, in heads


class Layer(nn.Module):
    """Shared queries and keys around any attention of them."""

    def __init__(self, core: Core | None = None):
        """Draw the weights; the core may be put in later."""
        super().__init__()
        self.core = core
        self.W_qk, self.W_v, self.W_o = (
            nn.Linear(HEADS * D, HEADS * D, bias=False) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output: (1, n, d_model)."""
        output = self.core(heads(self.W_qk(x)), heads(self.W_v(x)))
        return self.W_o(together(output))

    def around(self, core: Core) -> "Layer":
        """The same weights around another core."""
        layer = copy.copy(self)
        layer.core = core
        return layer

    def exact(self, mask, last: Tensor, x: Tensor) -> Tensor:
        """The definition in float64 for the last queries.

        Buckets hang on the last bit, so queries and keys are float32's.
        """
        rows = last.shape[-2]
        q, v = heads(self.W_qk(x.float())), heads(self.W_v(x.float()))
        k, q = F.normalize(q, dim=-1), q[..., -rows:, :]
        seen = mask(q, k)
        output = attention(q.double(), k.double(), v.double(), mask=seen)
        return together(output) @ self.W_o.weight.double().mT


def heads(x: Tensor) -> Tensor:
    """Features apart into heads: (1, heads, n, d)."""
    return x.unflatten(-1, (HEADS, D)).transpose(1, 2)


def together(x: Tensor) -> Tensor:
    """The heads side by side again: (1, n, d_model)."""
    return x.transpose(1, 2).flatten(-2)


def in_buckets(q: Tensor, v: Tensor, **options: bool) -> Tensor:
    """Our attention, with the queries' directions as keys."""
    return lsh_attention(q, F.normalize(q, dim=-1), v, **options)


def over_all(q: Tensor, v: Tensor, causal: bool) -> Tensor:
    """PyTorch's, over all keys."""
    return sdpa(q, F.normalize(q, dim=-1), v, causal)


def past(q: Tensor, k: Tensor, causal: bool) -> Tensor | None:
    """Which keys are in the past, if that is all that may be seen."""
    return causal_mask(q.shape[-2], k.shape[-2]) if causal else None


def races() -> Iterator[Race]:
    """A layer that shares queries and keys: 4 rounds, a bucket for each 32.

    Theirs cut what is sorted into pieces of 64, and each sees the one before:
    128 keys a query and round. A query of ours meets its own bucket.
    """
    torch.manual_seed(0)
    layer = Layer()
    for causal in (True, False):
        options = {"causal": causal, "see_itself": False}
        ours = layer.around(partial(in_buckets, **options))
        full = layer.around(partial(over_all, causal=causal))
        fair = {
            "sdpa layer": partial(layer.exact, partial(past, causal=causal)),
            "lsh_attention": partial(
                layer.exact, partial(lsh_mask, **options)
            ),
        }
        for n, training in lean_sizes(1024, 4096):
            race = {"sdpa layer": full, "lsh_attention": ours}
            race |= others(causal, layer)
            name = "causal" if causal else "full"
            yield Race(name, n, training, race, fair, layer=True)


def batched(core: nn.Module, q: Tensor, v: Tensor) -> Tensor:
    """A library that has heads and texts on one axis, of one text."""
    return core(q[0], v[0])[0][None]


def others(causal: bool, layer: Layer) -> dict[str, Callable[..., Tensor]]:
    """The other libraries' LSH attention: their buckets are other ones."""
    found: dict[str, Callable[..., Tensor]] = {}
    with contextlib.suppress(ImportError):
        found |= lucidrains(causal, layer)
    with contextlib.suppress(ImportError):
        found["transformers"] = hugging_face(causal, layer)
    return found


def lucidrains(causal: bool, layer: Layer) -> dict[str, Layer]:
    """The core of reformer-pytorch: as it comes, and with fewer keys."""
    from reformer_pytorch import LSHAttention

    found = {}
    for size, name in (
        (64, "reformer-pytorch"),
        (16, "reformer-pytorch, 32 keys"),  # in our buckets there are more
    ):
        core = LSHAttention(bucket_size=size, n_hashes=4, causal=causal)
        found[name] = layer.around(partial(batched, core))
    return found


def hugging_face(causal: bool, layer: Layer) -> Around:
    """The layer of transformers, with our weights; it projects no output."""
    from transformers import ReformerConfig
    from transformers.models.reformer.modeling_reformer import (
        LSHSelfAttention,
    )

    config = ReformerConfig(
        hidden_size=HEADS * D,
        num_attention_heads=HEADS,
        attention_head_size=D,
        lsh_attn_chunk_length=64,
        num_hashes=4,
        num_buckets=None,
        is_decoder=causal,
        lsh_attention_probs_dropout_prob=0.0,
    )
    theirs = LSHSelfAttention(config)
    theirs.query_key.load_state_dict(layer.W_qk.state_dict())
    theirs.value.load_state_dict(layer.W_v.state_dict())
    return Around(theirs, lambda f, x: f(x)[0])
