"""`compare`: two runs, or two summaries, held against each other on the terminal."""

import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from apps.records.models import Benchmark
from apps.results.exporting import export_to
from tests.commands import json_of, output_of
from tests.results.compared import make_compared, make_queries, noisy

PAIR = noisy([0.3, 0.5], 40)


@pytest.fixture
def compared(db: None) -> Benchmark:
    benchmark = make_compared(make_queries(40), PAIR, name="nightly")
    benchmark.runs.filter(run_order=2).update(provenance={"made_by": [{"git_revision": "abc"}]})
    return benchmark


def test_it_holds_the_second_run_against_the_first(compared):
    facts = json_of("compare", "nightly:1", compared.runs.get(run_order=2).pk)
    assert facts["verdict"] == "Against the baseline top 10: top 20 is better."
    (difference,) = facts["differences"]
    assert difference["difference"] == pytest.approx((PAIR[1] - PAIR[0]).mean())
    assert difference["significant"]
    assert difference["wins"] == int((PAIR[1] > PAIR[0]).sum())
    assert facts["measures"]["ndcg@10"][0]["mean"] == pytest.approx(PAIR[0].mean())
    assert {run["label"]: run["git_sha"] for run in facts["runs"]} == {"top 10": None, "top 20": "abc"}


def test_order_of_run_arguments_sets_the_sign(compared):
    facts = json_of("compare", "nightly:2", "nightly:1")
    assert facts["differences"][0]["difference"] == pytest.approx((PAIR[0] - PAIR[1]).mean())
    assert [row["difference"] < 0 for row in facts["measures"]["ap"]] == [True, False]


def test_means_cover_the_same_queries_as_the_difference(db):
    values = PAIR.copy()
    values[1, :5] = np.nan
    make_compared(make_queries(40), values, name="nightly")
    before, after = json_of("compare", "nightly:1", "nightly:2")["measures"]["ndcg@10"]
    assert (before["mean"], after["mean"]) == (pytest.approx(PAIR[0, 5:].mean()), pytest.approx(PAIR[1, 5:].mean()))
    assert after["difference"] == pytest.approx(after["mean"] - before["mean"])


def test_it_writes_a_table(compared):
    output = output_of("compare", "nightly:1", "nightly:2")
    assert "top 20 is better" in output
    assert f"nDCG@10{np.mean(PAIR[0]):>21.4f}{np.mean(PAIR[1]):>12.4f}  +0." in output
    assert "git abc" in output


def test_it_refuses_runs_of_different_datasets(compared):
    make_compared(make_queries(40, name="others"), PAIR, name="other")
    with pytest.raises(CommandError, match="They use different datasets") as caught:
        call_command("compare", "nightly:1", "other:1")
    assert caught.value.returncode == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [("nightly", "is a benchmark: name one of its runs, such as nightly:1"), ("nightly:9", "has no run 9")],
)
def test_it_says_how_to_name_a_run(compared, name, message):
    with pytest.raises(CommandError, match=message) as caught:
        call_command("compare", "nightly:1", name)
    assert caught.value.returncode == 1


def test_it_compares_the_summaries_that_we_export(exported, tmp_path):
    paths = [tmp_path / f"{order}.json" for order in (2, 1)]
    for order, path in zip((2, 1), paths, strict=True):
        export_to(exported.runs.get(run_order=order), "flowbaby-summary-1.1", path)
    facts = json_of("compare", *paths)
    assert facts["measures"]["mrr"]["difference"] == pytest.approx(1 - 1 / 3)
    assert facts["duration_ms"]["difference"] == 10 * 8 - 20 * 7  # what their own searches took
    assert "The files count 7 and 8 queries" in facts["warnings"][0]
    output = output_of("compare", *paths)
    assert "mrr" in output
    assert output.count(", times shared") == 2

    paths[1].write_text(json.dumps(json.loads(paths[1].read_text()) | {"canonicalization_version": "v2"}))
    with pytest.raises(CommandError, match="different versions of the canonical ids: 'v1' and 'v2'") as caught:
        call_command("compare", *map(str, paths))
    assert caught.value.returncode == 1
    with pytest.raises(CommandError, match="'nightly:1' is not a file, but the other is") as mixed:
        call_command("compare", str(paths[0]), "nightly:1")
    assert mixed.value.returncode == 2
