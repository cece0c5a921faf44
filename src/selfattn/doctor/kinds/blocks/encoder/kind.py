"""An encoder block: attention and a feed-forward network, added and normed."""

from torch import nn

from selfattn.doctor.exercise import name_of
from selfattn.doctor.kinds.blocks.encoder.calling import (
    FACTS,
    adapt,
    parts_of,
    read,
    within,
)
from selfattn.doctor.kinds.blocks.encoder.mistakes import (
    MISTAKES,
    norm_behind_the_sublayer,
    side_by_side,
)
from selfattn.doctor.kinds.blocks.encoder.probes import of_width
from selfattn.doctor.kinds.blocks.encoder.reference import encoder_block
from selfattn.doctor.kinds.blocks.family import Design, kind_of_block
from selfattn.doctor.kinds.blocks.stand_ins import SIGHTS

KIND = kind_of_block(
    "encoder-block",
    encoder_block,
    does="x + sublayer(norm(x)), or norm(x + sublayer(x)), for both sublayers",
    words=("both", "a mask"),
    parts_of=parts_of,
    of_width=of_width,
    mistakes=MISTAKES,
    facts=FACTS,
    read=read,
    adapt=adapt,
    within=within,
    sights=SIGHTS,
    designs={
        name_of(side_by_side): Design('order="parallel"', ("order",)),
        name_of(norm_behind_the_sublayer): Design(
            "formula='own'", ("order", "norms")
        ),
    },
    healthy=lambda: nn.TransformerEncoderLayer(6, 2, 11, batch_first=True),
)
