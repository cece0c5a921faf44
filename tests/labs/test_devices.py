"""The lab on devices: its bytes are those that the package's ranks send."""

import itertools
import math
import random
from functools import partial

import pytest
import torch
import torch._dynamo  # once, and not on each rank
from torch.distributed.device_mesh import init_device_mesh

from selfattn.cost import LiveBytes
from selfattn.devices.heads import tensor_parallel
from selfattn.devices.ring import ring_attention
from selfattn.devices.ulysses import ulysses_attention
from selfattn.devices.world import Sent, SwapsApart, on_ranks
from selfattn.dot_product import fused_attention
from selfattn.labs.devices import BYTES, WAYS, DevicesLab, shares
from selfattn.multihead import MultiHeadAttention

HEADS, D = 4, 8  # of what is counted; the formulas are linear in them
OPTIONS = {name: rule["options"] for name, rule in DevicesLab().rules.items()}
EXCHANGES = {"heads": "all_reduce", "ring": "send", "swap": "alltoall_base_"}


def every_setting():
    for options in itertools.product(*OPTIONS.values()):
        yield dict(zip(OPTIONS, options, strict=True))


def calls(n, n_ranks):
    """The three ways for so many tokens of this rank."""
    q, k, v = torch.ones(3, HEADS, n, D)
    layer = MultiHeadAttention(HEADS * D, HEADS, attend=fused_attention)
    mesh = init_device_mesh("cpu", (n_ranks,))
    x = torch.ones(1, n * n_ranks, HEADS * D)
    return {
        "heads": partial(tensor_parallel(layer, mesh), x),
        "ring": partial(ring_attention, q, k, v),
        "swap": partial(ulysses_attention, q, k, v),
    }


def counted(rank, n_ranks):
    """For each way the bytes sent, and by how much memory grows."""
    found = {}
    for way, call in calls(512, n_ranks).items():
        with Sent() as sent, torch.no_grad():
            call()
        found[way] = [sent.bytes[EXCHANGES[way]]]
    for n in (512, 1024):
        for way, call in calls(n, n_ranks).items():
            with torch.no_grad(), SwapsApart(), LiveBytes() as memory:
                call()
            found[way].append(memory.peak)
    return found


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_bytes_are_those_that_leave_a_rank(ranks):
    sizes = {"n_heads": HEADS, "d_head": D, "link": "NVLink"}
    piece = 512 * HEADS * D  # numbers
    ours = shares(ranks=ranks, n=512 * ranks, **sizes)
    for found in on_ranks(counted, ranks):
        for way, (sent, short, long) in found.items():
            assert sent / 4 == ours[way].sent / BYTES
            given = ranks if way == "heads" else 5  # x; or x, q, k, v, y
            least = ours[way].held / (BYTES * piece)
            assert least <= given + (long - short) / (4 * piece) < 2 * least


def compare(results, many):
    """Raise AssertionError unless the page's numbers are the package's."""
    for values, theirs in zip(many, results, strict=True):
        for way, mine in shares(**values).items():
            other = theirs[way]
            assert other["refused"] == mine.refused
            for name in ("sent", "held"):
                assert other[name] == getattr(mine, name), (values, way)
            if mine.seconds is None:
                assert other["seconds"] is None
            else:
                near = math.isclose(other["seconds"], mine.seconds)
                assert near, values


def test_it_computes_as_the_package_everywhere(in_node, unopened):
    many = list(every_setting())
    assert len(many) == 11 * 11 * 6 * 2 * 3
    compare(in_node("devices", [["compute", v] for v in many]), many)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("4 * (ranks - 1) * piece / ranks", "4 * piece / ranks"),
        ("ring: 2 * (ranks - 1) * piece", "ring: (ranks - 1) * piece"),
        ("heads: (2 * ranks + 4)", "heads: (2 + 4)"),
        ("Math.min(ranks, 3) - 1", "Math.min(ranks, 2) - 1"),
        ("n_heads % ranks !== 0", "n_heads < ranks"),
        ('way !== "ring"', "true"),
        ("InfiniBand: 50", "InfiniBand: 400"),
        ("(ranks > 1 ? 10 : 6)", "10"),
    ],
)
def test_one_wrong_factor_is_seen(planted, right, wrong):
    many = list(every_setting())[::7]
    with pytest.raises(AssertionError):
        compare(planted("devices", right, wrong, many), many)


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    chance = random.Random(1)
    many = [
        {name: chance.choice(list(of)) for name, of in OPTIONS.items()}
        for _ in range(100)
    ]
    assert_links_bring_back(DevicesLab(), many)


def test_heads_that_do_not_divide_close_two_ways_and_not_the_ring():
    closed = DevicesLab(ranks=64).shares()
    assert [bool(closed[way].refused) for way in WAYS] == [True, False, True]
    assert closed["heads"].sent is None
    assert not any(way.refused for way in DevicesLab().shares().values())
    alone = DevicesLab(ranks=1).shares()
    assert {way.sent for way in alone.values()} == {0}
    assert len({way.held for way in alone.values()}) == 1


def test_the_still_picture_and_its_words_are_of_this_setting():
    lab = DevicesLab(ranks=64)
    assert repr(lab) == "DevicesLab(ranks=64)"
    assert "all-to-all: 32 heads do not divide among 64" in lab.describe()
    (ax,) = lab.figure().axes
    widths = [bar.get_width() for bar in ax.patches]
    ring = lab.shares()["ring"]
    assert widths == [0, 0, ring.sent, ring.held, 0, 0]
    assert len(ax.texts) == 2
