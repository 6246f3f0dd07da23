"""What else is measured of a run, over HTTP: what the pages show."""

from dataclasses import asdict
from pathlib import Path

from apps.results.leaderboard.coverage import coverage_of
from apps.results.triage.content import NAMES, content_of
from apps.results.triage.queries import evaluation_of
from apps.results.triage.sections import section_means
from benchbench.ir.measures import Measure
from tests.api.callers import Callers
from tests.benchmarks.conftest import short_batches  # noqa: F401 (a fixture)
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.results.sectioned import make_sectioned, searching


def test_it_tells_how_far_a_run_is_judged_and_what_it_found(
    transactional_db: None, callers: Callers, tmp_path: Path
) -> None:
    benchmark = make_sectioned(tmp_path)
    run = searching(benchmark)
    evaluation = evaluation_of(run)
    assert evaluation is not None
    told = {name: callers.reader.get(f"/runs/{run.pk}/{name}").json() for name in ("coverage", "sections", "content")}
    for facts in told.values():
        assert (facts.pop("run_id"), facts.pop("dataset_version")) == (str(run.pk), 1)
    assert told["coverage"] == {
        "measures": [asdict(row) | {"name": Measure.parse(row.name).wire} for row in coverage_of(evaluation)]
    }
    sections = section_means(evaluation)
    assert sections is not None
    assert told["sections"] == {
        "judgments": sections.n,
        "rows": [asdict(row) for row in sections.rows],
        "doc_mrr": sections.doc_mrr,
        "section_mrr": sections.section_mrr,
    }
    content = content_of(evaluation)
    assert told["content"] == {
        "k": content.k,
        "queries": len(content.queries),
        "unanswered": content.unanswered,
        "means": [
            {"name": name, "mean": mean, "queries": queries}
            for name, (_, mean, queries) in zip(NAMES, content.means, strict=True)
        ],
    }


def test_where_nothing_is_stated_nothing_is_told(callers: Callers) -> None:
    mapping = make_mapping(make_dataset({"q": [({"document_id": "d1"}, 1)]}), make_collection())
    benchmark = make_benchmark(mapping, [0.5, None], owner=callers.owner.user)
    run, failed = benchmark.runs.order_by("run_order")
    sections = callers.owner.get(f"/runs/{run.pk}/sections").json()
    assert (sections["judgments"], sections["rows"], sections["doc_mrr"]) == (0, [], None)
    for name in ("coverage", "sections", "content"):
        answer = callers.owner.get(f"/runs/{failed.pk}/{name}")
        assert (answer.status_code, answer.json()["code"]) == (409, "unmeasured")
        assert callers.owner.get(f"/runs/{run.pk}/{name}", version=7).status_code == 400
        statuses = [getattr(callers, who).get(f"/runs/{failed.pk}/{name}").status_code for who in callers.NAMES]
        assert statuses == [401, 403, 403, 403, 409, 409, 409]
