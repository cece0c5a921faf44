"""The audit: sound code of many libraries, and no alarm."""

import json
import random

import doctor_audit
import pytest
import torch
from audited import PEERS, Peer, of_multihead
from torch import nn

HERE = [peer for peer in PEERS if doctor_audit.installed(peer)]


@pytest.mark.parametrize("peer", HERE, ids=lambda peer: peer.name)
def test_a_peer_is_healthy_in_five_configurations(peer):
    for setting, report in doctor_audit.visits(peer, 5):
        said = doctor_audit.verdict(report)
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
    monkeypatch.setattr(doctor_audit, "PEERS", [ill])
    threads = torch.get_num_threads()
    table = doctor_audit.audit("ill", each=1)
    torch.set_num_threads(threads)
    assert len(table["false alarms"]) == 1
    assert table["false alarms"][0]["setting"] == {"louder": 2}
    assert "healthy" not in table["verdicts"]


def test_the_committed_table_has_every_peer_and_no_false_alarm():
    whole = json.loads(doctor_audit.PATH.read_text("utf-8"))
    absent = {p.name for p in PEERS if p.package in whole["absent"]}
    assert set(whole["peers"]) == {peer.name for peer in PEERS} - absent
    for name, table in whole["peers"].items():
        assert table["configurations"] == doctor_audit.EACH, name
        assert table["false alarms"] == [], name
        assert sum(table["verdicts"].values()) == doctor_audit.EACH
        assert set(table["verdicts"]) <= {"healthy", table["expected"]}
