"""A round from opening to closing by commands."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from apps.benchmarks.models import Benchmark
from apps.judging.models import Grade, Round


def run(command: str, *arguments: str) -> Any:
    out = io.StringIO()
    call_command(command, *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_a_round_by_commands(benchmark: Benchmark, ada: User, tmp_path: Path) -> None:
    scale = tmp_path / "scale.json"
    scale.write_text(json.dumps([{"grade": 0, "name": "No"}, {"grade": 1, "name": "Yes"}]))
    options = ("--judge", "ada", "--order", "depth", "--depth", "2", "--scale", str(scale))
    opened = run("open_round", "which is better", "--name", "fruit", *options)
    assert opened == {"id": str(Round.objects.get().pk), "name": "fruit", "items": 4, "pool": 4}

    items = run("next_items", "fruit", "--count", "4")["items"]
    assert {"query_key", "document_id", "passage", "text"} <= items[0].keys()
    table = tmp_path / "grades.csv"
    rows = [f"{item['query_key']},{item['document_id']},{said},Seen." for item, said in zip(items, "01s0", strict=True)]
    text = "\n".join(["query_key,document_id,grade,note", *rows])
    table.write_text(text.replace(",s,", ",cant_tell,"))
    assert run("grade_items", "fruit", str(table)) == {"graded": 4}

    state = run("round_state", "fruit")
    assert (state["done"], state["wanted"], state["judges"][0]["graded"]) == (4, 4, 3)
    assert state["agreement"]["alpha"] is None
    closed = run("close_round", "fruit", "--label", "2026-12")
    assert (closed["version"], closed["judgments"]) == (2, 3)
    assert "Measured 2 runs on questions v2" in closed["sentence"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("q1,d3,7", "line 3: The scale of the round has the grades 0, 1, 2, and not 7"),
        ("q1,d3,good", "line 3: 'good' is no grade"),
        ("q1,d9,1", "line 3: the round has no item of 'q1' and 'd9'"),
        ("q1,d3", "line 3, has 2 cells, and the header has 3"),
    ],
)
def test_a_table_with_a_fault_grades_nothing(round_of_ada: Round, tmp_path: Path, row: str, said: str) -> None:
    table = tmp_path / "grades.csv"
    table.write_text(f"query_key,document_id,grade\nq1,d2,1\n{row}\n")
    with pytest.raises(CommandError, match=said):
        call_command("grade_items", "fruit", str(table))
    assert not Grade.objects.exists()


def test_what_cannot_be_read_is_told(round_of_ada: Round, ada: User, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("grade_items", "fruit", str(tmp_path / "none.csv"))
    (tmp_path / "other.csv").write_text("query,document\n")
    with pytest.raises(CommandError, match="no column query_key"):
        call_command("grade_items", "fruit", str(tmp_path / "other.csv"))
    with pytest.raises(CommandError, match="No judging round is called 'none'"):
        call_command("round_state", "none")
    with pytest.raises(CommandError, match="No user is called 'nobody'"):
        call_command("next_items", "fruit", "--judge", "nobody")
    (tmp_path / "scale.json").write_text("{}")
    with pytest.raises(CommandError, match="must hold a list"):
        call_command("open_round", "which is better", "--judge", "ada", "--scale", str(tmp_path / "scale.json"))
