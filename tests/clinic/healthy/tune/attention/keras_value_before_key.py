"""A Keras habit in PyTorch: query, value, key; masks of two kinds, a flag."""

import torch


class Layer:
    """Building and calling, as Keras layers have it; no nn.Module at all."""

    def __init__(self, name=None):
        self.name = name or type(self).__name__.lower()
        self.built = False

    def build(self, input_shape):
        self.built = True

    def __call__(self, *args, **kwargs):
        if not self.built:
            self.build(args[0].shape if args else None)
        return self.call(*args, **kwargs)


class Attention(Layer):
    def __init__(self, scale_by_depth=True, **kwargs):
        super().__init__(**kwargs)
        self.scale_by_depth = scale_by_depth

    def _lower_triangular_mask(self, shape):
        row_index = torch.cumsum(torch.ones(shape, dtype=torch.int32), -2)
        col_index = torch.cumsum(torch.ones(shape, dtype=torch.int32), -1)
        return torch.greater_equal(row_index, col_index)

    def _compute_mask(self, scores, value_mask, use_causal_mask):
        keep = None
        if value_mask is not None:
            keep = value_mask.bool().unsqueeze(-2)  # [batch, 1, Tv]
        if use_causal_mask:
            table = self._lower_triangular_mask((1, *scores.shape[-2:]))
            table = table.to(scores.device)
            keep = table if keep is None else torch.logical_and(keep, table)
        return keep

    def call(
        self,
        query,  # [batch, Tq, dim]
        value,  # [batch, Tv, dim_v]
        key=None,  # [batch, Tv, dim], the values if there is none
        value_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
    ):
        key = value if key is None else key
        scores = torch.matmul(query, key.transpose(-1, -2))
        if self.scale_by_depth:
            scores = scores * torch.rsqrt(
                scores.new_tensor(float(key.shape[-1]))
            )
        keep = self._compute_mask(scores, value_mask, use_causal_mask)
        if keep is not None:
            scores = scores.masked_fill(~keep, float("-inf"))
        scores = torch.softmax(scores, dim=-1)
        result = torch.matmul(scores, value)
        return (result, scores) if return_attention_scores else result


PATIENT = Attention(name="luong_style")
FACTS = {
    "layout": "BND",
    "mask": "keep",
    "mask_axes": "BN",
    "alignment": "first",
    "names": {
        "q": "query",
        "k": "key",
        "v": "value",
        "mask": "value_mask",
        "causal": "use_causal_mask",
    },
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "query": "b n d",
    "key": "b m d",
    "value": "b m e",
    "value_mask?": "real b m",
    "use_causal_mask?": "true",
}
