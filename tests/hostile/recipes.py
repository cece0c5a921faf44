"""What a signature does not tell: modules, functions, files, small options.

A callable that is not here and cannot be fed from its signature is an error
of the harness, which names it: whoever adds one adds its line here.
"""

import datetime
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from hostile.feeding import Sizes
from hostile.scenes import a_file, mesh_of_one
from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.dot_product import attention
from selfattn.efficient.linformer import (
    LearnedProjection,
    LinformerAttention,
    MeanPooling,
)
from selfattn.layers import (
    AddNorm,
    FeedForward,
    LayerNorm,
    RMSNorm,
    SwiGLU,
    gelu,
)
from selfattn.models import (
    Bert,
    ClassHead,
    Decoder,
    Embedding,
    Encoder,
    EncoderDecoder,
    LabelHead,
    PatchEmbedding,
    Pooler,
    SpanHead,
    VisionTransformer,
    WordHead,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import (
    AdditiveAttention,
    Convolution,
    MultiplicativeAttention,
    Recurrent,
    Translator,
)
from selfattn.positions import (
    LearnedPositions,
    ShawAttention,
    T5Bias,
    TransformerXLAttention,
)

Recipe = dict[str, Callable[[Sizes], Any]]


def always(x: Any) -> Callable[[Sizes], Any]:
    """The same, whatever the sizes."""
    return lambda sizes: x


def encoder_blocks() -> list[nn.Module]:
    """Two blocks of width 8."""
    return [EncoderBlock(8, 2, 12, pre=True) for _ in range(2)]


def embedding() -> Embedding:
    """Of 11 tokens, 16 positions and 2 segments."""
    return Embedding(11, 8, positions=LearnedPositions(16, 8), n_segments=2)


def encoder() -> Encoder:
    """A small BERT."""
    return Encoder(embedding(), encoder_blocks(), norm=LayerNorm(8))


def decoder() -> Decoder:
    """A small GPT."""
    return Decoder(embedding(), encoder_blocks(), norm=LayerNorm(8))


def encoder_decoder() -> EncoderDecoder:
    """A small T5."""
    blocks = [DecoderBlock(8, 2, 12, pre=True)]
    return EncoderDecoder(encoder(), embedding(), blocks)


def patches() -> PatchEmbedding:
    """Of pictures of 6 × 8 points."""
    return PatchEmbedding((6, 8), (3, 2), n_channels=1, d_model=8)


def translator() -> Translator:
    """With Bahdanau's attention."""
    return Translator(11, 7, 8, attend=AdditiveAttention(8, 8, 5))


# A module of each class, of the widths that `feeding` gives.
MODULES: dict[str, Callable[[], nn.Module]] = {
    "AddNorm": partial(AddNorm, 8, pre=True),
    "AdditiveAttention": partial(AdditiveAttention, 4, 6, 5),
    "Bert": lambda: Bert(encoder()),
    "ClassHead": partial(ClassHead, 8, 3),
    "Convolution": partial(Convolution, 8, kernel=3, n_layers=2),
    "Decoder": decoder,
    "DecoderBlock": partial(DecoderBlock, 8, 2, 12, pre=True),
    "Embedding": embedding,
    "Encoder": encoder,
    "EncoderBlock": partial(EncoderBlock, 8, 2, 12, pre=False),
    "EncoderDecoder": encoder_decoder,
    # At relu's bend, rounding decides the gradient.
    "FeedForward": partial(FeedForward, 8, 12, activation=gelu),
    "LabelHead": partial(LabelHead, 8, 3),
    "LayerNorm": partial(LayerNorm, 4),
    "LearnedPositions": partial(LearnedPositions, 16, 8),
    "LearnedProjection": partial(LearnedProjection, 12, 3),
    "LinformerAttention": lambda: LinformerAttention(MeanPooling(3)),
    "MeanPooling": partial(MeanPooling, 3),
    "MultiHeadAttention": partial(
        MultiHeadAttention, 8, 4, n_kv_heads=2, projection_bias=True
    ),
    "MultiHeadAttention.to_torch": partial(MultiHeadAttention, 8, 4),
    "MultiplicativeAttention": partial(MultiplicativeAttention, 4, 6),
    "PatchEmbedding": patches,
    "Pooler": partial(Pooler, 8),
    "RMSNorm": partial(RMSNorm, 4),
    "Recurrent": lambda: Recurrent(nn.GRU(8, 8, batch_first=True)),
    "ShawAttention": partial(ShawAttention, 4, 3, max_distance=3),
    "SpanHead": partial(SpanHead, 8),
    "SwiGLU": partial(SwiGLU, 8, 12),
    "T5Bias": partial(T5Bias, 2),
    "TransformerXLAttention": partial(TransformerXLAttention, 2, 4),
    "Translator": translator,
    "VisionTransformer": lambda: VisionTransformer(
        patches(), encoder_blocks(), 3
    ),
    "WordHead": lambda: WordHead(embedding()),
}


# Draws from PyTorch's own generator: in threads, in any order.
RANDOM = ("models.generate.sample",)
# Scores that tell the places of keys apart, which large ones round away.
PLACES_IN_SCORES = (
    *("ShawAttention", "TransformerXLAttention"),
    "MultiplicativeAttention",  # a matrix makes keys that are nearly alike
)
# Gives another number each time.
MEASURES = ("cost.seconds",)
NEEDS_CUDA = ("cost.cuda_seconds", "cost.cuda_peak_bytes")
# A sum of numbers of these sizes is rounded, and says so; none is tried.
ROUNDS_SUMS = ("models.heads.best_span",)

# Axes that such a module does not fix, though others of that name do.
FREE: dict[str, tuple[str, ...]] = {
    "AdditiveAttention": ("d_v",),
    "LearnedProjection": ("d",),
    "LinformerAttention": ("d", "d_v"),
    "MeanPooling": ("d",),
    "MultiplicativeAttention": ("d_v",),
    "TransformerXLAttention": ("d_v",),
}


def tokens(sizes: Sizes, length: str = "n", most: int = 7) -> Tensor:
    """Token numbers, (batch, n)."""
    return torch.randint(0, most, (sizes["batch"], sizes[length]))


def heads_of(width: str, length: str) -> Callable[[Sizes], Tensor]:
    """Queries, keys or values with two heads, (batch, heads, n, width)."""

    def make(sizes: Sizes) -> Tensor:
        shape = (sizes["batch"], 2, sizes[length], sizes[width])
        return torch.randn(shape, dtype=torch.float64)

    return make


def features(width: int) -> Callable[[Sizes], Tensor]:
    """Tokens of so many features, (batch, n, width)."""
    return lambda sizes: torch.randn(
        sizes["batch"], sizes["n"], width, dtype=torch.float64
    )


def weights(sizes: Sizes) -> Tensor:
    """Rows that sum to one, (batch, n_q, n_k)."""
    shape = sizes["batch"], sizes["n_q"], sizes["n_k"]
    return torch.randn(shape, dtype=torch.float64).softmax(-1)


def of_six(width: int) -> Callable[[Sizes], Tensor]:
    """Six tokens, (batch, 6, width)."""
    return lambda sizes: torch.randn(
        sizes["batch"], 6, width, dtype=torch.float64
    )


def memory_of(sizes: Sizes) -> Any:
    """A source that the small T5 has read."""
    torch.manual_seed(5)
    model = encoder_decoder().double()
    return model.read(tokens(sizes, "n_k"))


def read_by_translator(sizes: Sizes) -> Any:
    """A source that the translator has read."""
    torch.manual_seed(5)
    return translator().double().read(tokens(sizes, "n_k"))


def count_up(new: Tensor, cache: Any) -> tuple[Tensor, Any]:
    """A model of numbers: what follows is one more, or else one of others,
    none as likely as another.
    """
    eye = torch.eye(11, device=new.device, dtype=torch.float64)
    next_one = (new[:, -1].long() + 1) % 11
    others = torch.arange(11, device=new.device, dtype=torch.float64).cos() / 9
    return eye[next_one] + others, None


def something_to_run() -> Tensor:
    """Some operations, the same under any default."""
    x = torch.ones(3, 4, dtype=torch.float32, device="cpu")
    return x.exp().sum()


SIX = {"q": of_six(4), "k": of_six(4), "v": of_six(3)}
GRID: Recipe = {"grid": always((2, 3)), "window": always((2, 2))}
TWO_HEADS: Recipe = {
    "q": heads_of("d", "n_q"),
    "k": heads_of("d", "n_k"),
    "v": heads_of("d_v", "n_k"),
}
EMBED: Recipe = {"embed": lambda sizes: embedding()}
BLOCKS: Recipe = {"blocks": lambda sizes: encoder_blocks()}
RUNS: Recipe = {"f": always(something_to_run)}
TOKENS: Recipe = {"tokens": tokens}

# By the end of a name, the first that fits.
ARGUMENTS: dict[str, Recipe] = {
    "AddNorm.forward": {"sublayer": always(torch.tanh), "x": features(8)},
    "FeedForward.forward": {"x": features(8)},
    "SwiGLU.forward": {"x": features(8)},
    "models.bert.Bert": {"encoder": lambda sizes: encoder()},
    "Decoder": EMBED | BLOCKS,
    "Encoder": EMBED | BLOCKS,
    "EncoderDecoder": {
        "encoder": lambda sizes: encoder(),
        **EMBED,
        "blocks": lambda sizes: [DecoderBlock(8, 2, 12, pre=True)],
    },
    "VisionTransformer": {"embed": lambda sizes: patches(), **BLOCKS},
    "PatchEmbedding": {
        "image_size": always((6, 8)),
        "patch_size": always((3, 2)),
    },
    "VisionTransformer.forward": {
        "images": lambda sizes: torch.randn(
            sizes["batch"], 1, 6, 8, dtype=torch.float64
        )
    },
    "PatchEmbedding.forward": {
        "images": lambda sizes: torch.randn(
            sizes["batch"], 1, 6, 8, dtype=torch.float64
        )
    },
    "WordHead": EMBED,
    "Encoder.forward": TOKENS,
    "Decoder.forward": TOKENS,
    "Decoder.step": TOKENS,
    "Embedding.forward": TOKENS,
    "EncoderDecoder.forward": {
        "source": partial(tokens, length="n_k"),
        "target": partial(tokens, length="n_q"),
    },
    "EncoderDecoder.read": {"source": partial(tokens, length="n_k")},
    "EncoderDecoder.step": {"tokens": tokens, "memory": memory_of},
    "Translator.alignment": {
        "source": partial(tokens, length="n_k"),
        "target": partial(tokens, length="n_q"),
    },
    "Translator.forward": {
        "source": partial(tokens, length="n_k"),
        "target": partial(tokens, length="n_q"),
    },
    "Translator.read": {"source": partial(tokens, length="n_k")},
    "Translator.step": {"tokens": tokens, "memory": read_by_translator},
    "Translator.write": {"target": tokens, "memory": read_by_translator},
    "Recurrent": {
        "layer": lambda sizes: nn.GRU(8, 8, batch_first=True),
    },
    "DecoderBlock.forward": {"memory": features(8)},
    # Not as many as there are sequences: rounds come first in what it gives.
    "lsh_buckets": {"n_rounds": always(2)},
    "linformer_weights": {"project": always(MeanPooling(3))},
    "LinformerAttention": {"project": lambda sizes: MeanPooling(3)},
    "MultiHeadAttention.from_torch": {
        "layer": lambda sizes: nn.MultiheadAttention(8, 2, batch_first=True)
    },
    "MultiHeadAttention.keys_values": {"context": features(8)},
    "ShawAttention.distances": {
        "q": heads_of("d", "n_q"),
        "k": heads_of("d", "n_k"),
    },
    "TransformerXLAttention.forward": TWO_HEADS,
    "TransformerXLAttention.weights": TWO_HEADS,
    "swin_attention": {**SIX, **GRID},
    "swin_mask": GRID,
    "swin_bias": {
        "grid": always((2, 3)),
        "relative_bias": lambda sizes: torch.randn(3, 5, dtype=torch.float64),
    },
    "models.llama.window_of": {"attend": always(attention)},
    "looking_inside.not_finite": {
        "tensors": always({"x": torch.tensor([1.0, float("nan")])})
    },
    "single_heads.record_weights": {
        "model": lambda sizes: MultiHeadAttention(8, 2)
    },
    "single_heads.heads_of": {"model": lambda sizes: MultiHeadAttention(8, 2)},
    "single_heads.record_heads": {
        "model": lambda sizes: MultiHeadAttention(8, 2)
    },
    "single_heads.change_heads": {
        "model": lambda sizes: MultiHeadAttention(8, 2),
        "instead": always({"1.1": 0.0}),
    },
    "looking_inside.weight_on": {
        "weights": lambda sizes: weights(sizes)[:, None],
        "queries": always(torch.tensor([0, 1])),
        "keys": lambda sizes: torch.zeros(sizes["batch"], 2).long(),
    },
    "looking_inside.fewest_keys": {
        "weights": lambda sizes: torch.ones(sizes["n_k"]).double().cumsum(0),
        "values": lambda sizes: torch.randn(
            sizes["n_k"], 3, dtype=torch.float64
        ),
    },
    "looking_inside.entropy": {"weights": weights},
    "looking_inside.spread": {"weights": weights},
    "cost.log_log_slope": {
        "ns": always([1, 2, 4]),
        "values": always([1, 3, 9]),
    },
    "cost.most_held": {"changes": always([(1, 20), (3, -20), (2, 4)])},
    "cost.flops": RUNS,
    "cost.peak_bytes": RUNS,
    "cost.largest_bytes": RUNS,
    "cost.allocated_bytes": RUNS,
    "cost.seconds": RUNS,
    "cost.cuda_seconds": RUNS,
    "cost.cuda_peak_bytes": RUNS,
    "dates.encode": {"text": always("3 March 2021")},
    "dates.written": {"date": always(datetime.date(2021, 3, 9))},
    "language.encode": {"text": always("the cat sees a dog. ")},
    "tales.encode": {"text": always(". the cat")},
    "sentiment.clause": {"drawn": always([1, 1, 0, 1, 3])},
    "language.sentences": {
        "generator": lambda sizes: torch.Generator().manual_seed(1)
    },
    "sequences.sequence_batches": {"answer": always(torch.clone)},
    "steps.answered": {
        "answer": lambda sizes: (torch.randn(sizes["batch"], 5).double(), 0),
        "n_rows": lambda sizes: sizes["batch"],
        "stop": always(None),
    },
    "generate.complete": {"step": always(count_up)},
    "measurements.measured": {"chapter": always("dot_product")},
    "source.show_source": {"thing": always(attention)},
    "beams.beam_search": {"step": always(count_up), "n_beams": always(2)},
    "gpt2.load_gpt2": {
        "path": lambda sizes: a_file("gpt2"),
        "n_heads": always(2),
    },
    "bert.load_bert": {
        "path": lambda sizes: a_file("bert"),
        "n_heads": always(2),
    },
    "llama.load_llama": {
        "path": lambda sizes: a_file("llama"),
        "n_heads": always(2),
    },
    "vit.load_vit": {
        "path": lambda sizes: a_file("vit"),
        "n_heads": always(2),
    },
    "t5.load_t5": {"path": lambda sizes: a_file("t5")},
    "heads.tensor_parallel": {
        "layer": lambda sizes: MultiHeadAttention(8, 2),
        "mesh": lambda sizes: mesh_of_one(),
    },
}
