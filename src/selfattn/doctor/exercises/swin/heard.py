"""A prediction: how many tokens an output depends on, window by window."""

from selfattn.doctor.exercise import mistaken_value, prediction

SIDE, SHIFT = 7, 2
LAYERS = (1, 2, 3)
# The window's side after each number of layers, and, not shifted, after the
# last of them.
RIGHT = [(SIDE * layers) ** 2 for layers in LAYERS]


@mistaken_value
def along_one_side():
    """These are tokens along one side.

    Cause: A picture has two directions, and a window reaches in both.
    Cure: Square them.
    """
    return [*(SIDE * layers for layers in LAYERS), SIDE]


@mistaken_value
def by_the_shift():
    """Each layer was taken to add the shift on both sides.

    Cause: The shift is how far the windows move. What is gained is every
        window that touches what was heard before: a whole window's width.
    Cure: w more along each side with every layer.
    """
    sides = [SIDE + 2 * SHIFT * (layers - 1) for layers in LAYERS]
    return [*(side**2 for side in sides), SIDE**2]


@mistaken_value
def as_sliding_windows():
    """That is the reach of windows that slide.

    Cause: A sliding window adds w - 1 with every layer, in each direction.
    Cure: These windows stand still, in two places: w more along each side.
    """
    sides = [(SIDE - 1) * layers + 1 for layers in LAYERS]
    return [*(side**2 for side in sides), SIDE**2]


@mistaken_value
def areas_added():
    """The windows' areas were added up.

    Cause: Each layer was taken to add one window's tokens.
    Cure: It adds w along each side: (wL)², not w²L.
    """
    return [*(SIDE**2 * layers for layers in LAYERS), SIDE**2]


@mistaken_value
def grows_without_a_shift():
    """Without a shift it does not grow.

    Cause: The last number was counted as the one before it.
    Cure: The same windows in every layer: nothing ever comes in.
    """
    return [*RIGHT, RIGHT[-1]]


@mistaken_value
def doubles():
    """Each layer was taken to double the side.

    Cause: The second layer does. The third adds as much as the second did.
    Cure: w more along each side with every layer.
    """
    sides = [SIDE * 2 ** (layers - 1) for layers in LAYERS]
    return [*(side**2 for side in sides), SIDE**2]


@mistaken_value
def second_layer_free():
    """Your second layer adds nothing.

    Cause: The shift was taken to exchange tokens only, so that the count
        stays.
    Cure: Those that come in had heard their own windows before.
    """
    sides = [SIDE, SIDE, 2 * SIDE]
    return [*(side**2 for side in sides), SIDE**2]


HEARD = prediction(
    "swin/heard",
    asks="on how many tokens an output depends, after 1, 2 and 3 layers with "
    "a shift, and after 3 without",
    solution=[*RIGHT, SIDE**2],
    mistakes=(
        along_one_side,
        by_the_shift,
        as_sliding_windows,
        areas_added,
        grows_without_a_shift,
        doubles,
        second_layer_free,
    ),
)
