"""For a paper on vision: strips of pixels come from a generator."""

import torch


def make_pixel_attention(pixels_per_strip=3):
    def strips(query, key, value):
        channels = query.size(2)
        for strip in query.split(pixels_per_strip, dim=-1):
            energy = torch.einsum("bhcx,bhcy->bhxy", strip, key)
            energy = (energy * channels**-0.5).softmax(dim=-1)
            yield torch.einsum("bhxy,bhcy->bhcx", energy, value)

    def attend(query, key, value):
        """All three are batch, heads, channels, pixels."""
        feature_map = torch.cat(tuple(strips(query, key, value)), dim=-1)
        return feature_map, None

    return attend


PATIENT = make_pixel_attention()
FACTS = {
    "layout": "BHDN",
    "causal": False,
    "names": {"q": "query", "k": "key", "v": "value"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query": "b h d n",
    "key": "b h d m",
    "value": "b h e m",
}
