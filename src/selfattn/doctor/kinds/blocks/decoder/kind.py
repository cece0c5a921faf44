"""A decoder block: it looks at itself, at a context, and then works."""

from torch import nn

from selfattn.doctor.kinds.blocks.decoder.calling import (
    FACTS,
    adapt,
    parts_of,
    read,
    within,
)
from selfattn.doctor.kinds.blocks.decoder.mistakes import MISTAKES
from selfattn.doctor.kinds.blocks.decoder.probes import of_width
from selfattn.doctor.kinds.blocks.decoder.reference import decoder_block
from selfattn.doctor.kinds.blocks.family import kind_of_block
from selfattn.doctor.kinds.blocks.stand_ins import SIGHTS

KIND = kind_of_block(
    "decoder-block",
    decoder_block,
    does="self-attention, cross-attention, network: each added and normed",
    words=("all three", "a mask over the context"),
    parts_of=parts_of,
    of_width=of_width,
    mistakes=MISTAKES,
    facts=FACTS,
    read=read,
    adapt=adapt,
    within=within,
    sights=SIGHTS,
    healthy=lambda: nn.TransformerDecoderLayer(6, 2, 11, batch_first=True),
)
