"""What a mechanism looks like: each function draws one picture of numbers.

They take plain lists, compute nothing, and return a
`selfattn.plots.drawing.Drawing`, whose ``data`` is what they were given.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from selfattn.plots.drawing import CELL, SIZE, WIDTH, Drawing, Real

Table = Sequence[Sequence[Real]]
WIDE, HIGH = CELL
TILE = 46  # as wide as a score with its sign
MIDDLE = WIDTH / 2
SIDES = ("q", "k", "v", "faint")  # colours to tell heads apart


def flow(
    q: Table, k: Table, v: Table, scaled: Table, weights: Table, output: Table
) -> Drawing:
    """From queries, keys and values down to the output, with numbers."""
    high = 140 + HIGH * (len(q) + 2 * len(scaled))
    picture = Drawing(
        "flow", high, q=q, k=k, v=v, weights=weights, output=output
    )
    third = WIDTH / 3
    made_of(picture, q, k, v)
    under = 26 + HIGH * len(q)
    left = third - WIDE * len(scaled[0]) / 2
    for x in (third / 2, 1.5 * third):
        picture.line((x, under), (third, under + 26), arrow=True)
    picture.table(left, under + 40, scaled, title="QKᵀ / √d", digits=2)
    below = under + 56 + HIGH * len(scaled)
    picture.line((third, below), (third, below + 26), arrow=True)
    picture.text(third + 8, below + 12, "softmax of each row", anchor="start")
    picture.table(
        left, below + 40, weights, title="weights", shaded=True, digits=2
    )
    right = 2.5 * third - WIDE * len(output[0]) / 2
    middle = below + 53 + HIGH * len(weights) / 2
    picture.line((2.5 * third, under), (2.5 * third, below + 26), arrow=True)
    after = left + WIDE * len(weights[0]) + 6
    picture.line((after, middle), (right - 6, middle), arrow=True)
    look: dict[str, Any] = {"title": "output", "colour": "ink", "digits": 2}
    picture.table(right, below + 40, output, **look)
    return picture


def made_of(picture: Drawing, q: Table, k: Table, v: Table) -> None:
    """Queries, keys and values side by side, on top."""
    for place, (rows, name, colour) in enumerate(
        [(q, "Q", "q"), (k, "K", "k"), (v, "V", "v")]
    ):
        left = WIDTH / 3 * (place + 0.5) - WIDE * len(rows[0]) / 2
        picture.table(left, 10, rows, title=name, colour=colour, digits=0)


def split(rows: Table, n_heads: int) -> Drawing:
    """A table cut into heads, features in blocks, and joined again."""
    check_heads(n_heads, len(rows[0]))
    tokens, d = len(rows), len(rows[0]) // n_heads
    picture = Drawing("split", 108 + 3 * HIGH * tokens + 60, rows=rows)
    owners = [SIDES[j // d] for j in range(len(rows[0]))]
    left = MIDDLE - WIDE * len(rows[0]) / 2
    deep = SIZE + HIGH * tokens
    picture.table(
        left, 10, rows, title="one row a token", columns=owners, digits=0
    )
    gap = (WIDTH - WIDE * d * n_heads) / (n_heads + 1)
    for head in range(n_heads):
        cut = [row[head * d : (head + 1) * d] for row in rows]
        x = gap * (head + 1) + WIDE * d * head
        title, colour = f"head {head + 1}", SIDES[head]
        picture.table(x, deep + 54, cut, title=title, colour=colour, digits=0)
        middle, start = x + WIDE * d / 2, left + WIDE * d * (head + 0.5)
        down = ((start, deep + 14), (middle, deep + 42))
        picture.line(*down, arrow=True)
        up = ((middle, 2 * deep + 58), (start, 2 * deep + 86))
        picture.line(*up, arrow=True)
    picture.table(
        left, 2 * deep + 98, rows, title="merged", columns=owners, digits=0
    )
    return picture


def check_heads(n: int, shared: int) -> None:
    """Raise unless so many heads share this evenly: what is left over would
    not be drawn, or drawn as another's.
    """
    if n < 1 or shared % n:
        raise ValueError(f"heads share {shared} evenly, but there are {n}")


def answers(
    tokens: Sequence[str],
    arms: Mapping[str, Sequence[tuple[str, Sequence[Real], Sequence[Real]]]],
) -> Drawing:
    """What each row of weights brings: the answers of an arm side by side.

    Args:
        tokens: what the columns of the weights are called.
        arms: of each, its rows: a row's name, its weights and its answer.
    """
    step, room = HIGH + 12, 66
    high = sum(room + step * (len(rows) - 1) + 16 for rows in arms.values())
    picture = Drawing("answers", high - 12, tokens=tokens, arms=dict(arms))
    left, top = 49.0, 0.0
    for title, rows in arms.items():
        picture.text(MIDDLE, top + 10, title, bold=True)
        for j, token in enumerate(tokens):
            picture.text(left + WIDE * (j + 0.5), top + 32, token)
        first = top + 43
        x = left + WIDE * len(tokens) + 20
        for i, (name, weights, answer) in enumerate(rows):
            y, colour = first + step * i, SIDES[i]
            picture.text(2, y + HIGH / 2, name, anchor="start")
            picture.row(left, y, weights, [colour] * len(weights), shaded=True)
            picture.row(x, first, answer, [colour] * len(answer))
            start = (left + WIDE * len(weights) + 3, y + HIGH / 2)
            end, under = (x - 3, y + HIGH / 2), x + WIDE * len(answer) / 2
            up = (under, y + HIGH / 2), (under, first + HIGH + 3)
            picture.line(start, *(up if i else (end,)), arrow=True)
            x += WIDE * len(answer)
        top += room + step * (len(rows) - 1) + 16
    return picture


def sharing(arms: Mapping[str, tuple[int, int]]) -> Drawing:
    """Which query heads read which head of keys: query heads, key heads."""
    for queries, keys in arms.values():
        check_heads(keys, queries)
    picture = Drawing("sharing", 30 + 96 * len(arms), arms=dict(arms))
    picture.legend({"query head": (46, "q"), "key and value head": (170, "k")})
    for place, (name, (queries, keys)) in enumerate(arms.items()):
        top, side = 30 + 96 * place, 20
        picture.text(MIDDLE, top + 12, name, bold=True)
        for head in range(queries):
            x = WIDTH / queries * (head + 0.5)
            shared = head // (queries // keys)
            below = WIDTH / keys * (shared + 0.5)
            picture.line((x, top + 44), (below, top + 66), colour="k")
            picture.box(x - 10, top + 24, side, side, colour="q", shade=0.6)
        for head in range(keys):
            x = WIDTH / keys * (head + 0.5)
            picture.box(x - 10, top + 66, side, side, colour="k", shade=0.6)
    return picture


def block(norm: str) -> Drawing:
    """A block with its path past each sublayer; the norm "pre" or "post"."""
    if norm not in ("pre", "post"):
        raise ValueError(f'norm must be "pre" or "post", but it is {norm!r}')
    picture = Drawing(f"block-{norm}", 378, norm=norm)
    x, path, y = MIDDLE, MIDDLE + 92, 22.0
    picture.text(x, 12, "x", bold=True)
    for name, colour in (("attention", "q"), ("feed-forward", "v")):
        parts = [("norm", "faint"), (name, colour), ("+", "ink")]
        if norm == "post":
            parts = [*parts[1:], parts[0]]
        fork = y + 8
        for words, look in parts:
            picture.line((x, y), (x, y + 20), arrow=True)
            wide = 28 if words == "+" else 120
            shade = 0.35 if look in "qv" else 0.0
            left = x - wide / 2
            picture.box(left, y + 20, wide, 28, colour=look, shade=shade)
            picture.text(x, y + 34, words)
            if words == "+":
                up, end = (path, y + 34), (x + 18, y + 34)
                past = (x, fork), (path, fork), up, end
                picture.line(*past, width=2.5, colour="ink", arrow=True)
            y += 48
        picture.text(path + 8, fork + 46, "path", anchor="start")
    picture.line((x, y), (x, y + 22), arrow=True)
    picture.text(x, y + 34, "output", bold=True)
    picture.text(8, 12, f"{norm}-norm", anchor="start", bold=True)
    return picture


def who_sees_whom(masks: Mapping[str, Sequence[Sequence[bool]]]) -> Drawing:
    """A line from each query, above, to each key that it may look at."""
    rows = math.ceil(len(masks) / 2)
    picture = Drawing("who-sees-whom", 130 * rows, masks=dict(masks))
    for place, (name, mask) in enumerate(masks.items()):
        left, top = (place % 2) * MIDDLE, 130 * (place // 2)
        n = max(len(mask), len(mask[0]))
        step = (MIDDLE - 20) / n
        picture.text(left + MIDDLE / 2, top + 12, name, bold=True)

        def at(position: int, left: Real = left, step: Real = step) -> Real:
            return left + 10 + step * (position + 0.5)

        first = len(mask[0]) - len(mask)  # the last sits on the last
        for i, row in enumerate(mask):
            for j, may in enumerate(row):
                if may:
                    ends = (at(i + first), top + 42), (at(j), top + 98)
                    picture.line(*ends, width=1.2)
        for i in range(len(mask)):
            x = at(i + first) - 6
            picture.box(x, top + 30, 12, 12, colour="q", shade=1)
        for j in range(len(mask[0])):
            picture.box(at(j) - 6, top + 98, 12, 12, colour="k", shade=1)
    return picture


def planes(angles: Sequence[Real], query: int, key: int) -> Drawing:
    """RoPE: a clock for each pair of features, a hand for query and key.

    Args:
        angles: how far each pair turns a position, in radians.
        query: the query's position.
        key: the key's.
    """
    picture = Drawing("planes", 128, angles=angles, query=query, key=key)
    step = WIDTH / len(angles)
    r = min(34.0, step / 2 - 6)
    for pair, angle in enumerate(angles):
        x, y = step * (pair + 0.5), 54
        picture.text(x, 8, f"pair {pair}", bold=True)
        picture.circle(x, y, r, colour="faint")
        for position, colour in ((key, "k"), (query, "q")):
            turn = position * angle
            end = (x + r * math.cos(turn), y - r * math.sin(turn))
            picture.line((x, y), end, colour=colour, width=3)
        away = math.degrees((query - key) * angle)
        picture.text(x, 104, f"{away:.0f}° apart")
    return picture


def cache(steps: int) -> Drawing:
    """Each step adds a key and a value; its one query reads them all."""
    picture = Drawing("cache", 24 + 34 * steps, steps=steps)
    picture.text(28, 10, "query", bold=True)
    picture.text(120, 10, "keys and values", bold=True, anchor="start")
    for step in range(steps):
        y, side = 24 + 34 * step, 22
        picture.box(17, y, side, side, colour="q", shade=0.8)
        picture.line((46, y + 11), (112, y + 11), arrow=True)
        for place in range(step + 1):
            shade = 0.9 if place == step else 0.25
            x = 120 + 26 * place
            picture.box(x, y, side, side / 2, colour="k", shade=shade)
            picture.box(x, y + 11, side, side / 2, colour="v", shade=shade)
    return picture


def tiles(
    scores: Table, largest: Sequence[Real], sums: Sequence[Real]
) -> Drawing:
    """One row's scores, tile by tile, and what is kept after each.

    Args:
        scores: the scores of each tile.
        largest: the largest score so far, after each tile.
        sums: the sum of the exponentials so far, after each.
    """
    picture = Drawing(
        "tiles", 58 * len(scores) - 6, largest=largest, sums=sums
    )
    picture.text(80, 10, "scores of a tile", bold=True)
    picture.text(262, 10, "kept after it", bold=True)
    for place, tile in enumerate(scores):
        y = 24 + 58 * place
        for j, score in enumerate(tile):
            x = 80 + TILE * (j - len(tile) / 2)
            picture.box(x, y, TILE, HIGH, colour="k", shade=0.25)
            words = f"{score:.2f}".replace("-", "−")
            picture.text(x + TILE / 2, y + HIGH / 2, words)
        picture.line((144, y + 11), (178, y + 11), arrow=True)
        most = f"{largest[place]:.2f}".replace("-", "−")
        kept = f"m = {most}, ℓ = {sums[place]:.2f}"
        picture.box(184, y, 152, HIGH, colour="ink")
        picture.text(260, y + HIGH / 2, kept)
        if place + 1 < len(scores):
            picture.line((260, y + HIGH), (260, y + 58), arrow=True)
            again = math.exp(largest[place] - largest[place + 1])
            told = f"ℓ and output × {again:.2f}"
            picture.text(254, y + 40, told, anchor="end")
    return picture
