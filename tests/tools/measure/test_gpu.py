"""The ledger of GPU measurements: made on a GPU, or not at all."""

import json

import pytest
import torch

from selfattn.cost import peak_bytes
from selfattn.measurements import measured
from tools.measure import gpu


def no_time(call):
    call()
    return 0.001


def test_without_a_gpu_it_says_so_and_writes_nothing(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    path = tmp_path / "gpu.json"
    assert gpu.main(path) == 1
    assert capsys.readouterr().out.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore")  # kernels that refuse say why
def test_every_row_is_a_measurement_or_a_reason():
    found = list(gpu.rows("cpu", [96], no_time, peak_bytes))
    kinds = len(gpu.MECHANISMS) + len(gpu.BACKENDS)
    assert len(found) == 2 * 2 * kinds
    for row in found:
        assert ("result" in row) != ("ms" in row)
        assert row["n"] == 96 and row["dtype"] in gpu.DTYPES
    assert all("ms" in r for r in found if r["mechanism"] == "fused")
    refused = [r for r in found if r["mechanism"] == "fused, cuDNN"]
    assert all("No viable backend" in r["result"] for r in refused)
    for row in found:
        if "error" in row:
            assert row["error"] < (1e-5 if row["dtype"] == "float32" else 0.1)


def test_running_out_of_memory_is_a_result():
    def greedy(q, k, v):
        raise torch.OutOfMemoryError("no room")

    qkv = torch.randn(3, 1, 2, 7, 5)
    row = gpu.outcome(
        greedy, "definition", "forward", qkv, no_time, peak_bytes
    )
    assert row == {"result": "out of memory"}


def test_the_ledger_is_replaced_whole(tmp_path):
    path = tmp_path / "gpu.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(TypeError, match="not JSON serializable"):
        gpu.write(path, {"runs": [{"ms": object()}]})
    assert path.read_text("utf-8") == "old"
    gpu.write(path, {"about": "…", "runs": [{"ms": 1.0}]})
    assert json.loads(path.read_text("utf-8"))["runs"] == [{"ms": 1.0}]
    assert list(tmp_path.iterdir()) == [path]


def test_the_committed_ledger_says_where_it_comes_from():
    ledger = measured("gpu")
    assert ledger["about"] == gpu.ABOUT
    assert ledger["command"] == "python -m tools.measure.gpu"
    assert bool(ledger["runs"]) == ("gpu" in ledger["provenance"])
