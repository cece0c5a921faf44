"""The audit: sound code of many libraries, and no alarm."""

import json
import random
import re
import sys

import pytest
import torch
from torch import nn

from tools.measure.doctor import audit
from tools.measure.doctor.ill import ILL
from tools.measure.doctor.peer import Peer, of_multihead
from tools.measure.doctor.sound import PEERS

HERE = [peer for peer in PEERS if audit.installed(peer)]
ILL_HERE = [peer for peer in ILL if audit.installed(peer)]


@pytest.mark.parametrize("peer", HERE, ids=lambda peer: peer.name)
def test_a_peer_is_healthy_in_five_configurations(peer):
    for setting, report in audit.visits(peer, 5):
        said = audit.verdict(report)
        assert said in ("healthy", peer.expected), (setting, report)
        assert report.probes >= 6


def test_most_peers_are_installed_where_this_runs():
    assert {peer.package for peer in HERE} >= {"torch", "transformers"}
    assert len({peer.name for peer in PEERS}) == len(PEERS) >= 20


def shouting(draw: random.Random):
    """PyTorch's layer with what it says made louder."""
    layer = nn.MultiheadAttention(6, 2, batch_first=True)
    layer.register_forward_hook(lambda _, __, out: (2 * out[0], out[1]))
    return layer, of_multihead(layer, weights=True), {"louder": 2}


def test_an_ill_peer_is_an_alarm(monkeypatch):
    """And the audit's table tells in what setting."""
    ill = Peer("ill", "torch", "self-attention", shouting)
    monkeypatch.setattr(audit, "PEERS", [ill])
    threads = torch.get_num_threads()
    table = audit.audit("ill", each=1)
    torch.set_num_threads(threads)
    assert len(table["false alarms"]) == 1
    assert table["false alarms"][0]["setting"] == {"louder": 2}
    assert "healthy" not in table["verdicts"]


def test_the_committed_table_has_every_peer_and_no_false_alarm():
    whole = json.loads(audit.PATH.read_text("utf-8"))
    absent = {p.name for p in PEERS if p.package in whole["absent"]}
    assert set(whole["peers"]) == {peer.name for peer in PEERS} - absent
    for name, table in whole["peers"].items():
        assert table["configurations"] == audit.EACH, name
        assert table["false alarms"] == [], name
        assert sum(table["verdicts"].values()) == audit.EACH
        assert set(table["verdicts"]) <= {"healthy", table["expected"]}


@pytest.mark.parametrize("peer", ILL_HERE, ids=lambda peer: peer.name)
def test_what_is_ill_and_installed_is_called_so(peer):
    ((_, report),) = audit.visits(peer, 1)
    assert audit.verdict(report) in audit.right(peer), report


def test_what_is_ill_may_not_be_called_healthy():
    assert "healthy" not in audit.right(ILL[0])
    assert "healthy" in audit.right(PEERS[0])


def test_the_committed_table_has_all_that_are_ill_and_their_versions():
    """It may have been found elsewhere: they are optional."""
    whole = json.loads(audit.PATH.read_text("utf-8"))["ill"]
    assert list(whole) == [peer.name for peer in ILL]
    assert len({peer.package for peer in ILL}) >= 6
    for peer in ILL:
        table = whole[peer.name]
        package, version = table["library"].split()
        assert package == peer.package and re.fullmatch(r"[\d.]+", version)
        assert set(table["verdicts"]) <= {*audit.right(peer)}
        assert table["configurations"] == sum(table["verdicts"].values())
        assert 1 <= table["configurations"] <= audit.EACH_ILL
        assert table["not so called"] == []


def test_those_that_are_ill_and_not_installed_are_skipped_with_a_line(
    monkeypatch, capsys, tmp_path
):
    """And what was found of them before stays."""
    before = {"peers": {}, "ill": {ILL[0].name: {"library": "of old 1.0"}}}
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(before), "utf-8")
    monkeypatch.setattr(audit, "PATH", path)
    monkeypatch.setattr(audit, "installed", lambda peer: "")
    monkeypatch.setattr(sys, "argv", ["audit", "--ill"])
    with pytest.raises(SystemExit, match="False"):
        audit.main()
    told = capsys.readouterr().out
    for peer in ILL:
        assert f"{peer.name}: {peer.package} is not installed" in told
    assert json.loads(path.read_text("utf-8")) == before
