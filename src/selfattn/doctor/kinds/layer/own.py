"""What is said of a layer besides how it is called."""

from typing import NamedTuple

from selfattn.doctor.kinds.attention.formula import Formula
from selfattn.doctor.kinds.layer.between import Inner
from selfattn.doctor.patient import Facts


class Own(NamedTuple):
    """What else is said of a layer: of its maps, its reach, its formula."""

    order: str = "qkv"
    turned: bool = False  # whether its bare matrices are of (out, in)
    longest: int | None = None
    formula: Formula = Formula()
    empty: bool = False  # whether it was told what an empty row becomes
    inner: Inner | None = None  # what is found in it, if it is its own

    @property
    def held(self) -> tuple[str, bool]:
        """How it holds its matrices."""
        return self.order, self.turned


def told_of(facts: Facts) -> Own:
    """What else is told of a layer."""
    return Own(
        order=facts.get("order") or "qkv",
        turned=facts.get("matrices") == "out, in",
        longest=facts.get("longest"),
        formula=Formula(
            scale=facts.get("scale"),
            cap=facts.get("cap"),
            cosine=facts.get("scores") == "cosine",
            bias=facts.get("bias"),
        ),
        # Whose causal mask is filled otherwise averages the past alone.
        empty=facts.get("empty_row") is not None and not facts["causal"],
    )
