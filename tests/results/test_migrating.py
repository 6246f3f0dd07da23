"""Whether a new run may replace an old one: in Python, on the page and on the terminal."""

import json

import numpy as np
import pytest
from django.core.management import call_command
from django.urls import reverse
from scipy import stats

from apps.results.comparison_report import build_report
from apps.verdicts.comparing import compare_runs
from apps.verdicts.migrating import MigrationError, build_migration
from benchbench.ir.statistics.resampling import ComparisonError
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import check_non_inferiority
from tests.results.compared import make_compared, make_queries, noisy

VALUES = noisy([0.5, 0.49], 60)


@pytest.fixture
def runs(db):
    return list(make_compared(make_queries(60), VALUES).runs.order_by("run_order"))


@pytest.mark.parametrize("margin", [0.001, 0.01, 0.02, 0.05])
def test_non_inferiority_is_students_paired_test(margin):
    pair = compare(VALUES, seed=1).get_pair(1, 0)
    differences = VALUES[1] - VALUES[0]
    p = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    displayed = check_non_inferiority(pair, 60, margin)
    assert displayed.is_excluded == (p < 0.05)
    expected = stats.ttest_1samp(differences, 0, alternative="greater").confidence_interval(0.95).low
    assert displayed.lower == pytest.approx(expected)


def test_a_loss_shows_no_equality(runs):
    worse = build_migration(compare_runs(runs, baseline=runs[0]), 1e-9)
    assert worse.difference < -1e-9
    assert " is not shown to be as good as " in worse.sentence


def test_a_margin_must_be_stated():
    with pytest.raises(ComparisonError, match="above 0"):
        check_non_inferiority(compare(VALUES, seed=1).get_pair(1, 0), 60, 0.0)


def test_the_older_run_is_replaced(runs):
    migration = build_migration(compare_runs(runs), 0.5)
    assert (migration.old, migration.new, migration.is_non_inferior) == (runs[0].pk, runs[1].pk, True)
    assert migration.difference == pytest.approx(float(np.mean(VALUES[1] - VALUES[0])))
    assert migration.sentence.startswith("top 20 does not lose more than 0.5 against top 10")
    second = build_migration(compare_runs(runs, baseline=runs[1]), 0.5)
    assert (second.old, second.difference) == (runs[1].pk, pytest.approx(-migration.difference))
    strict = build_migration(compare_runs(runs), 1e-6)
    assert not strict.is_non_inferior
    assert 0 < (strict.more_queries or 0) < 10_000
    assert "is not shown to be as good as top 10 with a margin of 1e-06" in strict.sentence
    assert f"The queries are too few. About {strict.more_queries:,} more would decide." in strict.sentence
    with pytest.raises(MigrationError, match="two runs"):
        build_migration(compare_runs(runs, measure="RR"), 0.01)


def test_equal_values_show_nothing(db):
    """As where nothing is judged: every value is 0, and a test of no variance would approve anything."""
    runs = list(make_compared(make_queries(20), np.zeros((2, 20))).runs.order_by("run_order"))
    migration = build_migration(compare_runs(runs), 0.01)
    assert not migration.is_non_inferior
    assert migration.sentence.startswith("Both have the same value for every query, so nothing is tested")


def test_page_and_command_say_the_same(runs, admin_client, capsys):
    requests = {"run": [str(run.pk) for run in runs], "margin": "0.5"}
    page = admin_client.get(reverse("admin:run_compare"), requests | {"panel": "migration"})
    sentence = page.context["migration"].sentence
    assert sentence in page.content.decode().replace("&#x27;", "'")
    assert build_report(compare_runs(runs)).migration is None
    call_command("compare", str(runs[0].pk), str(runs[1].pk), "--margin", "0.5", "--json")
    assert json.loads(capsys.readouterr().out)["migration"]["sentence"] == sentence
    wrong = admin_client.get(reverse("admin:run_compare"), requests | {"panel": "migration", "margin": "-1"})
    assert wrong.status_code == 404
