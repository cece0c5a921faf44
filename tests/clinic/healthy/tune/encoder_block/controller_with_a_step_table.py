"""For robots: a policy's steps see only steps before, and all lies flat."""

import torch
from torch import nn
from torch.nn import functional as F


class RootNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.g, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, u):
        return u * (u.square().mean(-1, True) + self.eps).rsqrt() * self.g


class PolicyBlock(nn.Module):
    max_steps = 48

    def __init__(self, d_obs, n_heads, d_ff, p_drop=0.2, **unused):
        super().__init__()
        self.n_heads, self.p_drop = n_heads, p_drop
        for name in ("n1_pre", "n1_post", "n2_pre", "n2_post"):
            self.add_module(name, RootNorm(d_obs))
        self.qkv_weight = nn.Parameter(torch.empty(3 * d_obs, d_obs))
        self.qkv_bias = nn.Parameter(torch.zeros(3 * d_obs))
        self.out_weight = nn.Parameter(torch.empty(d_obs, d_obs))
        self.gate_weight = nn.Parameter(torch.empty(d_ff, d_obs))
        self.up_weight = nn.Parameter(torch.empty(d_ff, d_obs))
        self.down_weight = nn.Parameter(torch.empty(d_obs, d_ff))
        for name, parameter in self.named_parameters(recurse=False):
            if name.endswith("weight"):
                nn.init.orthogonal_(parameter)
        self.steps = nn.Embedding(self.max_steps, d_obs)

    def drop(self, u, training):
        return F.dropout(u, self.p_drop, training)

    def look_back(self, u, training):
        n, width = u.shape[1], u.shape[2]
        u = (u + self.steps.weight[:n]).movedim(0, 1)
        future = torch.ones(n, n, dtype=torch.bool, device=u.device).triu(1)
        out, _ = F.multi_head_attention_forward(
            query=u,
            key=u,
            value=u,
            embed_dim_to_check=width,
            num_heads=self.n_heads,
            in_proj_weight=self.qkv_weight,
            in_proj_bias=self.qkv_bias,
            bias_k=None,
            bias_v=None,
            add_zero_attn=False,
            dropout_p=self.p_drop,
            out_proj_weight=self.out_weight,
            out_proj_bias=None,
            training=training,
            need_weights=False,
            attn_mask=future,
            is_causal=True,
        )
        return out.movedim(0, 1)

    def think(self, u):
        gate = F.gelu(F.linear(u, self.gate_weight))
        return F.linear(gate * F.linear(u, self.up_weight), self.down_weight)

    def forward(self, inputs, training=None, **unused):
        if training is None:
            training = self.training
        told = self.n1_post(self.look_back(self.n1_pre(inputs), training))
        inputs = inputs + self.drop(told, training)
        said = self.n2_post(self.think(self.n2_pre(inputs)))
        return inputs + self.drop(said, training)


PATIENT = PolicyBlock(d_obs=12, n_heads=4, d_ff=14, tanh_actions=True)
FACTS = {
    "layout": "BND",
    "order": "sandwich",
    "causal": True,
    "norms": ("n1_pre", "n1_post", "n2_pre", "n2_post"),
    "n_heads": 4,
    "dropout": 0.2,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"inputs": "b n 12"}
