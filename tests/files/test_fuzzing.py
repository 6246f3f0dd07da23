"""Valid files, damaged where their structure is: a reader raises a sentence, or reads something; it never crashes.

`make fuzz` goes on for longer: BENCHBENCH_FUZZ_EXAMPLES says how many files each reader gets.
"""

import contextlib
import copy
import gzip
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchbench.errors import BenchbenchError
from benchbench.files import beir, flowbaby, topics, trec
from tests.files.samples import METADATA, QRELS, RUN, TOPICS, write_dataset, write_file
from tests.files.test_trec import CLASSIC, XML

EXAMPLES = int(os.environ.get("BENCHBENCH_FUZZ_EXAMPLES", "2000"))

TREC_QRELS = b"q1 0 d1 1\nq1 0 d2 -1\nq2\t0\td1\t4\r\n\nq3 0 d9 0\n"
TREC_RUN = b"q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 1e-3 tag\nq2 Q0 d1 1 -7 tag more\n\nq1 Q0 d3 3 inf tag\n"
TREC_LINES = b"1\twhat is it\n2\twhere\tis it\n"
BEIR_QRELS = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td1\t2\n"
BEIR_QUERIES = b'{"_id": "q1", "text": "one", "metadata": {"split": "x"}}\n{"_id": 2, "text": "two"}\n'

ODD_BYTES = [
    *(
        b"",
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        "é\u2028\u00a0".encode(),
        b"\t",
        b"\n",
        b"\r",
        b"\x0c",
        b" ",
    ),
    *(
        b"nan",
        b"-inf",
        b"1e999",
        b"1_0",
        b"0x1p3",
        b"-1",
        b"9" * 400,
        b'"',
        b"{",
        b"[" * 3000,
        b"\\ud800",
        b"<top>",
        b"</",
        b"&#x110000;",
    ),
]
ODD_VALUES: list[Any] = [
    *(None, True, 0, -1, 2.5, 10**400, float("nan"), float("inf"), "", " ", "\0", "\ud800", "q1", "x" * 5000),
    *([], {}, [[]], {"a": {}}, [None], {"": 1}),
]
KINDS = ("drop", "repeat", "replace", "add", "cut")
Damage = tuple[str, int, int]
SEEDS = st.integers(0, 2**32 - 1)
FILES = 10  # of each drawn number: hypothesis takes longer to draw a file's damages than a reader to read it


def damages_of(seed: int) -> Iterator[list[Damage]]:
    """For each file, up to four damages: a kind, and two numbers that choose where and with what."""
    drawn = random.Random(seed)
    for _ in range(FILES):
        yield [(drawn.choice(KINDS), drawn.randrange(1000), drawn.randrange(1000)) for _ in range(drawn.randint(1, 4))]


def damaged_bytes(content: bytes, damages: list[Damage]) -> bytes:
    """Words and what stands between them dropped, repeated, replaced, followed by others; or the rest cut off."""
    parts = re.findall(rb"[\w.+-]+|[^\w.+-]", content)
    for kind, place, choice in damages:
        at, odd = place % (len(parts) or 1), ODD_BYTES[choice % len(ODD_BYTES)]
        changed = {"drop": [], "repeat": parts[at : at + 1] * 2, "replace": [odd], "add": [*parts[at : at + 1], odd]}
        parts = parts[:at] + (changed[kind] + parts[at + 1 :] if kind in changed else [])
    return b"".join(parts)


def damaged_value(value: Any, damages: list[Damage]) -> Any:
    """Members of a JSON value dropped, repeated, replaced, added."""
    value = copy.deepcopy(value)
    for kind, place, choice in damages:
        holders = list(_holders(value))
        if not holders:
            break
        holder = holders[place % len(holders)]
        keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key, odd = (keys[choice % len(keys)] if keys else None), copy.deepcopy(ODD_VALUES[choice % len(ODD_VALUES)])
        if kind == "add" or key is None:
            holder.update({f"key{choice}": odd}) if isinstance(holder, dict) else holder.append(odd)
        elif kind == "drop":
            del holder[key]
        elif kind == "repeat" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[key] = odd
    return value


def _holders(value: Any) -> Any:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _holders(inner)


def read_ranked_trec(path: Path) -> None:
    for of_query in trec.read_run(path).values():
        of_query.ranking()


def read_ranked_flowbaby(path: Path) -> None:
    run = flowbaby.read_run(path)
    for order_by in ("rank", "score", "agree"):
        flowbaby.rankings(run, order_by=order_by)


BYTES: dict[str, tuple[Callable[[Path], Any], bytes, str]] = {
    "TREC qrels": (trec.read_qrels, TREC_QRELS, "qrels.txt"),
    "TREC run": (read_ranked_trec, TREC_RUN, "run.txt"),
    "TREC topics, lines": (topics.read_topics, TREC_LINES, "topics.tsv"),
    "TREC topics, open tags": (topics.read_topics, CLASSIC.encode(), "topics.txt"),
    "TREC topics, XML": (topics.read_topics, XML.encode(), "topics.xml"),
    "BEIR qrels": (beir.read_qrels, BEIR_QRELS, "test.tsv"),
    "BEIR queries": (lambda path: list(beir.read_queries(path)), BEIR_QUERIES, "queries.jsonl"),
    "Flowbaby run, text": (read_ranked_flowbaby, json.dumps(RUN).encode(), "run.json"),
}


def fuzz(read: Callable[[Any], Any], write: Callable[[list[Damage]], Any], examples: int = EXAMPLES) -> None:
    @settings(
        max_examples=examples // FILES,
        deadline=None,
        derandomize="BENCHBENCH_FUZZ_EXAMPLES" not in os.environ,
        database=None,
        phases=[Phase.generate],  # a seed cannot be made simpler
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(seed=SEEDS)
    def check(seed: int) -> None:
        for damages in damages_of(seed):
            path = write(damages)
            with contextlib.suppress(BenchbenchError):
                read(path)

    check()


@pytest.mark.parametrize("name", BYTES)
def test_a_reader_survives_damaged_bytes(name: str, tmp_path: Path) -> None:
    read, content, file_name = BYTES[name]
    path = write_file(tmp_path / file_name, content)
    read(path)
    fuzz(read, lambda damages: write_file(path, damaged_bytes(content, damages)))


def test_the_reader_of_a_flowbaby_run_survives_damaged_values(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    fuzz(read_ranked_flowbaby, lambda damages: write_file(path, json.dumps(damaged_value(RUN, damages))))


def test_the_reader_of_a_flowbaby_dataset_survives_damaged_values(tmp_path: Path) -> None:
    whole = {"metadata": METADATA, "topics": TOPICS, "qrels": QRELS}

    def write(damages: list[Damage]) -> Path:
        damaged = damaged_value(whole, damages)
        return write_dataset(tmp_path / "data", **{name: json.dumps(damaged.get(name)) for name in whole})

    fuzz(flowbaby.read_dataset, write)


def test_a_damaged_archive_is_a_sentence(tmp_path: Path) -> None:
    packed = gzip.compress(TREC_RUN)
    fuzz(trec.read_run, lambda damages: write_file(tmp_path / "run.gz", damaged_bytes(packed, damages), packed=True))
