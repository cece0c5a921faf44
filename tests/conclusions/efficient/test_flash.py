"""Where the conclusions of the page on FlashAttention hold."""

from functools import cache

import torch
from torch.testing import assert_close

from selfattn import attention_weights, flash_attention
from selfattn.cost import peak_bytes


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def one_row(scores, values, cuts):
    """What the three running numbers give for one query."""
    m = torch.tensor(torch.finfo(scores.dtype).min, dtype=scores.dtype)
    total, summed = 0.0, torch.zeros(values.shape[-1], dtype=values.dtype)
    for s, v in zip(scores.split(cuts), values.split(cuts), strict=True):
        larger = torch.maximum(m, s.max())
        shrink, power = (m - larger).exp(), (s - larger).exp()
        total = shrink * total + power.sum()
        summed = shrink * summed + power @ v
        m = larger
    return summed / total


def test_any_order_and_any_cut_give_softmax_attention():
    values = draw(11, 3)
    for scores in (draw(11), 100 * draw(11), draw(11) - 60_000):
        judge = scores.softmax(0) @ values
        for cuts in ([11], [1] * 11, [5, 6], [2, 7, 1, 1]):
            order = torch.randperm(11)
            assert_close(one_row(scores[order], values[order], cuts), judge)


def test_the_sum_over_keys_is_a_dot_product():
    q, k, v, above = draw(5, 7), draw(11, 7), draw(11, 3), draw(5, 3)
    weights = attention_weights(q, k)
    sums = (weights * (above @ v.T)).sum(dim=-1)
    assert_close((above * (weights @ v)).sum(dim=-1), sums)


class Slow:
    """A memory that counts what is read from it and written to it."""

    moved = 0

    def read(self, x):
        """A copy in the fast memory."""
        self.moved += x.numel()
        return x.clone()

    def write(self, place, x):
        """Back to where it came from."""
        self.moved += x.numel()
        place.copy_(x)


def words_moved(n, d, M):
    """By the paper's algorithm 1, executed and compared with attention."""
    slow, (q, k, v) = Slow(), draw(3, n, d)
    B_c = -(-M // (4 * d))
    B_r = min(B_c, d)
    output, total = torch.zeros_like(q), torch.zeros(n, 1).double()
    m = q.new_full((n, 1), torch.finfo(q.dtype).min)
    for start in range(0, n, B_c):
        keys, values = (slow.read(x[start : start + B_c]) for x in (k, v))
        for first in range(0, n, B_r):
            here = slice(first, first + B_r)
            rows, o, length, top = map(
                slow.read, (q[here], output[here], total[here], m[here])
            )
            s = rows @ keys.T / d**0.5
            larger = torch.maximum(top, s.amax(dim=-1, keepdim=True))
            shrink = length * (top - larger).exp()
            power = (s - larger).exp()
            now = shrink + power.sum(dim=-1, keepdim=True)
            slow.write(output[here], (shrink * o + power @ values) / now)
            slow.write(total[here], now)
            slow.write(m[here], larger)
    assert_close(output, attention_weights(q, k) @ v)
    return slow.moved


def test_the_border_lies_between_two_and_four_widths_squared(setting, runs):
    n, d = setting["n"], setting["d"]
    naive_way = 4 * n * d + 4 * n**2
    assert words_moved(n, d, 2 * d**2) > naive_way
    assert words_moved(n, d, 4 * d**2) < naive_way


def naive(q, k, v):
    """Attention as one would write it down."""
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v


def by_tiles(q, k, v, tile):
    """Both loops, and autograd for the way back."""
    outputs = []
    for rows in q.split(tile):
        m = rows.new_full((len(rows), 1), torch.finfo(q.dtype).min)
        total, summed = torch.zeros_like(m), 0.0
        for keys, values in zip(k.split(tile), v.split(tile), strict=True):
            s = rows @ keys.mT / q.shape[-1] ** 0.5
            larger = torch.maximum(m, s.amax(dim=-1, keepdim=True))
            shrink, power = (m - larger).exp(), (s - larger).exp()
            total = shrink * total + power.sum(dim=-1, keepdim=True)
            summed = shrink * summed + power @ values
            m = larger
        outputs.append(summed / total)
    return torch.cat(outputs)


@cache  # the plain form is asked for once, not once for every tile
def training(n, d, f, **options):
    """Bytes alive at the most, there and back: the numbers do not matter."""
    x = torch.zeros(3, n, d, requires_grad=True)
    return peak_bytes(lambda: f(*x, **options).sum().backward())


def test_tiles_through_autograd_are_all_kept(setting, runs):
    n, d = setting["n"], setting["d"]
    tile = n // setting["tiles_on_a_side"]
    kept = training(n, d, by_tiles, tile=tile)
    assert kept > 2 / 3 * training(n, d, naive)
    anew = training(n, d, flash_attention, block_q=tile, block_k=tile)
    assert anew < 0.75 * kept
