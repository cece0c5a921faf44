"""PyTorch's own of the same weights: what rounding costs it, it may cost us.

Under autocast a ReLU's input that is a rounding from zero takes one way or
the other, in whatever implementation; and a gradient with it, wholly. So it
is no matter of a tolerance: twice PyTorch's own error is allowed, on the same
inputs and weights, under the same autocast.
"""

from collections.abc import Callable

from torch import Tensor, nn

from hostile.feeding import Call
from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.masks import causal_mask
from selfattn.models import VisionTransformer


def encoder_layer(block: EncoderBlock, x: Tensor) -> Tensor:
    """What PyTorch's encoder layer makes of the tokens."""
    theirs = layer(nn.TransformerEncoderLayer, block)
    theirs.self_attn = block.attention.to_torch()
    return theirs(x)


def decoder_layer(block: DecoderBlock, x: Tensor, memory: Tensor) -> Tensor:
    """What PyTorch's decoder layer makes of tokens and memory."""
    theirs = layer(nn.TransformerDecoderLayer, block)
    theirs.self_attn = block.attention.to_torch()
    theirs.multihead_attn = block.cross.to_torch()
    return theirs(x, memory, tgt_mask=~causal_mask(*x.shape[1:2] * 2))


def vision(model: VisionTransformer, images: Tensor) -> Tensor:
    """A class from PyTorch's encoder layers, on our patches."""
    x = model.encoder.embed(images)
    for block in model.encoder.blocks:
        x = encoder_layer(block, x)
    return model.head(model.encoder.norm(x)[:, 0])


def layer(kind: type[nn.Module], block: nn.Module) -> nn.Module:
    """PyTorch's, with our norms and our feed-forward network in it; in
    training, as its shortcut for what is not trained rounds otherwise.
    """
    d_ff, d_model = block.feed_forward.W_in.weight.shape
    theirs = kind(
        d_model,
        block.attention.n_heads,
        d_ff,
        dropout=0.0,
        batch_first=True,
        norm_first=block.add_norm_1.pre,
    ).to(block.feed_forward.W_in.weight.dtype)
    theirs.linear1 = block.feed_forward.W_in
    theirs.linear2 = block.feed_forward.W_out
    for name, path in block.named_children():
        if name.startswith("add_norm_"):
            norm = getattr(theirs, name.replace("add_norm_", "norm"))
            norm.weight, norm.bias = path.norm.gain, path.norm.shift
            norm.eps = path.norm.eps
    return theirs.train()


TWINS: dict[str, Callable[..., Tensor]] = {
    "blocks.DecoderBlock.forward": decoder_layer,
    "blocks.EncoderBlock.forward": encoder_layer,
    "models.vision.VisionTransformer.forward": vision,
}


def twin_of(call: Call) -> Callable[[Call], Tensor] | None:
    """PyTorch's own, to be given the same call; None if there is none."""
    twin = TWINS.get(call.target.name)
    return twin and (lambda given: twin(given.module, **given.given))
