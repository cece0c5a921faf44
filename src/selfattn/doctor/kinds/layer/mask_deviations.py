"""What is done otherwise in a layer with what is hidden."""

from torch import Tensor

from selfattn.doctor.deviations import hiding, own_masks
from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.layer.mistakes import masks


def hiding_queries(real: Tensor) -> Tensor:
    """A padding mask that lies along the queries."""
    return real.mT


PADDINGS = (
    Deviation({"padded": lambda real: None}, masks.padding_ignored),
    Deviation({"padded": lambda real: ~real}, masks.mask_upside_down),
    Deviation({"padded": hiding_queries}, masks.padding_hides_queries),
    Deviation(
        {"padded": lambda real: real[:1]}, hiding.one_mask_for_the_whole_batch
    ),
    Deviation(
        {"padded": lambda real: ~real, "allow": hiding.turned},
        masks.mask_upside_down,
    ),
    Deviation({"shown": hiding.turned}, masks.mask_upside_down),
)
CLAIMS = tuple(
    Deviation({"claims": change}, known)
    for change, known in (
        *((change, known) for known, change in own_masks.CHANGES),
        (lambda t: t & own_masks.own(t), hiding.itself_alone),
        (lambda t: t.mT, triangles.from_the_other_side),
        (lambda t: ~t, triangles.upside_down),
    )
)
NOT_CAUSAL = Deviation({"past": lambda n, m: None}, masks.not_causal)
