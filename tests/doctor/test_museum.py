"""The museum: every bug is found out, and has the name it should have."""

import json
import re

import pytest

from selfattn import attention
from selfattn.doctor import examine
from selfattn.doctor.museum import caches, installed, modules, rooms
from tools.measure.doctor import audit
from tools.measure.doctor.ill import ILL

ROOMS = rooms()


def test_there_are_many_rooms_and_each_says_where_it_comes_from():
    assert len(ROOMS) >= 63
    assert len({room.name for room in ROOMS}) == len(ROOMS)
    for room in ROOMS:
        place = rf"https://github.com/{re.escape(room.project)}/"
        in_a_thread = re.fullmatch(place + r"(issues|pull)/\d+", room.thread)
        assert in_a_thread or seen_in_a_version(room), room.name
        when = r"20\d\d-(0[1-9]|1[0-2])"
        assert not in_a_thread or re.fullmatch(when, room.reported)
        assert room.report.endswith(".")


def seen_in_a_version(room):
    """Nobody reported it: a package and one version stand for the thread."""
    package, version = room.versions.split()
    return (
        room.project == package
        and room.thread == f"https://pypi.org/project/{package}/{version}/"
        and room.reported == f"seen in version {version}"
    )


def test_what_is_installed_today_has_its_versions():
    """And rooms of every package of the audit that has one."""
    rooms = [r for r in ROOMS if r.thing.__module__ == installed.__name__]
    named = [r for r in rooms if re.fullmatch(r"[a-z-]+ [\d.]+", r.versions)]
    assert len(rooms) >= 15 and len(named) >= 14
    packages = {room.versions.split()[0] for room in named}
    assert packages >= {peer.package for peer in ILL}
    written = json.loads(audit.PATH.read_text("utf-8"))["ill"]
    seen = {table["library"] for table in written.values()}
    assert seen <= {room.versions for room in named}


def test_no_two_words_of_a_name_are_joined_and_none_is_torn():
    """A word begins at each capital, or at each underscore."""
    assert "deviation of a sample" in [room.name for room in ROOMS]
    for room in ROOMS:
        written = room.thing.__name__
        if isinstance(room.thing, type):
            words = re.findall("[A-Z][a-z]*", written)
        else:
            words = written.split("_")
        assert room.name.split() == [word.lower() for word in words]
        assert all(word.isalnum() for word in words)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_the_doctor_finds_it_out(room):
    report = room.visit()
    assert not report.passed and not report.trouble, report
    assert (report.mistake.name if report.mistake else "") == room.named


def test_only_few_are_found_out_without_a_name():
    assert [room.name for room in ROOMS if not room.named] == [
        "slides too early"
    ]


class Healthy(caches.Kept):
    def forward(self, x, cache=None):
        q, k, v = self.project(x, cache)
        return attention(q, k, v, causal=True), (k, v)


@pytest.mark.parametrize(
    ("thing", "kind", "facts"),
    [
        (modules.Sound(), "self-attention", {}),
        (Healthy(), "cached-decoder", {"d_model": 8}),
    ],
)
def test_what_the_rooms_are_made_of_is_sound(thing, kind, facts):
    report = examine(thing, kind=kind, time_limit=None, **facts)
    assert report.passed, report


def test_a_room_looks_the_same_on_every_visit():
    room = next(r for r in ROOMS if r.name == "slides too early")
    weights = [room.patient().W.weight for _ in range(2)]
    assert weights[0].equal(weights[1])
