"""Numbers and moments in texts, and what is stored and shown of an error."""

import random
import re
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from django.test import override_settings

from apps.api.answers import Moment
from apps.results.templatetags.benchbench import difference, value
from benchbench.decimals import counted, short_signed, signed
from benchbench.errors import BenchbenchError, error_text
from benchbench.reading.calls import split_calls
from benchbench.texts.words import normalize
from benchbench.timestamps import timestamp
from tests.checkout import CHECKOUT


@pytest.mark.parametrize(
    ("number", "decimals", "expected"),
    [
        (0.01234, 4, "+0.0123"),
        (-0.5, 4, "-0.5000"),
        (-0.00001, 4, "0.0000"),
        (-0.0, 4, "0.0000"),
        (0.00001, 4, "0.0000"),
        (-1234.56, 1, "-1,234.6"),
        (0.4, 0, "0"),
    ],
)
def test_differences_are_signed_unless_they_round_to_zero(number, decimals, expected):
    assert signed(number, decimals) == expected


def test_pages_know_no_negative_nothing():
    assert [value(-0.00001), value(0.6451), value(0.99999), value(-0.25)] == [".0000", ".6451", "1.0000", "-0.2500"]
    assert [difference(-0.00001), difference(0.0123), difference(0)] == [".0000", "−.0123", ""]
    assert [short_signed(number) for number in (-0.0045, 0.2, -1e-9)] == ["−.0045", "+.2000", ".0000"]


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [(1, "query", "1 query"), (0, "query", "0 queries"), (2345, "run", "2,345 runs"), (2, "index", "2 indexes")],
)
def test_counted_nouns_are_singular_or_plural(number, noun, expected):
    assert counted(number, noun) == expected


ROOT = Path(__file__).resolve().parents[1]
MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?[^\s\"\'`,|]*")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
# What an interface records or writes: answers of every address, every exporter's file, and the pages that show them.
WRITTEN = ("apps/api/examples/*.json", "tests/results/golden/**/*", "docs/events.md", "docs/openapi.yaml")
FOR_PEOPLE = {"apps/results/comparison/history.py"}  # the axis of a chart


@pytest.mark.parametrize(
    ("when", "text"),
    [
        (datetime(2026, 1, 19, 12, tzinfo=UTC), "2026-01-19T12:00:00Z"),
        (datetime(2026, 1, 19, 12, 0, 0, 50, tzinfo=timezone(timedelta(hours=5.5))), "2026-01-19T06:30:00.000050Z"),
    ],
)
def test_timestamps_are_in_utc(when, text):
    assert timestamp(when) == text
    with override_settings(TIME_ZONE="Europe/Berlin"):
        assert Moment().to_representation(when) == text


def test_all_recorded_timestamps_have_the_utc_format():
    hits = set(moments())
    assert len(hits) >= 50
    assert {location for location, text in hits if not TIMESTAMP.fullmatch(text)} == set()


def moments():
    for pattern in WRITTEN:
        files = [file for file in ROOT.glob(pattern) if file.is_file()]
        assert files, pattern
        for file in files:
            for text in MOMENT.findall(file.read_text(errors="replace")):
                yield str(file.relative_to(ROOT)), text


def test_nothing_else_makes_text_of_a_moment():
    remaining = set()
    for room in ("apps", "benchbench"):
        for file in (ROOT / room).rglob("*.py"):
            if ".isoformat(" in file.read_text() or "serializers.DateTimeField(" in file.read_text():
                remaining.add(str(file.relative_to(ROOT)))
    assert remaining == FOR_PEOPLE | {"benchbench/timestamps.py"}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BenchbenchError("The model './mine' is not here."), "The model './mine' is not here."),
        (OSError(28, "No space left", "/srv/site/vectors/7.bin"), "OSError: [Errno 28] No space left: '…/7.bin'"),
        (ValueError("see https://x.org/a/b for /srv/hub/x.json"), "ValueError: see https://x.org/a/b for …/x.json"),
        (ValueError("1/2 of a/b"), "ValueError: 1/2 of a/b"),
    ],
)
def test_error_text_hides_server_folders(error, message):
    assert error_text(error) == message


def test_commas_within_parentheses_separate_no_entries():
    draw = random.Random(1)
    for _ in range(3000):
        text = "".join(draw.choices("a, ()", k=draw.randint(0, 12)))
        expected = [entry.strip() for entry in re.split(r",(?![^()]*\))", text) if entry.strip()]
        assert split_calls(text) == expected, text


def test_only_thirty_marks_stay_on_a_letter():
    assert normalize("e" + "\u0301", "NFKC") == "é"
    marked = "a" + "\u0315\u0300" * 15
    assert normalize(marked, "NFKC") == unicodedata.normalize("NFKC", marked)
    assert normalize(marked + "\u0300" * 1000, "NFKC") == unicodedata.normalize("NFKC", marked)


def test_only_one_function_makes_unicode_forms():
    modules = [path for room in ("apps", "benchbench") for path in (CHECKOUT / room).rglob("*.py")]
    making = re.compile(r"unicodedata\.normalize|from unicodedata import .*normalize")
    assert [path.name for path in modules if making.search(path.read_text())] == ["words.py"]
