"""For speech: what is cheap is computed again for the gradient, not kept."""

import torch
from torch import nn
from torch.autograd.function import once_differentiable


def standard(frames, eps):
    var, mean = torch.var_mean(frames, -1, correction=0, keepdim=True)
    rate = (var + eps).rsqrt()
    return (frames - mean) * rate, rate


class NormOfFrames(torch.autograd.Function):
    @staticmethod
    def forward(ctx, frames, gamma, beta, eps):
        ctx.save_for_backward(frames, gamma)
        ctx.eps = eps
        z, _ = standard(frames, eps)
        return torch.addcmul(z + beta, z, gamma)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        frames, gamma = ctx.saved_tensors
        z, rate = standard(frames, ctx.eps)
        rest = tuple(range(grad.ndim - 1))
        of_beta = grad.sum(rest) if rest else grad
        of_gamma = (grad * z).sum(rest) if rest else grad * z
        g = torch.addcmul(grad, grad, gamma)
        along = z * (g * z).mean(-1, keepdim=True)
        of_frames = rate * (g - g.mean(-1, keepdim=True) - along)
        return of_frames, of_gamma, of_beta, None


class FrameNorm(nn.Module):
    """Gains are kept as what they differ from one by."""

    def __init__(self, channels, eps=1e-8):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, frames):
        return NormOfFrames.apply(frames, self.gamma, self.beta, self.eps)


PATIENT = FrameNorm(channels=6)
FACTS = {"eps": 1e-8, "gain": "one plus", "dtypes": ("float64", "float32")}
INPUTS = {"frames": "b n 6"}
OTHER_INPUTS = ({"frames": "n 6"}, {"frames": "b h n 6"})
