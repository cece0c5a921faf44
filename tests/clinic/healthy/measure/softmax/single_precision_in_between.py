"""Always in single precision, whatever comes; the type is given back."""

import torch.nn.functional as F
from torch import nn


class FloatSoftmax(nn.Module):
    """What attention weights are made with, and dropped in training."""

    def __init__(self, dropout_p=0.1):
        super().__init__()
        self.dropout_p = dropout_p

    def forward(self, attn_weights, need_float=False):
        attn_weights_float = F.softmax(attn_weights.float(), dim=-1)
        if need_float:
            return attn_weights_float
        attn_probs = attn_weights_float.type_as(attn_weights)
        return F.dropout(attn_probs, self.dropout_p, training=self.training)


PATIENT = FloatSoftmax().eval()
FACTS = {
    "empty_row": "nan",
    "dropout": 0.1,
    "precision": "float32",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {"attn_weights": "b n m"}
