"""Forwards and backwards, as in a course on automatic differentiation."""

import torch


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, dim):
        ctx.dim = dim
        shifted = t - t.max(dim=dim, keepdim=True)[0]
        e = shifted.exp_()
        y = e.div_(e.sum(dim=dim, keepdim=True))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        inner = torch.sum(y * dy, dim=ctx.dim, keepdim=True)
        return y * (dy - inner), None


def softmax(t, dim):
    return Softmax.apply(t, dim)


PATIENT = softmax
FACTS = {"axis": "dim", "empty_row": "nan"}
INPUTS = {"t": "b n m", "dim": "int -1"}
LOUDEST = 1000
