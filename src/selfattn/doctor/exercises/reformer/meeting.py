"""A prediction: how likely two vectors meet in a bucket."""

from selfattn.doctor.exercise import mistaken_value, prediction

NEAR, FAR = 60, 120  # degrees
ROUNDS = 3


def once(p: float, q: float) -> list[float]:
    """One round at the small angle; at least one of three at both."""
    return [p, 1 - (1 - p) ** ROUNDS, 1 - (1 - q) ** ROUNDS]


@mistaken_value
def whole_turn():
    """The angle is divided by a whole turn.

    Cause: 360° was taken for the angle at which two vectors never meet.
    Cure: They never meet at 180°, where they are opposite: 1 - θ/180°.
    """
    return once(1 - NEAR / 360, 1 - FAR / 360)


@mistaken_value
def parted():
    """These are the chances of the opposite.

    Cause: θ/π is how likely the border falls between the two.
    Cure: They meet if it does not: 1 - θ/π.
    """
    return once(NEAR / 180, FAR / 180)


@mistaken_value
def by_cosine():
    """The chance was taken to grow with the cosine.

    Cause: The score of a pair goes with the cosine of its angle; the chance
        that a random border parts it goes with the angle itself.
    Cure: 1 - θ/π.
    """
    return once((1 + 0.5) / 2, (1 - 0.5) / 2)


@mistaken_value
def in_every_round():
    """The last two are the chances of meeting in all rounds.

    Cause: The chances were multiplied: that is meeting each time.
    Cure: One meeting will do: 1 - (1 - p)³.
    """
    near, far = 1 - NEAR / 180, 1 - FAR / 180
    return [near, near**ROUNDS, far**ROUNDS]


@mistaken_value
def added():
    """The last two are sums, and a chance is at most 1.

    Cause: Rounds were added up, as if no pair met twice.
    Cure: 1 - (1 - p)³, one less the chance of missing each time.
    """
    near, far = 1 - NEAR / 180, 1 - FAR / 180
    return [near, ROUNDS * near, ROUNDS * far]


@mistaken_value
def missed_each_time():
    """The last two are the chances of never meeting.

    Cause: (1 - p)³ is missing each time.
    Cure: Take it from 1.
    """
    near, far = 1 - NEAR / 180, 1 - FAR / 180
    return [near, (1 - near) ** ROUNDS, (1 - far) ** ROUNDS]


@mistaken_value
def rounds_ignored():
    """Three rounds are counted as one.

    Cause: A draw is repeated, and each repetition gives another chance.
    Cure: 1 - (1 - p)³.
    """
    near, far = 1 - NEAR / 180, 1 - FAR / 180
    return [near, near, far]


MEETING = prediction(
    "reformer/meeting",
    asks="three chances that two vectors meet in a bucket",
    solution=once(1 - NEAR / 180, 1 - FAR / 180),
    mistakes=(
        whole_turn,
        parted,
        by_cosine,
        in_every_round,
        added,
        missed_each_time,
        rounds_ignored,
    ),
)
