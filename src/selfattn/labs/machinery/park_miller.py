"""Numbers that look drawn, and are the same in Python and on the page."""


def fixed_numbers(state: int, count: int) -> list[float]:
    """So many numbers, each -1.5, -1, … or 1.5, of variance one.

    From the generator of Park and Miller (1988), whose arithmetic is exact in
    JavaScript's numbers too.

    Args:
        state: where to start, between 1 and 2^31 - 2.
        count: how many.

    >>> fixed_numbers(1, 4)
    [-1.5, -1.5, -0.5, 1.5]
    """
    numbers = []
    for _ in range(count):
        state = state * 16807 % 2147483647
        numbers.append((state % 7 - 3) / 2)
    return numbers
