"""Measure attention on a CUDA GPU, and write the ledger that the book reads.

    python -m tools.measure.gpu

Eight heads of 64 features, one sequence of 512 to 65,536 tokens. Each row
has the least time of several calls by CUDA events, the bytes that the
allocator added, and the largest error against float64 on a sample of
queries. Running out of memory, or a kernel that refuses the inputs, is a
result, too. Without a GPU nothing is written.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from selfattn import (
    attention,
    flash_attention,
    fused_attention,
    linear_attention,
    sliding_window_attention,
)
from selfattn.cost import cuda_peak_bytes, cuda_seconds
from tools.measure.provenance import RESULTS, as_json, provenance

ABOUT = (
    "Time, peak bytes and error of attention on a CUDA GPU, 8 heads of 64 "
    "features, one sequence, not causal: the definition, the fused kernel as "
    "PyTorch chooses it and by back end, and this book's mechanisms, by "
    "length, number type and pass."
)
LENGTHS = [2**e for e in range(9, 17)]
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
PASSES = ("forward", "forward and backward")
HEADS, D_HEAD, WINDOW, SAMPLE = 8, 64, 256, 64
MECHANISMS: dict[str, Callable[..., Tensor]] = {
    "definition": attention,
    "fused": fused_attention,
    "flash": flash_attention,
    "window": partial(sliding_window_attention, window=WINDOW),
    "linear": linear_attention,
}
BACKENDS = {
    "fused, cuDNN": SDPBackend.CUDNN_ATTENTION,
    "fused, FlashAttention": SDPBackend.FLASH_ATTENTION,
    "fused, memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "fused, math": SDPBackend.MATH,
}
EXACT = ("definition", "fused", "flash", *BACKENDS)

Measure = Callable[[Callable[[], object]], float]


def by_backend(backend: SDPBackend, *qkv: Tensor) -> Tensor:
    """The fused function, with one of its kernels and no other."""
    with sdpa_kernel(backend):
        return fused_attention(*qkv)


def rows(
    device: str, lengths: list[int], time: Measure, peak: Measure
) -> Iterator[dict]:
    """One row for each length, number type, mechanism and pass."""
    attends = MECHANISMS | {
        name: partial(by_backend, kernel) for name, kernel in BACKENDS.items()
    }
    for n in lengths:
        for name, dtype in DTYPES.items():
            qkv = torch.randn(3, 1, HEADS, n, D_HEAD, device=device).to(dtype)
            for mechanism, attend in attends.items():
                for which in PASSES:
                    row = {"mechanism": mechanism, "pass": which}
                    row |= {"n": n, "dtype": name}
                    yield row | outcome(
                        attend, mechanism, which, qkv, time, peak
                    )


def outcome(
    attend: Callable[..., Tensor],
    mechanism: str,
    which: str,
    qkv: Tensor,
    time: Measure,
    peak: Measure,
) -> dict:
    """Time, bytes and error; or why there are none."""
    inputs = [x.clone().requires_grad_(which != "forward") for x in qkv]

    def call() -> object:
        output = attend(*inputs)
        if which == "forward":
            return output
        return torch.autograd.grad(output.sum(), inputs)

    try:
        found = {"ms": 1000 * time(call), "bytes": peak(call)}
        if mechanism in EXACT and which == "forward":
            found["error"] = error(attend, qkv)
    except torch.OutOfMemoryError:
        return {"result": "out of memory"}
    except RuntimeError as failure:
        return {"result": str(failure).strip().partition(". ")[0]}
    return found


def error(attend: Callable[..., Tensor], qkv: Tensor) -> float:
    """The largest error against float64, of some of the queries."""
    q, k, v = qkv
    truth = attention(*(x.double() for x in (q[..., :SAMPLE, :], k, v)))
    ours = attend(q, k, v)[..., :SAMPLE, :].double()
    return (ours - truth).abs().max().item()


def write(path: Path, result: dict) -> None:
    """Replace the ledger at once, or not at all."""
    beside = path.with_suffix(".part")
    beside.write_text(as_json(result), encoding="utf-8")
    json.loads(beside.read_text("utf-8"))
    os.replace(beside, path)


def main(path: Path = RESULTS / "gpu.json") -> int:
    """Measure and write, if there is a GPU."""
    if not torch.cuda.is_available():
        print("There is no CUDA GPU here, so nothing is written.")
        return 1
    runs = []
    for row in rows("cuda", LENGTHS, cuda_seconds, cuda_peak_bytes):
        print(row, file=sys.stderr, flush=True)
        runs.append(row)
    gpu = {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    result = {"about": ABOUT, "command": "python -m tools.measure.gpu"}
    write(path, result | {"provenance": provenance() | gpu, "runs": runs})
    print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
