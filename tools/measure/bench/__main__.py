"""Race the efficient mechanisms against PyTorch's fused kernel and others.

    python -m tools.measure.bench            every bench
    python -m tools.measure.bench window     one of them

The result goes to ``book/measurements/bench-<name>.json``. Never a test: a
clock does not repeat. What is asserted about cost is counted, in the tests.

How it is measured: float32, batch 1, 8 heads of 64 features, one thread. All
candidates of a race run in one process and in turn, so that each meets the
same machine; of each the least CPU time of all rounds stands. Bytes are the
most that PyTorch's allocator held at once beyond the inputs, scratch memory
of kernels and, after training, the gradients among them; they repeat to the
byte. Each output is compared with the definition in float64, in the same run.

Other libraries take part where they are installed: local-attention,
linear-attention-transformer, pytorch-fast-transformers, timm, transformers,
performer-pytorch, linformer and reformer-pytorch.
"""

import argparse
import contextlib
import copy
import importlib.metadata
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from selfattn import (
    LinformerAttention,
    MultiHeadAttention,
    attention,
    fixed_attention,
    flash_attention,
    fused_attention,
    linear_attention,
    longformer_attention,
    lsh_attention,
    performer_attention,
    sliding_window_attention,
    strided_attention,
    swin_attention,
)
from selfattn.efficient.linformer import LearnedProjection
from selfattn.efficient.longformer import longformer_mask
from selfattn.efficient.performer import random_directions
from selfattn.efficient.reformer import lsh_mask
from selfattn.efficient.sparse import fixed_mask, strided_mask
from selfattn.efficient.swin import swin_bias, swin_mask
from selfattn.masks import causal_mask, window_mask
from tools.measure.provenance import RESULTS, provenance

HEADS, D = 8, 64
WINDOW = 256
ROWS = 256  # the last queries, whose outputs are checked
PEERS = (
    "local-attention",
    "linear-attention-transformer",
    "pytorch-fast-transformers",
    "timm",
    "transformers",
    "performer-pytorch",
    "linformer",
    "reformer-pytorch",
)


class Race(NamedTuple):
    """Candidates on the same inputs; the first is the one to compare with."""

    name: str
    n: int
    training: bool
    candidates: dict[str, Callable[..., Tensor]]
    expected: dict[str, Callable[..., Tensor]]  # on the last queries
    layer: bool = False  # of (1, n, d_model) instead of q, k and v


def sdpa(q, k, v, causal=False):
    """PyTorch's own."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def naive(q, k, v):
    """What everybody writes first: the whole table of scores."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1) @ v


def table(q, k, v, causal=False):
    """Linear attention's quadratic form, the queries being the last."""
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).mT
    if causal:
        weights = weights * causal_mask(q.shape[-2], k.shape[-2])
    return weights / weights.sum(dim=-1, keepdim=True) @ v


def windowed(q, k, v, window=WINDOW, causal=True):
    """Attention within a window, by its mask."""
    mask = window_mask(q.shape[-2], k.shape[-2], window)
    return attention(q, k, v, mask=mask, causal=causal)


def flash() -> Iterator[Race]:
    """Tiles against the fused kernel and against the whole table."""
    ours = {"naive": naive, "flash_attention": flash_attention}
    for n in (1024, 4096):
        for training in (False, True):
            fair = dict.fromkeys(["sdpa", *ours], attention)
            yield Race("full", n, training, {"sdpa": sdpa, **ours}, fair)
            past = partial(attention, causal=True)
            both = {
                "sdpa": partial(sdpa, causal=True),
                "flash_attention": partial(flash_attention, causal=True),
            }
            fair = dict.fromkeys(both, past)
            yield Race("causal", n, training, both, fair)


def window() -> Iterator[Race]:
    """A causal window of 256 against causal attention to everything."""
    past = partial(attention, causal=True)
    ours = partial(sliding_window_attention, window=WINDOW, causal=True)
    sides = partial(sliding_window_attention, window=WINDOW)
    for n, training in sizes(256, 512, 1024, 4096, 16384):
        race = {"sdpa": partial(sdpa, causal=True)}
        fair = {"sdpa": past, "sliding_window_attention": windowed}
        race["sliding_window_attention"] = ours
        try:
            from local_attention import LocalAttention

            options = {"causal": True, "autopad": True}
            peer = LocalAttention(WINDOW, exact_windowsize=True, **options)
            race["local-attention"] = lambda q, k, v, peer=peer: peer(q, k, v)
            # Its exact window has a key more.
            fair["local-attention"] = partial(windowed, window=WINDOW + 1)
        except ImportError:
            pass
        yield Race("causal", n, training, race, fair)
        if n == 16384:
            both = {"sdpa": sdpa, "sliding_window_attention": sides}
            fair = {
                "sdpa": attention,
                "sliding_window_attention": partial(windowed, causal=False),
            }
            yield Race("both sides", n, training, both, fair)


def linear() -> Iterator[Race]:
    """Linear attention, causal and not, against softmax attention."""
    for causal in (True, False):
        for n, training in sizes(256, 512, 1024, 4096, 16384):
            race = {
                "sdpa": partial(sdpa, causal=causal),
                "linear_attention": partial(linear_attention, causal=causal),
            }
            form = partial(table, causal=causal)
            fair = {
                "sdpa": partial(attention, causal=causal),
                "linear_attention": form,
            }
            race |= linear_peers(causal)
            if "pytorch-fast-transformers" in race:
                fair["pytorch-fast-transformers"] = form
            name = "causal" if causal else "full"
            yield Race(name, n, training, race, fair)


def linear_peers(causal: bool) -> dict[str, Callable[..., Tensor]]:
    """The other libraries' linear attention, where they are installed."""
    peers = {}
    try:
        from linear_attention_transformer import (
            linear_attention_transformer as lat,
        )

        # Its kernel is another one: softmax on both sides. Causally it is
        # exact only with buckets of one, at 26 times the memory: left out.
        if not causal:
            peers["linear-attention-transformer"] = lat.linear_attn
    except ImportError:
        pass
    return peers | fast_linear(causal, "pytorch-fast-transformers")


def fast_linear(
    causal: bool, name: str, features=None
) -> dict[str, Callable[..., Tensor]]:
    """The linear attention of pytorch-fast-transformers, on any features."""
    try:
        from fast_transformers.attention import (
            CausalLinearAttention,
            LinearAttention,
        )
        from fast_transformers.masking import (
            FullMask,
            LengthMask,
            TriangularCausalMask,
        )

        kind = CausalLinearAttention if causal else LinearAttention
        layer = kind(D, feature_map=features)

        def fast(q, k, v):
            n = q.shape[-2]
            mask = TriangularCausalMask(n) if causal else FullMask(n)
            lengths = LengthMask(torch.tensor([n]))
            swapped = (x.transpose(1, 2) for x in (q, k, v))
            return layer(*swapped, mask, lengths, lengths).transpose(1, 2)

        return {name: fast}
    except ImportError:
        return {}


def multihead() -> Iterator[Race]:
    """Our layer against PyTorch's: its default call, and its best."""
    d_model, n = HEADS * D, 4096
    theirs = nn.MultiheadAttention(
        d_model, HEADS, bias=False, batch_first=True
    )
    ours = MultiHeadAttention.from_torch(theirs)
    ours.attend = fused_attention
    default = lambda x: theirs(x, x, x)[0]  # noqa: E731
    lean = lambda x: theirs(x, x, x, need_weights=False)[0]  # noqa: E731

    def slow_path(x):
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return lean(x)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    race = {
        "nn.MultiheadAttention": default,
        "need_weights=False": lean,
        "need_weights=False, fast path off": slow_path,
        "MultiHeadAttention": ours,
    }
    exact = MultiHeadAttention.from_torch(theirs).double()

    def expected(last, x):
        return exact(last, x)

    for training in (False, True):
        for layer in (theirs, ours):
            layer.train(training)
        fair = dict.fromkeys(race, expected)
        yield Race("layer", n, training, race, fair, layer=True)


def swin() -> Iterator[Race]:
    """Layers of shifted windows against a layer that attends to all."""
    # Grids that divide by 7: on others theirs attend to made-up tokens.
    for grid in ((56, 56), (42, 70)):
        for shift in (0, 3):
            race = swin_layers(grid, shift)
            exact = copy.deepcopy(race["swin_attention"]).double()
            numbers = exact.attend.keywords["relative_bias"].detach().double()
            table = swin_bias(numbers, grid)
            mask = swin_mask(grid, (7, 7), (shift, shift))
            exact.attend = partial(swin_table, table=table, hidden=mask)
            fair = dict.fromkeys(race, exact)
            fair["all tokens"] = copy.deepcopy(race["all tokens"]).double()
            for training in (False, True):
                name = f"{grid[0]}x{grid[1]}, shift {shift}"
                n = math.prod(grid)
                yield Race(name, n, training, race, fair, layer=True)


def swin_table(q, k, v, *, mask, bias, causal, table, hidden):
    """The definition, for the last queries."""
    last = slice(-q.shape[-2], None)
    return attention(q, k, v, mask=hidden[last], bias=table[:, last])


def swin_layers(grid, shift) -> dict[str, Callable[..., Tensor]]:
    """Everybody's layer, with the same weights: 7 x 7 windows."""
    torch.manual_seed(1)
    numbers = torch.randn(HEADS, 13, 13, requires_grad=True)
    ours = MultiHeadAttention(HEADS * D, HEADS, projection_bias=True)
    every = copy.deepcopy(ours)
    every.attend = fused_attention
    options = {"grid": grid, "window": (7, 7), "shift": (shift, shift)}
    ours.attend = partial(swin_attention, **options, relative_bias=numbers)
    race = {"all tokens": every, "swin_attention": ours}
    for name, peer in (("transformers", swin_hf), ("timm", swin_timm)):
        with contextlib.suppress(ImportError):
            race[name] = peer(ours, numbers.detach().flatten(1).T, grid, shift)
    return race


def swin_hf(ours, numbers, grid, shift) -> Callable[..., Tensor]:
    """What SwinLayer of transformers does between norm and residual."""
    from transformers import SwinConfig
    from transformers.models.swin import modeling_swin as swin

    config = SwinConfig(window_size=7)
    config._attn_implementation = "sdpa"
    layer = swin.SwinLayer(config, HEADS * D, grid, HEADS, shift_size=shift)
    for name in "qkvo":
        weights = getattr(ours, f"W_{name}").state_dict()
        getattr(layer.attention, f"{name}_proj").load_state_dict(weights)
    bias = layer.attention.relative_position_bias
    bias.relative_position_bias_table.data.copy_(numbers)

    def run(x):
        x, _ = layer.maybe_pad(x.view(1, *grid, -1), *grid)
        rows, columns = x.shape[1:3]
        mask = layer.get_attn_mask(rows, columns, x.dtype, x.device)
        x = swin.window_partition(layer.cyclic_shift(x), 7)
        x, _ = layer.attention(x.view(-1, 49, HEADS * D), mask)
        x = x.view(-1, 7, 7, HEADS * D)
        x = swin.window_reverse(x, 7, rows, columns)
        x = layer.cyclic_shift(x, reverse=True)
        return x[:, : grid[0], : grid[1]].reshape(1, -1, HEADS * D)

    return run


def swin_timm(ours, numbers, grid, shift) -> Callable[..., Tensor]:
    """What SwinTransformerBlock of timm does between norm and residual."""
    from timm.models.swin_transformer import SwinTransformerBlock

    layer = SwinTransformerBlock(
        HEADS * D, grid, HEADS, window_size=7, shift_size=shift
    )
    three = [getattr(ours, f"W_{name}").state_dict() for name in "qkv"]
    layer.attn.qkv.load_state_dict(
        {k: torch.cat([x[k] for x in three]) for k in three[0]}
    )
    layer.attn.proj.load_state_dict(ours.W_o.state_dict())
    layer.attn.relative_position_bias_table.data.copy_(numbers)
    return lambda x: layer._attn(x.view(1, *grid, -1)).reshape(x.shape)


def sparse() -> Iterator[Race]:
    """The Sparse Transformer's patterns, strides of √n, against all keys."""
    for n, training in lean_sizes(1024, 4096):
        stride = math.isqrt(n)
        race = {"sdpa": partial(sdpa, causal=True)}
        if n == 16384:
            race = {}
        race |= {
            "strided_attention": partial(strided_attention, causal=True),
            "fixed_attention": partial(fixed_attention, causal=True),
        }
        fair = {
            "sdpa": partial(attention, causal=True),
            "strided_attention": by_mask(strided_mask, stride),
            "fixed_attention": by_mask(fixed_mask, stride),
        }
        yield Race("causal", n, training, race, fair)


def by_mask(published, *options):
    """Causal attention on the last queries, with a published mask."""

    def expected(q, k, v):
        mask = published(q.shape[-2], k.shape[-2], *options)
        return attention(q, k, v, mask=mask, causal=True)

    return expected


def performer() -> Iterator[Race]:
    """FAVOR+ with 266 features, as others have by default for 64 numbers."""
    for causal in (False, True):
        ours = partial(performer_attention, causal=causal, n_features=266)
        for n, training in lean_sizes(1024, 4096):
            race = {"sdpa": partial(sdpa, causal=causal)}
            if n == 16384:
                race = {}
            race |= {"performer_attention": ours}
            race |= performer_peers(causal, n)
            fair = {
                "sdpa": partial(attention, causal=causal),
                "performer_attention": partial(favor, causal=causal),
            }
            name = "causal" if causal else "full"
            yield Race(name, n, training, race, fair)


def favor(q, k, v, causal=False):
    """The features' quadratic form, by one product of exponentials."""
    omega = random_directions(266, q.shape[-1]).to(q)
    q, k = (x / x.shape[-1] ** 0.25 for x in (q, k))
    f_k = (k @ omega.mT - k.square().sum(-1, keepdim=True) / 2).exp()
    weights = (q @ omega.mT).exp() @ f_k.mT
    if causal:
        weights = weights * causal_mask(q.shape[-2], k.shape[-2])
    return weights / weights.sum(dim=-1, keepdim=True) @ v


def performer_peers(causal: bool, n: int) -> dict[str, Callable[..., Tensor]]:
    """The other libraries' FAVOR+: their features are other random ones."""
    peers = {}
    try:
        from performer_pytorch import FastAttention

        # Causally it keeps 46 times what the fused kernel does in training.
        if not causal or n == 1024:
            peers["performer-pytorch"] = FastAttention(D, 266, causal=causal)
    except ImportError:
        pass
    try:
        from fast_transformers.feature_maps import Favor

        features = Favor.factory(n_dims=266)
        peers |= fast_linear(causal, "pytorch-fast-transformers", features)
    except ImportError:
        pass
    return peers


def linformer() -> Iterator[Race]:
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


def longformer() -> Iterator[Race]:
    """A layer with a window of 257 to each side and one global token."""
    options = {"window": WINDOW + 1, "global_at": (0,)}
    for n, training in lean_sizes(1024, 4096):
        ours = partial(longformer_attention, **options)
        form = lambda q, k, v, **_: attention(  # noqa: E731
            q, k, v, mask=longformer_mask(q.shape[-2], k.shape[-2], **options)
        )
        race, fair = of_layers(ours, "longformer_attention", form, n)
        race |= longformer_peer(n)
        yield Race("layer", n, training, race, fair, layer=True)


def of_layers(attend, name: str, form, n: int):
    """Our layer and the same on the fused kernel; and their definitions."""
    usual = MultiHeadAttention(HEADS * D, HEADS, attend=fused_attention)
    exact, full = (copy.deepcopy(usual).double() for _ in range(2))
    exact.attend, full.attend = form, attention
    fair = {"sdpa layer": full, name: exact}
    ours = MultiHeadAttention(HEADS * D, HEADS, attend=attend)
    ours.load_state_dict(usual.state_dict(), strict=False)
    race = {name: ours}
    if n != 16384:
        race = {"sdpa layer": usual} | race
    return race, fair


def longformer_peer(n: int) -> dict[str, Callable[..., Tensor]]:
    """The layer of transformers, which has no projection of the output."""
    try:
        from transformers import LongformerConfig
        from transformers.models.longformer.modeling_longformer import (
            LongformerSelfAttention,
        )
    except ImportError:
        return {}
    config = LongformerConfig(
        hidden_size=HEADS * D,
        num_attention_heads=HEADS,
        attention_window=[2 * WINDOW],
        attention_probs_dropout_prob=0.0,
    )
    layer = LongformerSelfAttention(config, 0)
    mask = torch.zeros(1, n)
    mask[:, 0] = 10000.0  # its sign for a global token
    options = {
        "attention_mask": mask,
        "is_index_masked": mask < 0,
        "is_index_global_attn": mask > 0,
        "is_global_attn": True,
    }
    return {"transformers": lambda x: layer(x, **options)[0]}


def reformer() -> Iterator[Race]:
    """A layer that shares queries and keys: 4 rounds, about 32 a bucket.

    Theirs cut what is sorted into pieces of 64, and each sees the one before.
    """
    torch.manual_seed(0)
    W_qk, W_v, W_o = (
        nn.Linear(HEADS * D, HEADS * D, bias=False) for _ in range(3)
    )

    def heads(x):
        return x.unflatten(-1, (HEADS, D)).transpose(1, 2)

    def layer(core):
        def of(x):
            output = core(heads(W_qk(x)), heads(W_v(x)))
            return W_o(output.transpose(1, 2).flatten(-2))

        return of

    def exact(published, last, x):
        rows = last.shape[-2]
        q, v = heads(W_qk(x.float())), heads(W_v(x.float()))
        k = F.normalize(q, dim=-1)
        mask = published(q[..., -rows:, :], k)
        q, k, v = q[..., -rows:, :].double(), k.double(), v.double()
        output = attention(q, k, v, mask=mask).transpose(1, 2).flatten(-2)
        return output @ W_o.weight.double().mT

    for causal in (True, False):
        options = {"causal": causal, "see_itself": False}

        def ours(q, v, options=options):
            return lsh_attention(q, F.normalize(q, dim=-1), v, **options)

        def full(q, v, causal=causal):
            return sdpa(q, F.normalize(q, dim=-1), v, causal)

        seen = partial(lsh_mask, **options)
        past = lambda q, k, causal=causal: (  # noqa: E731
            causal_mask(q.shape[-2], k.shape[-2]) if causal else None
        )
        for n, training in lean_sizes(1024, 4096):
            race = {"sdpa layer": layer(full), "lsh_attention": layer(ours)}
            if n == 16384:
                race.pop("sdpa layer")
            race |= reformer_peers(causal, layer)
            fair = {
                "sdpa layer": partial(exact, past),
                "lsh_attention": partial(exact, seen),
            }
            name = "causal" if causal else "full"
            yield Race(name, n, training, race, fair, layer=True)


def reformer_peers(causal: bool, layer) -> dict[str, Callable[..., Tensor]]:
    """The other libraries' LSH attention: their buckets are other ones."""
    peers = {}
    try:
        from reformer_pytorch import LSHAttention

        core = LSHAttention(bucket_size=64, n_hashes=4, causal=causal)
        peers["reformer-pytorch"] = layer(
            lambda q, v: core(q[0], v[0])[0][None]
        )
    except ImportError:
        pass
    try:
        from transformers import ReformerConfig
        from transformers.models.reformer.modeling_reformer import (
            LSHSelfAttention,
        )
    except ImportError:
        return peers
    config = ReformerConfig(
        hidden_size=HEADS * D,
        num_attention_heads=HEADS,
        attention_head_size=D,
        lsh_attn_chunk_length=64,
        num_hashes=4,
        num_buckets=None,
        is_decoder=causal,
        lsh_attention_probs_dropout_prob=0.0,
    )
    theirs = LSHSelfAttention(config)
    peers["transformers"] = lambda x: theirs(x)[0]
    return peers


def lean_sizes(*ns: int) -> Iterator[tuple[int, bool]]:
    """Each length forward and in training. At the longest PyTorch's own kernel
    is left out, which takes minutes: whoever comes first is compared with.
    """
    for training in (False, True):
        for n in ns:
            yield n, training


def sizes(*ns: int) -> Iterator[tuple[int, bool]]:
    """Each length forward, and the first and last in training, too."""
    for n in ns:
        yield n, False
    yield 1024, True
    yield ns[-1], True


def inputs(race: Race) -> list[Tensor]:
    """The same numbers for everyone, and the same in every run."""
    torch.manual_seed(0)
    shape = (1, race.n, HEADS * D) if race.layer else (1, HEADS, race.n, D)
    count = 1 if race.layer else 3
    return [
        torch.randn(shape, requires_grad=race.training) for _ in range(count)
    ]


def runner(f, given: list[Tensor], training: bool) -> Callable[[], object]:
    """One call of a candidate, with its way back in training."""
    if not training:

        def run():
            with torch.inference_mode():
                return f(*given)

        return run
    with torch.no_grad():
        grad = torch.ones_like(f(*given))
    return lambda: torch.autograd.grad(f(*given), given, grad)


def peak_bytes(run: Callable[[], object]) -> int:
    """The most bytes the allocator held at once, as the profiler saw it."""
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True
    ) as seen:
        kept = run()
    events = [
        e
        for e in seen.profiler.kineto_results.events()
        if e.name() == "[memory]"
    ]
    live = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    del kept
    return peak


def shares(run: Callable[[], object], most: int = 6) -> dict[str, float]:
    """The operations that take longest, as shares of all their time."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    spent = {one.key: one.self_cpu_time_total for one in seen.key_averages()}
    longest = sorted(spent, key=lambda name: -spent[name])[:most]
    total = sum(spent.values())
    return {name: round(spent[name] / total, 3) for name in longest}


def error(race: Race, name: str, given: list[Tensor]) -> float | None:
    """The largest error of the last outputs, or None if they are others'."""
    if name not in race.expected:
        return None
    first, *rest = (x.detach().double() for x in given)
    last = first[..., -ROWS:, :]
    others = rest if rest else [first]
    with torch.inference_mode():
        want = race.expected[name](last, *others)
        got = race.candidates[name](*(x.detach() for x in given))
    return (got[..., -ROWS:, :] - want).abs().max().item()


def times(runs: dict[str, Callable[[], object]], budget: float, least: int):
    """The least CPU time of each, in turn, for so many seconds at least."""
    best = dict.fromkeys(runs, math.inf)
    start, rounds = time.time(), -1  # the first round warms up
    while rounds < least or (time.time() - start < budget and rounds < 100):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            took = time.process_time() - begin
            if rounds >= 0:
                best[name] = min(best[name], took)
        rounds += 1
    return best, rounds


def measure(race: Race, budget: float, least: int) -> Iterator[dict]:
    """A line for each candidate."""
    given = inputs(race)
    runs = {
        name: runner(f, given, race.training)
        for name, f in race.candidates.items()
    }
    best, rounds = times(runs, budget, least)
    held = {name: peak_bytes(run) for name, run in runs.items()}
    first = next(iter(runs))
    for name in runs:
        off = error(race, name, given)
        yield {
            "race": race.name,
            "n": race.n,
            "pass": "training" if race.training else "forward",
            "who": name,
            "ms": round(1000 * best[name], 2),
            "speed": round(best[first] / best[name], 3),
            "bytes": held[name],
            "memory": round(held[name] / held[first], 3),
            "error": None if off is None else float(f"{off:.1e}"),
            "rounds": rounds,
            "shares": shares(runs[name]),
        }


def versions() -> dict[str, str]:
    """The other libraries' versions, where they are installed."""
    found = {}
    for name in PEERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The processor's own name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    told = dict(x.split(":", 1) for x in lines if ":" in x)
    told = {key.strip(): value.strip() for key, value in told.items()}
    keys = ("model name", "cpu family", "model", "cache size")
    return ", ".join(told[key] for key in keys if key in told)


FIRST = (flash, multihead, window, linear, swin)
SECOND = (sparse, longformer, linformer, performer, reformer)
BENCHES = {f.__name__: f for f in (*FIRST, *SECOND)}


def write(name: str, budget: float, least: int) -> None:
    """Run the races of a bench, print each line, and write them down."""
    lines = []
    for race in BENCHES[name]():
        for line in measure(race, budget, least):
            print(
                "{race:11} {n:6} {pass:9} {who:34} {ms:10.2f} ms  speed "
                "{speed:8.3f}  memory {memory:8.3f}  error {error}".format(
                    **line
                ),
                flush=True,
            )
            lines.append(line)
    result = {
        "about": "CPU time and bytes on one thread: float32, batch 1, 8 "
        "heads of 64, no mask but what the race's name says. Speed and "
        "memory are ratios to the first of each race, measured in turn in "
        "one process; ms is the least of all rounds. Shares are of the "
        "processor's time, as the profiler saw one more run.",
        "command": f"python -m tools.measure.bench {name}",
        "provenance": {
            **provenance(),
            "processor": processor(),
            "processors": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
            "libraries": versions(),
        },
    }
    text = json.dumps(result, indent=1)
    rows = ",\n".join("  " + json.dumps(line) for line in lines)
    text = text[:-2] + ',\n "runs": [\n' + rows + "\n ]\n}\n"
    (RESULTS / f"bench-{name}.json").write_text(text, encoding="utf-8")


def main() -> None:
    """Which benches, and for how long each race."""
    parser = argparse.ArgumentParser(
        description="Race the efficient mechanisms; write the results down."
    )
    parser.add_argument("names", nargs="*", help=", ".join(BENCHES))
    parser.add_argument(
        "--seconds", type=float, default=20, help="least time for a race"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="least rounds of a race"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHES):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    for name in options.names or BENCHES:
        write(name, options.seconds, options.rounds)


if __name__ == "__main__":
    main()
