from pathlib import Path

import pytest

from benchbench.ir.measures import FORMULAS, Measure, definition_of
from benchbench.ir.measures.definitions import DEFINITIONS, as_markdown

DOCS = Path(__file__).resolve().parents[2] / "docs" / "measures.md"


def test_every_measure_is_described():
    assert list(DEFINITIONS) == list(FORMULAS)


def test_the_docs_say_what_the_pages_say():
    """`benchbench.ir.measures.definitions.as_markdown()` is the section to put there."""
    assert as_markdown() in DOCS.read_text()


@pytest.mark.parametrize("name", list(FORMULAS))
def test_a_description_names_the_measure_and_all_that_decides_its_number(name):
    definition = definition_of(Measure(name, 7))
    assert definition.written == f"{name}@7"
    assert all((definition.gain, definition.ties, definition.empty, definition.range, definition.source))


def test_only_of_the_first_rank_less_is_better():
    assert [name for name in FORMULAS if definition_of(Measure(name, 7)).better == "lower"] == ["FirstRelevant"]
