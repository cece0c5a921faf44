"""Mistakes in what is handed back, and in what was handed over."""

from selfattn.doctor.exercise import mistake


@mistake
def changed_in_place():
    """It writes into what belongs to the caller.

    Cause: +=, *=, an assignment to a part, or a method whose name ends in _.
    Cure: Make a new tensor.
    """


@mistake
def axes_in_another_order():
    """The numbers are right, and two axes are exchanged.

    Cause: The last step puts the axes in another order: a transpose too many
        or too few, or the letters behind the arrow of an einsum.
    Cure: The axes in which the values came.
    """
