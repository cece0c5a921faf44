"""As in protein models: biases in a list, a gate for every head."""

import torch
import torch.nn as nn


def permute_final_dims(tensor, inds):
    first = list(range(tensor.ndim - len(inds)))
    return tensor.permute(first + [len(first) + i for i in inds])


class Attention(nn.Module):
    def __init__(self, c_q, c_k, c_v, c_hidden, no_heads, inf=1e9):
        super().__init__()
        self.c_hidden, self.no_heads, self.inf = c_hidden, no_heads, inf
        self.linear_q = nn.Linear(c_q, c_hidden * no_heads, bias=False)
        self.linear_k = nn.Linear(c_k, c_hidden * no_heads, bias=False)
        self.linear_v = nn.Linear(c_v, c_hidden * no_heads, bias=False)
        self.linear_o = nn.Linear(c_hidden * no_heads, c_q)
        self.linear_g = nn.Linear(c_q, c_hidden * no_heads)
        self.sigmoid = nn.Sigmoid()

    def core(self, q, k, v, biases):
        # [*, H, Q, C], [*, H, C, K]
        q = permute_final_dims(q, (1, 0, 2)) / self.c_hidden**0.5
        a = torch.matmul(q, permute_final_dims(k, (1, 2, 0)))
        for b in biases:
            a = a + b
        a = torch.softmax(a, -1)
        o = torch.matmul(a, permute_final_dims(v, (1, 0, 2)))
        return permute_final_dims(o, (1, 0, 2))

    def forward(self, q_x, kv_x, mask=None, pair_bias=None):
        heads = (self.no_heads, self.c_hidden)
        q = self.linear_q(q_x).unflatten(-1, heads)
        k = self.linear_k(kv_x).unflatten(-1, heads)
        v = self.linear_v(kv_x).unflatten(-1, heads)
        biases = []
        if mask is not None:
            mask_bias = self.inf * (mask.to(q.dtype) - 1)
            biases.append(mask_bias[..., None, None, :])
        if pair_bias is not None:
            biases.append(pair_bias)
        o = self.core(q, k, v, biases)
        g = self.sigmoid(self.linear_g(q_x)).unflatten(-1, heads)
        return self.linear_o((o * g).flatten(-2))


PATIENT = Attention(10, 7, 7, c_hidden=4, no_heads=2)
FACTS = {
    "layout": "BND",
    "formula": "own",
    "n_heads": 2,
    "padding": "keep",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "q_x": "b n 10",
    "kv_x": "b m 7",
    "mask?": "real b m",
    "pair_bias?": "bias b 2 n m",
}
