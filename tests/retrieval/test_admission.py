"""Admission of stores: what each must show (`admission.py`), and that docs/stores.md says which versions did."""

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.retrieval import admission
from tests.retrieval.arms import WIDEST, require_installed, version_of

pytestmark = [pytest.mark.thorough, pytest.mark.django_db(transaction=True)]

DOCS = Path(__file__).parents[2] / "docs/stores.md"
BEGIN, END = "<!-- admission: written by tests/retrieval/test_admission.py -->\n", "<!-- end of admission -->\n"
WRITES = os.environ.get("BENCHBENCH_WRITE_STORES")


@pytest.fixture(scope="module", autouse=True)
def files_and_tables_are_removed(django_db_setup, django_db_blocker):
    yield
    with django_db_blocker.unblock():
        for arm in admission.arms.values():
            arm.remove()
    admission.arms.clear()
    admission.reopened.cache_clear()
    shutil.rmtree(admission.folder(), ignore_errors=True)
    admission.folder.cache_clear()


def written(name, check):
    """What the table of docs/stores.md says that a method showed."""
    _, _, table = DOCS.read_text().partition(BEGIN)
    (row,) = re.findall(rf"^\| `{name}` \| (.+) \|$", table, re.MULTILINE)
    return row.split(" | ")[1 + list(admission.CHECKS.values()).index(check)]


def in_parts(message):
    pieces = re.split(r"(\d+\.\d+)", message)
    return pieces[::2], [float(number) for number in pieces[1::2]]


@pytest.mark.parametrize("name", WIDEST)
@pytest.mark.parametrize("check", admission.CHECKS.values(), ids=[one.__name__ for one in admission.CHECKS.values()])
def test_store_behaviour_matches_the_docs(name, check):
    require_installed(*(WIDEST.values() if check is admission.a_restart_changes_nothing else [WIDEST[name]]))
    answer = check(WIDEST[name])
    if not WRITES:
        (words, numbers), expected = in_parts(answer), in_parts(written(name, check))
        assert words == expected[0]
        assert numbers == pytest.approx(expected[1], abs=0.005), "recall differs a little where it draws numbers"


def test_docs_state_the_admitted_version_of_each_store():
    """With BENCHBENCH_WRITE_STORES=1 the table is written again."""
    require_installed(*WIDEST.values())
    if WRITES:
        before, _, remaining = DOCS.read_text().partition(BEGIN)
        DOCS.write_text(f"{before}{BEGIN}{admission.table()}{END}{remaining.partition(END)[2]}")
    rows = dict(re.findall(r"^\| `(\w+:\w+)` \| (\S+) \|", DOCS.read_text(), re.MULTILINE))
    assert rows == {name: version_of(name) for name in WIDEST}
