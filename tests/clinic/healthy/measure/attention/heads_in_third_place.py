"""Large models on many cards: tokens, texts, heads, and a layer's number."""

import math

import torch


def fill_masked(scores, mask):
    return scores.masked_fill(mask, -10000.0)


def to_batch(x):
    """[s, b, np, hn] -> [b * np, s, hn]"""
    return x.flatten(1, 2).transpose(0, 1)


class CoreAttention(torch.nn.Module):
    """Layers further up divide by their number before, and multiply after,
    so that products stay within what half precision can hold.
    """

    def __init__(self, layer_number, scale_by_layer=True, mask_func=None):
        super().__init__()
        self.coeff = max(1, layer_number) if scale_by_layer else 1
        self.mask_func = mask_func or fill_masked
        self.softmax = torch.nn.Softmax(dim=-1)

    def forward(self, query_layer, key_layer, value_layer, attention_mask):
        sq, b, np, hn = query_layer.shape
        norm_factor = math.sqrt(hn) * self.coeff

        scores = torch.bmm(
            to_batch(query_layer) / norm_factor,
            to_batch(key_layer).transpose(1, 2),
        )
        scores = scores.unflatten(0, (b, np)) * self.coeff  # [b, np, sq, sk]
        if attention_mask is not None:
            scores = self.mask_func(scores, attention_mask)
        probs = self.softmax(scores)

        context = torch.bmm(probs.flatten(0, 1), to_batch(value_layer))
        # [b * np, sq, hn] -> [sq, b, np, hn]
        context = context.view(b, np, sq, -1)
        return context.permute(2, 0, 1, 3).contiguous()


PATIENT = CoreAttention(layer_number=3)
FACTS = {
    "layout": "NBHD",
    "mask": "block",
    "mask_axes": "B1NN",
    "empty_row": "average",
}
INPUTS = {
    "query_layer": "n b h d",
    "key_layer": "m b h d",
    "value_layer": "m b h e",
    "attention_mask": "block b 1 n m",
}
LOUDEST = 3  # as loud as ten thousand allows
