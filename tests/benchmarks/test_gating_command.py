"""`gate`: what it prints and writes, and its exit status."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.benchmarks.gated import GOOD, POOR, make_gated, pinned, search
from tests.commands import json_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def rules_file(tmp_path: Path) -> Path:
    file = tmp_path / "gate.yaml"
    file.write_text("floors: {mrr: 0.7}\nagainst_baseline: {nDCG@10: {may_lose: 0.01}}\n")
    return file


def run_gate(*args: Any, **options: Any) -> int:
    try:
        call_command("gate", *args, **options)
    except CommandError as error:
        return error.returncode
    return 0


def test_the_command_ends_with_0_1_or_2(rules_file, tmp_path, capsys):
    benchmark = search(make_gated(), GOOD, POOR)
    pinned(benchmark.runs.get(run_order=1))
    gate_file = {"rules": rules_file, "baseline": "main"}
    comment = tmp_path / "comment.md"
    assert run_gate("nightly", **gate_file, markdown=comment) == 0
    assert capsys.readouterr().out == comment.read_text()
    assert run_gate("nightly", **gate_file, run=2) == 1
    assert run_gate(str(benchmark.runs.get(run_order=2).pk), **gate_file) == 1
    assert run_gate(str(benchmark.pk), **gate_file, run="all") == 1
    facts = json_of("gate", "nightly", "--rules", rules_file, "--baseline", "main")
    assert (facts["outcome"], facts["baseline"]["name"], facts["runs"][0]["run_order"]) == ("passed", "main", 1)
    rules_file.write_text("slices: {nowhere: {mrr: 0.7}}")
    assert run_gate("nightly", **gate_file) == 2


def test_the_command_refuses_wrong_usage_with_2(rules_file, tmp_path):
    benchmark = search(make_gated(), GOOD)
    pinned(benchmark.runs.get())
    wrong = [
        (("yearly",), {"rules": rules_file}),
        (("nightly",), {"rules": rules_file}),
        (("nightly",), {"rules": rules_file, "baseline": "other"}),
        (("nightly",), {"rules": tmp_path / "none.yaml"}),
        (("nightly",), {"rules": rules_file, "baseline": "main", "run": 7}),
        ((str(benchmark.runs.get().pk),), {"rules": rules_file, "baseline": "main", "run": 1}),
        (("nightly",), {"rules": rules_file, "baseline": "main", "markdown": tmp_path / "no" / "where.md"}),
    ]
    for args, options in wrong:
        assert run_gate(*args, **options) == 2, (args, options)
