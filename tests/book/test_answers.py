"""What a page knows of answers is what the exercises know."""

import json

from tools.build import answers


def test_the_file_is_as_the_exercises_are():
    assert answers.FILE.read_text("utf-8") == answers.text()


def test_every_chapter_with_exercises_asks_for_an_answer():
    known = json.loads(answers.FILE.read_text("utf-8"))
    assert {name.partition("/")[0] for name in known} == set(
        answers.chapters()
    )
    assert all(len(one["mistakes"]) >= 4 for one in known.values())
