"""For looking inside models: the residual stream, swapped to positions."""

import torch
from torch import Tensor, nn


class HookedPosEmbed(nn.Module):
    """Hooks see what is added, [pos, 1, d_model]."""

    def __init__(self, n_ctx: int = 24, d_model: int = 6) -> None:
        super().__init__()
        self.W_pos = nn.Parameter(torch.empty(n_ctx, d_model))
        nn.init.normal_(self.W_pos, std=0.5)
        self.hook_pos_embed = nn.Identity()

    def forward(self, resid: Tensor) -> Tensor:
        """[batch, pos, d_model]"""
        if resid.size(1) > len(self.W_pos):
            raise ValueError(f"{resid.size(1)} positions, {len(self.W_pos)}")
        stream = resid.swapaxes(0, 1)
        rows = self.W_pos.narrow(0, 0, stream.size(0)).unsqueeze(1)
        stream = stream + self.hook_pos_embed(rows.to(resid.dtype))
        return stream.movedim(1, 0)


torch.manual_seed(5)
PATIENT = HookedPosEmbed()
FACTS = {
    "table": PATIENT.W_pos.detach(),
    "layout": "BND",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"resid": "b n 6"}
