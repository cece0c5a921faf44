"""Which patients are examined: drawn by a seed, every operator in its turn."""

import copy
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tools.measure.clinic import chunks
from tools.measure.clinic.operators import Mutant, mutants
from tools.measure.clinic.oracle import Verdict, judged
from tools.measure.clinic.patients import ROOT, Style, patient, styles

HERE = Path(__file__).resolve().parent
STORE = ROOT / "_build" / "clinic"


class Case(NamedTuple):
    """One patient: a style with no operator, one, or two, one by one."""

    style: Style
    operators: tuple[str, ...]
    place: tuple[int, ...]
    text: str
    convention: bool = False

    @property
    def name(self) -> str:
        """What it is called, for people."""
        planted = " and ".join(
            f"{operator} ({place})"
            for operator, place in zip(self.operators, self.place, strict=True)
        )
        return f"{self.style.kind}/{self.style.name}: {planted or 'sound'}"

    @property
    def mark(self) -> str:
        """A short word for its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


def sound(half: str, kinds: Sequence[str] = ()) -> list[Case]:
    """The styles of a half, as they are; "both" for all; no kinds for all."""
    chosen = [
        s
        for s in styles()
        if half in (s.half, "both") and (not kinds or s.kind in kinds)
    ]
    return [Case(style, (), (), style.text) for style in chosen]


def ill(
    half: str, seed: int, twice: float = 0.0, kinds: Sequence[str] = ()
) -> Iterator[Case]:
    """Patients with mistakes that the oracle calls ill, in a drawn order.

    Args:
        half: of which styles.
        seed: of the order, and of what is drawn.
        twice: the share of those that get a second mistake.
        kinds: of which kinds; of all if none is told.
    """
    draw = Random(seed)
    groups: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for healthy in sound(half, kinds):
        for mutant in mutants(healthy.style):
            groups[healthy.style.kind, mutant.operator].append(mutant)
    for group in groups.values():
        draw.shuffle(group)
    while groups:
        names = sorted(groups)
        draw.shuffle(names)
        for name in names:
            mutant = groups[name].pop()
            if not groups[name]:
                del groups[name]
            case = planted(mutant, draw if draw.random() < twice else None)
            if case is not None:
                yield case


def planted(mutant: Mutant, draw: Random | None) -> Case | None:
    """A mutant as a patient, if it is ill; with a second one if drawn."""
    style = mutant.style
    once = Case(
        style,
        (mutant.operator,),
        (mutant.place,),
        mutant.text,
        mutant.convention,
    )
    if known(style, mutant.text).is_ != "ill":
        return None
    if draw is None:
        return once
    again = style._replace(text=mutant.text)
    more = [m for m in mutants(again) if m.operator != mutant.operator]
    for second in draw.sample(more, min(len(more), 5)):
        alone = known(style, second.text)
        differs = known(again, second.text)
        if alone.is_ == "ill" and differs.is_ == "ill":
            return Case(
                style,
                (*once.operators, second.operator),
                (*once.place, second.place),
                second.text,
                mutant.convention or second.convention,
            )
    return once


def known(style: Style, text: str) -> Verdict:
    """What the oracle says of a text beside a style's; asked once."""
    judge = chunks.judged if style.kind == chunks.KIND else judged
    of_it = fingerprint([HERE / "chunks.py"]) * (judge is chunks.judged)
    words = f"{style.kind}\n{style.text}\n{text}\n{of_the_oracle()}{of_it}"
    path = STORE / "oracle" / hashlib.sha256(words.encode()).hexdigest()[:24]
    if path.exists():
        return Verdict(*json.loads(path.read_text("utf-8")))
    try:
        healthy, other = patient(style.text), patient(text, "mutant")
        verdict = judge(healthy, other, style.kind)
    except Exception as error:  # whatever a mutant does when it is made
        verdict = Verdict("broken", f"{type(error).__name__}: {error}"[:120])
    if "NameError" in verdict.why:  # nobody would take that to a doctor
        verdict = verdict._replace(is_="broken")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(verdict), "utf-8")
    return verdict


def of_the_oracle() -> str:
    """What the oracle's word depends on, in short."""
    if not KNOWN:
        names = ("oracle.py", "inputs.py", "patients.py")
        KNOWN.append(fingerprint([HERE / name for name in names]))
    return KNOWN[0]


KNOWN: list[str] = []


def fingerprint(paths: Sequence[Path]) -> str:
    """A short word for what stands in some files."""
    digest = hashlib.sha256()
    for path in sorted(copy.copy(list(paths))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
