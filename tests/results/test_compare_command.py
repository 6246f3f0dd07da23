"""`compare` on the terminal: two runs, or two summaries."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from apps.benchmarks.models import Benchmark
from apps.results.exporting import export_to
from tests.results.compared import make_compared, make_queries, noisy
from tests.results.exported import make_exported

VALUES = noisy([0.3, 0.5], 40)


@pytest.fixture
def compared(db: None) -> Benchmark:
    benchmark = make_compared(make_queries(40), VALUES, name="nightly")
    benchmark.runs.filter(run_order=2).update(provenance={"made_by": [{"git_revision": "abc"}]})
    return benchmark


def test_it_holds_the_second_run_against_the_first(compared: Benchmark, capsys: Any) -> None:
    call_command("compare", "nightly:1", str(compared.runs.get(run_order=2).pk), "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["verdict"] == "Against the baseline top 10: top 20 is better."
    assert facts["primary"]["difference"] == pytest.approx((VALUES[1] - VALUES[0]).mean())
    assert facts["primary"]["significant"]
    assert facts["primary"]["wins"] == int((VALUES[1] > VALUES[0]).sum())
    assert facts["measures"]["nDCG@10"]["before"] == pytest.approx(VALUES[0].mean())
    assert [run["git_sha"] for run in facts["runs"]] == [None, "abc"]


def test_the_order_in_which_runs_are_named_is_the_sign(compared: Benchmark, capsys: Any) -> None:
    call_command("compare", "nightly:2", "nightly:1", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["primary"]["difference"] == pytest.approx((VALUES[0] - VALUES[1]).mean())
    assert facts["measures"]["AP"]["difference"] < 0


def test_means_are_over_the_queries_that_the_difference_is_over(db: None, capsys: Any) -> None:
    values = VALUES.copy()
    values[1, :5] = np.nan
    make_compared(make_queries(40), values, name="nightly")
    call_command("compare", "nightly:1", "nightly:2", "--json")
    one = json.loads(capsys.readouterr().out)["measures"]["nDCG@10"]
    assert (one["before"], one["after"]) == (pytest.approx(VALUES[0, 5:].mean()), pytest.approx(VALUES[1, 5:].mean()))
    assert one["difference"] == pytest.approx(one["after"] - one["before"])


def test_it_writes_a_table(compared: Benchmark, capsys: Any) -> None:
    call_command("compare", "nightly:1", "nightly:2")
    shown = capsys.readouterr().out
    assert "top 20 is better" in shown
    assert f"nDCG@10{np.mean(VALUES[0]):>21.4f}{np.mean(VALUES[1]):>12.4f}  +0." in shown
    assert "git abc" in shown


def test_it_refuses_runs_of_different_datasets(compared: Benchmark) -> None:
    make_compared(make_queries(40, name="others"), VALUES, name="other")
    with pytest.raises(CommandError, match="They answer different datasets") as caught:
        call_command("compare", "nightly:1", "other:1")
    assert caught.value.returncode == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [("nightly", "is a benchmark: say which of its runs, as in nightly:1"), ("nightly:9", "has no run 9")],
)
def test_it_says_how_to_name_a_run(compared: Benchmark, name: str, said: str) -> None:
    with pytest.raises(CommandError, match=said) as caught:
        call_command("compare", "nightly:1", name)
    assert caught.value.returncode == 1


def test_it_compares_the_summaries_that_we_export(db: None, tmp_path: Path, capsys: Any) -> None:
    benchmark = make_exported()
    paths = [tmp_path / f"{order}.json" for order in (2, 1)]
    for order, path in zip((2, 1), paths, strict=True):
        export_to(benchmark.runs.get(run_order=order), "flowbaby-summary-1.1", path)
    call_command("compare", *map(str, paths), "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["measures"]["mrr"]["difference"] == pytest.approx(1 - 1 / 3)
    assert facts["duration_ms"]["difference"] == 10 * 8 - 20 * 7  # what their own searches took
    assert "They count 7 and 8 queries" in facts["warnings"][0]
    call_command("compare", *map(str, paths))
    told = capsys.readouterr().out
    assert "mrr" in told
    assert told.count(", times shared") == 2

    changed = json.loads(paths[1].read_text()) | {"canonicalization_version": "v2"}
    paths[1].write_text(json.dumps(changed))
    with pytest.raises(CommandError, match="different versions of the canonical ids: 'v1' and 'v2'") as caught:
        call_command("compare", *map(str, paths))
    assert caught.value.returncode == 1
    with pytest.raises(CommandError, match="'nightly:1' is not a file while the other is") as mixed:
        call_command("compare", str(paths[0]), "nightly:1")
    assert mixed.value.returncode == 2
