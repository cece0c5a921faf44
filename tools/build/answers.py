"""Write what a page must know to check an answer, from the exercises.

    python -m tools.build.answers

An exercise whose answer is a number, or some numbers, has the right answer
and the named mistakes as values: they go into ``book/answers.json``, from
which `book/extensions/answers.py` puts each beside its question. There is no
other copy: a test holds the file against the exercises, and the verdicts of a
page against the doctor's.
"""

import json
from pathlib import Path
from typing import Any

import torch

from selfattn.doctor.exercise import Exercise, Mistake, read_prediction
from selfattn.doctor.exercises import chapters, in_chapter

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "book" / "answers.json"


def numbers(value: Any) -> list[float]:
    """An answer as a list, of one number or of several."""
    return torch.as_tensor(read_prediction(value, {})).reshape(-1).tolist()


def wrong(mistake: Mistake) -> dict[str, Any]:
    """A mistake's name, what it answers, and the words for who makes it."""
    return {
        "name": mistake.name,
        "answer": numbers(mistake.answer),
        "words": str(mistake),
    }


def record(exercise: Exercise) -> dict[str, Any]:
    """All that a page must know of one exercise."""
    return {
        "asks": exercise.asks,
        "answer": numbers(exercise.solution),
        "tolerance": exercise.probes[0].tolerance,
        "mistakes": [wrong(mistake) for mistake in exercise.mistakes],
    }


def predictions() -> dict[str, Exercise]:
    """The exercises whose answer is a value, by name."""
    return {
        name: exercise
        for chapter in chapters()
        for name, exercise in in_chapter(chapter).items()
        if exercise.predicted
    }


def text() -> str:
    """The file's text."""
    records = {name: record(one) for name, one in predictions().items()}
    return (
        json.dumps(records, indent=1, ensure_ascii=False, allow_nan=False)
        + "\n"
    )


def main() -> None:
    """Write the file."""
    FILE.write_text(text(), "utf-8")
    print(f"{FILE.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
