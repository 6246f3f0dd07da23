"""Names of measures through every entrance: computed, and shown under a name that reads back; or one sentence."""

import io
import json
import math
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, Phase, example, given, settings

from apps.datasets.models import Dataset
from apps.records.measuring.measures import USUAL
from apps.records.models import Benchmark, Evaluation
from apps.verdicts.gates.rules import RulesError, read_rules
from benchbench.ir.measures import GradedRankings, Measure, MeasureError, evaluate
from benchbench.ir.measures.spelling import MAX_NAME_LENGTH
from benchbench.reading.calls import split_calls
from benchbench.scoring.command import main
from tests.api.callers import Caller, Callers
from tests.benchmarks.imported import QRELS, RUN, imported, write
from tests.ir.simulated import random_case
from tests.names_of_measures import names
from tests.staff import MakeStaff

WRONG = [
    "nDCG@1.5",
    "Accuracy@5",
    "P@0",
    "ndcg@0",
    "P",
    "ERR",
    "RBP(p=2)",
    "RBP(p=0.8,p=0.9)",
    "nDCG@1.2.3",
    "P(rel=0)@5",
    "IPrec@0.405",
    f"P@{'9' * 5000}",
]
RIGHT = ["RBP(p=0.8)", "recall@5", "NDCG@3", "Compat", "nDCG(gains={1:1,2:7})@5", "SDCG(max_rel=4)@5", "ERR@5", "Hits"]
CASE = GradedRankings.from_rankings(*random_case(3))
Outcome = tuple[bool, str]  # whether the name was accepted, and what was shown


def limits(examples: int) -> settings:
    complete: dict[str, Any] = {"derandomize": True, "database": None, "deadline": None}
    return settings(
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
        **complete,
    )


def read(name: str) -> tuple[Measure | None, str]:
    """Return the measure, or None and the sentence that refuses it."""
    try:
        return Measure.read(name), ""
    except MeasureError as error:
        return None, error.message


@limits(600)
@given(names())
def test_a_name_is_computed_or_refused_in_one_sentence(name):
    measure, sentence = read(name)
    if measure is None:
        assert " is not a measure: " in sentence
        assert sentence.isprintable()
        return
    assert Measure.read(str(measure)) == Measure.parse(str(measure)) == Measure.parse(measure.wire) == measure
    assert measure.cutoff is None or measure.cutoff >= 1
    (values,) = evaluate([measure], CASE)
    assert measure.name == "FirstRelevant" or all(map(math.isfinite, values.tolist()))
    assert measure.definition.title


def by_score(name: str, folder: Path) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    files = ["--qrels", str(write(folder / "qrels.txt", QRELS)), "--run", str(write(folder / "a.run", RUN))]
    with redirect_stdout(out), redirect_stderr(err):
        status = main([*files, f"--measure={name}", "--json"])
    assert status in (0, 2)
    return status == 0, out.getvalue() or err.getvalue()


def by_command(*arguments: str) -> Outcome:
    out = io.StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=io.StringIO())
    except CommandError as error:
        return error.returncode != 2, str(error)
    return True, out.getvalue()


def check(name: str, message: Outcome) -> None:
    measure, sentence = read(name)
    accepted, displayed = message
    assert accepted == (measure is not None), displayed
    assert (sentence or json.dumps(str(measure))) in displayed or json.dumps(measure and measure.wire) in displayed


def is_one(name: str) -> bool:
    """Whether a list of measures has it as one entry; the usual families stand for several."""
    return split_calls(name) == [name.strip()] and name.strip().lower() not in USUAL and "\0" not in name


def each(*, examples: int) -> Callable[[Any], Any]:
    def decorate(test: Any) -> Any:
        for name in (*WRONG, *RIGHT):
            test = example(name=name)(test)
        return limits(examples)(given(name=names())(test))

    return decorate


@each(examples=60)
def test_score_reads_names_as_every_entrance_does(name, tmp_path_factory):
    check(name, by_score(name, tmp_path_factory.mktemp("score")))


@each(examples=100)
def test_gates_read_names_as_every_entrance_does(name):
    measure, sentence = read(name)
    if measure is not None and measure.definition.better == "lower":
        return
    if measure is None:
        with pytest.raises(RulesError) as refused:
            read_rules({"floors": {name: 0}})
        assert sentence in refused.value.message
    else:
        (floor,) = read_rules({"floors": {name: 0}}).floors
        assert floor.measure == measure


@pytest.mark.django_db
@each(examples=15)
def test_import_run_reads_names_as_every_entrance_does(name, dataset, run_file):
    if is_one(name):
        options = (f"--dataset={dataset.pk}", f"--measures={name}", "--json")
        check(name, by_command("import_run", str(run_file), *options))


def require_finite(benchmark: Benchmark) -> None:
    for evaluation in Evaluation.objects.filter(run__benchmark=benchmark):
        assert all(mean is not None and math.isfinite(mean) for mean in evaluation.means.values())


@pytest.fixture
def caller(make_staff: MakeStaff, dataset: Dataset) -> Caller:
    caller = Callers(make_staff).owner
    dataset.owner = caller.user
    dataset.save(update_fields=["owner"])
    return caller


@pytest.mark.thorough
@pytest.mark.django_db
@each(examples=25)
def test_added_names_are_read_as_by_every_entrance(name, dataset, run_file, caller, admin_client):
    """By the command, the API and the page."""
    if not is_one(name):
        return
    measure, sentence = read(name)
    for ask in (ask_command, ask_api, ask_page):
        benchmark = imported(dataset, run_file, k=[7], owner=caller.user).benchmark
        had = benchmark.measures
        if str(measure) in had:
            return
        accepted, displayed = ask(name, benchmark, caller, admin_client)
        benchmark.refresh_from_db()
        assert accepted == (measure is not None), displayed
        assert sentence in displayed or len(name) > MAX_NAME_LENGTH  # the API's own words for any text that is too long
        assert [one for one in benchmark.measures if one not in had][:1] == [str(measure)] * accepted
        if measure is not None and measure.name != "FirstRelevant":
            require_finite(benchmark)


def ask_command(name: str, benchmark: Benchmark, caller: Caller, client: Client) -> Outcome:
    return by_command("rescore", str(benchmark.pk), f"--measures={name}")


def ask_api(name: str, benchmark: Benchmark, caller: Caller, client: Client) -> Outcome:
    answer = caller.post(f"/benchmarks/{benchmark.pk}/measures", {"metrics_to_compute": [name]})
    assert answer.status_code in (200, 400), answer.content
    message = answer.json()
    return answer.status_code == 200, message["detail"] if answer.status_code == 400 else answer.content.decode()


def ask_page(name: str, benchmark: Benchmark, caller: Caller, client: Client) -> Outcome:
    answer = client.post(reverse("admin:benchmark_measures", args=[benchmark.pk]), {"measures": name})
    assert answer.status_code in (200, 302)
    return answer.status_code == 302, unescape(answer.content.decode())
