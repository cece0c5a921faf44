"""Ways in which a layer may hold its matrices, each brought into one."""

import torch


def maps(*names):
    """Four linear maps by their names."""
    return lambda m: [pair(m.get_submodule(name)) for name in names]


def pair(linear):
    """Matrix, to be multiplied from the right, and shift."""
    return linear.weight.mT, shift(linear)


def shift(linear):
    """What a map adds, if nothing else then zeros."""
    if linear.bias is not None:
        return linear.bias
    return torch.zeros(linear.weight.shape[0], dtype=linear.weight.dtype)


def of_width_one(conv):
    """The map that a convolution of width one is."""
    return conv.weight[:, :, 0].mT, shift(conv)


def times(gains, W, b):
    """A map behind which each feature is multiplied by a number."""
    return W * gains, b * gains


def of_axes(dense, n_in):
    """A kernel whose first n_in axes come in and whose others go out."""
    return of_kernel(dense.kernel, dense.bias, n_in)


def of_kernel(W, b, n_in):
    """The same of a kernel and a shift that no module holds together."""
    return W.reshape(W.shape[:n_in].numel(), -1), b.reshape(-1)


def of_library(m):
    """What PyTorch's own layer has, its matrices apart or in one."""
    shifts = m.in_proj_bias.chunk(3)
    matrices = m.q_proj_weight, m.k_proj_weight, m.v_proj_weight
    if m.in_proj_weight is not None:
        matrices = m.in_proj_weight.chunk(3)
    three = zip((W.mT for W in matrices), shifts, strict=True)
    return [*three, pair(m.out_proj)]


def cut(linear, *order):
    """A fused map, cut into equal parts, brought into our order."""
    return parts(*pair(linear), *order)


def parts(W, b, *order):
    """A matrix and a shift, cut likewise."""
    n = len(order)
    cuts = list(zip(W.chunk(n, 1), b.chunk(n), strict=True))
    return [cuts[order.index(name)] for name in sorted(order, key="qkv".find)]


def cut_by_head(linear, heads):
    """A fused map that holds q, k and v of a head beside each other."""
    W, b = pair(linear)
    W = W.unflatten(1, (heads, 3, -1))
    b = b.unflatten(0, (heads, 3, -1))
    return [(W[:, :, i].flatten(1), b[:, i].flatten()) for i in range(3)]


def cut_by_group(linear, groups, sizes):
    """A fused map that holds q, k and v of a group beside each other."""
    W, b = pair(linear)
    W = W.unflatten(1, (groups, sum(sizes), -1)).split(sizes, 2)
    b = b.unflatten(0, (groups, sum(sizes), -1)).split(sizes, 1)
    return [(w.flatten(1), s.flatten()) for w, s in zip(W, b, strict=True)]


def joined(linears):
    """The maps of all heads as one."""
    pairs = [pair(linear) for linear in linears]
    return tuple(torch.cat(parts, -1) for parts in zip(*pairs, strict=True))


def of_parameters(m):
    """Matrices with an axis for the heads."""
    q, k, v = (W.transpose(0, 1).flatten(1) for W in (m.W_Q, m.W_K, m.W_V))
    none, W_o = torch.zeros(q.shape[1]).double(), m.W_O.flatten(0, 1)
    zero = torch.zeros(W_o.shape[1]).double()
    return [(q, m.b_Q.flatten()), (k, none), (v, none), (W_o, zero)]


def of_one_vector(theta, d, heads):
    """Queries, keys, values and the way out, one behind the other in one."""
    *three, W_o = theta[: 4 * d * d].split(d * d)
    three = [
        W.view(heads, d, d // heads).transpose(0, 1).flatten(1) for W in three
    ]
    return [*((W, 0) for W in three), (W_o.view(d, d), theta[4 * d * d :])]


def of_one_for_two(m):
    """A matrix of queries that are keys as well, and of values."""
    W, b = m.in_proj_weight.mT, m.in_proj_bias
    q, v = parts(W, b, *"qv")
    return [q, q, v, pair(m.out_proj)]
