"""Which of a callable's first arguments are its queries, keys and values."""

from collections.abc import Sequence


def queries_keys_values(listed: Sequence[str]) -> list[str] | None:
    """The names of the first three, in this order, if they begin as those do.

    They may come in any order, and with a line before them.

    >>> queries_keys_values(["value", "_key", "query", "mask"])
    ['query', '_key', 'value']
    """
    first = {name.lstrip("_")[:1].lower(): name for name in listed[2::-1]}
    three = sorted(first) == ["k", "q", "v"]
    return [first[part] for part in "qkv"] if three else None
