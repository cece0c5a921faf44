"""Linformer: mixtures of keys."""

from collections.abc import Iterator

from selfattn import LinformerAttention, attention
from selfattn.efficient.linformer import LearnedProjection
from tools.measure.bench.layers import of_layers
from tools.measure.bench.race import HEADS, D, Race, lean_sizes


def races() -> Iterator[Race]:
    """A layer that looks at 256 mixtures of the keys, against all keys."""
    for n, training in lean_sizes(1024, 4096, 16384):
        E, W = LearnedProjection(n, 256), LearnedProjection(n, 256)
        ours = LinformerAttention(E, W)
        form = lambda q, k, v, E=E, W=W, **_: attention(  # noqa: E731
            q, E.weight.double() @ k, W.weight.double() @ v
        )
        race, fair = of_layers(ours, "LinformerAttention", form, n)
        try:
            from linformer import LinformerSelfAttention

            peer = LinformerSelfAttention(HEADS * D, n, k=256, heads=HEADS)
            race["linformer"] = peer
        except ImportError:
            pass
        yield Race("layer", n, training, race, fair, layer=True)
