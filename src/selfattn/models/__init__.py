"""One mechanism, many models: the parts of the book, put together.

A model is an embedding, a list of blocks, and what stands on top. `Encoder`
reads (BERT), `Decoder` writes (GPT), `EncoderDecoder` does both (T5), and
`VisionTransformer` reads patches.
"""

from selfattn.models.beams import Beams, beam_search
from selfattn.models.bert import Bert, load_bert
from selfattn.models.decoder import Decoder
from selfattn.models.embedding import Embedding
from selfattn.models.encoder import Encoder
from selfattn.models.encoder_decoder import EncoderDecoder
from selfattn.models.generate import (
    complete,
    greedy,
    keep_top_k,
    keep_top_p,
    sample,
)
from selfattn.models.gpt2 import load_gpt2
from selfattn.models.heads import (
    ClassHead,
    LabelHead,
    Pooler,
    SpanHead,
    WordHead,
    best_span,
)
from selfattn.models.llama import load_llama
from selfattn.models.t5 import load_t5
from selfattn.models.vision import PatchEmbedding, VisionTransformer
from selfattn.models.vit import load_vit

__all__ = [
    "Beams",
    "Bert",
    "ClassHead",
    "Decoder",
    "Embedding",
    "Encoder",
    "EncoderDecoder",
    "LabelHead",
    "PatchEmbedding",
    "Pooler",
    "SpanHead",
    "VisionTransformer",
    "WordHead",
    "beam_search",
    "best_span",
    "complete",
    "greedy",
    "keep_top_k",
    "keep_top_p",
    "load_bert",
    "load_gpt2",
    "load_llama",
    "load_t5",
    "load_vit",
    "sample",
]
