"""Scales: the grades that judges choose from, each with a name and a description."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from apps.datasets.models import DatasetVersion
from apps.judging.judges import RoundError
from benchbench.reading.kinds import int_between
from benchbench.reading.objects import Must, StrictRecord, read_list

KEYS = range(10)  # keys of a keyboard that give a grade
LONGEST_NAME = 60
LONGEST_DESCRIPTION = 500
LONGEST_GUIDELINES = 20_000  # of a round: laying out its Markdown takes milliseconds
NAMES: dict[int, tuple[str, ...]] = {
    1: ("Not relevant", "Relevant"),
    2: ("Not relevant", "Partly relevant", "Relevant"),
    3: ("Not relevant", "Related", "Highly relevant", "Perfectly relevant"),  # as in TREC's Deep Learning track
}
USUAL = 3  # the highest grade if a dataset has no grades


@dataclass(frozen=True, slots=True)
class ScaleEntry(StrictRecord):
    """A grade of a scale from user input."""

    grade: Annotated[int, int_between(KEYS[0], KEYS[-1])]
    name: Annotated[
        str,
        Must(f"a name of at most {LONGEST_NAME} characters", lambda name: 0 < len(name.strip()) <= LONGEST_NAME),
    ]
    description: Annotated[
        str,
        Must(f"a text of at most {LONGEST_DESCRIPTION} characters", lambda text: len(text) <= LONGEST_DESCRIPTION),
    ] = ""


def build_default_scale(version: DatasetVersion) -> list[dict[str, object]]:
    """Return a scale from 0 to the highest grade of a dataset version; from 0 to 3 if it has no grades.

    Raises RoundError if that grade has no key; the user must specify the scale then.
    """
    highest = version.judgments.order_by("-grade").values_list("grade", flat=True).first()
    highest = USUAL if highest is None else max(1, highest)
    if highest not in KEYS:
        raise RoundError(
            f"The highest grade of {version} is {highest}, and a scale has grades from 0 to {KEYS[-1]}: give a scale.",
            field="scale",
        )
    names = NAMES.get(highest, tuple(f"Grade {grade}" for grade in range(highest + 1)))
    return [{"grade": grade, "name": name, "description": ""} for grade, name in enumerate(names)]


def scale_to_choose(version: DatasetVersion) -> list[dict[str, object]]:
    """Return the grades to choose from; [] if the dataset has a grade without a key, so that users enter a number."""
    try:
        return build_default_scale(version)
    except RoundError:
        return []


def read_scale(entries: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return a scale from user input, lowest grade first. Raises InvalidKeyError, naming the entry, or RoundError."""
    scale = read_list(ScaleEntry, list(entries), prefix="scale")
    grades = [entry.grade for entry in scale]
    names = [entry.name.strip().casefold() for entry in scale]
    if len(set(grades)) < len(grades) or len(set(names)) < len(names):
        raise RoundError("A grade or a name occurs twice in the scale: give each once.", field="scale")
    if 0 not in grades or len(grades) < 2:
        raise RoundError("The scale needs 0, which is not relevant, and at least one grade above it.", field="scale")
    return [
        {"grade": entry.grade, "name": entry.name.strip(), "description": entry.description.strip()}
        for entry in sorted(scale, key=lambda entry: entry.grade)
    ]


def list_grades(scale: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the grades of a scale, lowest first."""
    return [entry["grade"] for entry in scale]
