"""The pieces of which what a layer says to one query is made by hand."""

import math

import torch


def piece(linear, i=0, n=1):
    """One of n equal parts of a linear map, for a single token."""
    return part_of(linear.weight, linear.bias, i, n)


def pixel(conv, i=0, n=1):
    """The same of a convolution of width one."""
    return part_of(conv.weight[:, :, 0], conv.bias, i, n)


def part_of(W, b, i, n):
    """One of n equal parts of a matrix and a shift, for a single token."""
    W = W.chunk(n)[i]
    if b is None:
        return lambda x: W @ x
    b = b.chunk(n)[i]
    return lambda x: W @ x + b


def bent(x):
    """Numbers times how likely a chance number is smaller."""
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def shares(scores, seen):
    """The exponentials of what is seen, made to sum to one."""
    scores = torch.stack(scores)
    found = torch.exp(scores[seen] - scores[seen].max())
    weights = torch.zeros_like(scores)
    weights[seen] = found / found.sum()
    return weights


def mixture(weights, values):
    """The sum of all values, each times its weight."""
    return sum(w * v for w, v in zip(weights, values, strict=True))


def squashed(x):
    """Numbers between 0 and 1."""
    return 1 / (1 + torch.exp(-x))


def standard(x, eps=1e-5):
    """Features with mean 0 and spread 1."""
    return of_size_one(x - x.sum() / len(x), eps)


def of_size_one(x, eps):
    """Features with a root mean square of 1."""
    return x / (x @ x / len(x) + eps) ** 0.5


def levelled(x, norm, eps=1e-5):
    """Features with mean 0 and spread 1, then stretched and shifted."""
    return standard(x, eps) * norm.weight + norm.bias


def normed(x, norm):
    """The same, with what the norm itself adds under the root."""
    return levelled(x, norm, norm.eps)


def sized(x, norm):
    """Features with a root mean square of 1, then stretched."""
    return of_size_one(x, norm.eps) * norm.weight


def waves(far, width):
    """A sine and a cosine of a distance, for each two features."""
    angles = [far / 1e4 ** (f / width) for f in range(0, width, 2)]
    pairs = [(math.sin(angle), math.cos(angle)) for angle in angles]
    return torch.tensor(pairs, dtype=torch.float64).flatten()


def turned(x, place, base):
    """Features, each turned with its partner in the other half."""
    half = len(x) // 2
    return turned_by(x, [place / base ** (f / half) for f in range(half)])


def turned_by(x, angles):
    """The same, each pair by an angle that is given."""
    half = len(x) // 2
    found = torch.empty_like(x)
    for f, angle in enumerate(angles):
        a, b = x[f], x[f + half]
        found[f] = a * math.cos(angle) - b * math.sin(angle)
        found[f + half] = a * math.sin(angle) + b * math.cos(angle)
    return found
