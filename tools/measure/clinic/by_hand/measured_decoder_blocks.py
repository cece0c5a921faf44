"""What decoder blocks make that are measured on, token by token.

Each function takes a block and what it is called with, by the same names.
"""

import torch

from tools.measure.clinic.by_hand.heads import (
    all_seen,
    asked,
    heard,
    swished,
    token_by_token,
)
from tools.measure.clinic.by_hand.pieces import (
    levelled,
    part_of,
    piece,
    squashed,
)


def celled(cell, state, told):
    """What a cell of PyTorch's own makes of its state and what it is told."""
    W, b = cell.weight_ih, cell.bias_ih
    r, z, fresh = (part_of(W, b, part, 3)(told) for part in range(3))
    W, b = cell.weight_hh, cell.bias_hh
    r_old, z_old, old = (part_of(W, b, part, 3)(state) for part in range(3))
    kept = squashed(z + z_old)
    fresh = torch.tanh(fresh + squashed(r + r_old) * old)
    return kept * state + (1 - kept) * fresh


def rows_ask_a_table_through_cells(
    m, rows, known, rows_use=None, known_use=None
):
    """Rows hear rows, then what is known; cells take each sublayer in."""
    b, n, _ = rows.shape
    seen = all_seen(rows, b, n, n)
    seen = seen if rows_use is None else seen & rows_use[:, None]
    table = all_seen(rows, b, 1, known.shape[1])[:, 0]
    table = table if known_use is None else known_use
    among, across, mlp = m.steps

    def ask(layer, x, others, row):
        keys = [piece(layer.k)(y) for y in others]
        values = [piece(layer.v)(y) for y in others]
        return piece(layer.o)(heard(piece(layer.q)(x), keys, values, row, 2))

    def say(text, i, row):
        x = [levelled(y, m.norms[0]) for y in rows[text]]
        told = ask(among, x[i], x, row)
        y = celled(m.cells[0], rows[text, i], told)
        told = ask(across, levelled(y, m.norms[1]), known[text], table[text])
        y = celled(m.cells[1], y, told)
        h = levelled(y, m.norms[2])
        fed = swished(piece(mlp.gate)(h)) * piece(mlp.value)(h)
        return celled(m.cells[2], y, piece(mlp.out)(fed))

    return token_by_token(say, seen)


def there(points, lengths):
    """(texts, points): which are no padding, of points in the first axis."""
    n, b, _ = points.shape
    if lengths is None:
        return all_seen(points, b, 1, n)[:, 0]
    return torch.arange(n, device=points.device) < lengths[:, None]


def points_that_lose_their_noise(
    m, points, shape, noise=None, n_points=None, n_shape=None
):
    """Behind each norm, noise stretches and shifts."""
    seen = there(points, n_points)[:, None].expand(-1, len(points), -1)
    outline = there(shape, n_shape)

    def bend(x, norm, text, first):
        x = levelled(x, norm)
        if noise is None:
            return x
        film = piece(m.film[1])(swished(noise[0, text])).chunk(6)
        return x * (1 + film[first]) + film[first + 1]

    def say(text, i, row):
        x = [bend(y, m.norm1, text, 0) for y in points[:, text]]
        y = points[i, text] + asked(m.self_attn, x[i], x, row, 2)
        h = bend(y, m.norm2, text, 2)
        y = y + asked(m.multihead_attn, h, shape[:, text], outline[text], 2)
        h = bend(y, m.norm3, text, 4)
        return y + piece(m.linear2)(piece(m.linear1)(h).clamp(min=0) ** 2)

    return token_by_token(say, seen).transpose(0, 1)


BLOCKS = {
    "decoder-block/points_that_lose_their_noise": points_that_lose_their_noise,
    "decoder-block/rows_ask_a_table_through_cells": (
        rows_ask_a_table_through_cells
    ),
}
