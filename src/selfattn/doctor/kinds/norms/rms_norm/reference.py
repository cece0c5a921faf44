"""RMSNorm, as it should be."""


def normal(x, gain, eps):
    """Divide by the root of the mean square, in float32 at least."""
    wide = x.float() if x.element_size() < 4 else x
    square = wide.square().mean(dim=-1, keepdim=True)
    return (wide / (square + eps).sqrt() * gain).to(x.dtype)
