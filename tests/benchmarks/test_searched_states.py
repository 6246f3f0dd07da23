"""What a benchmark searched stays what its runs are measured by, even if the collection changes."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.collections.importing import import_documents
from apps.collections.models import Collection, CollectionState, Document, FormerDocument
from apps.collections.records import DocumentRecord, SectionRecord
from apps.datasets.editing.drafts import freeze
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.execution.launching import launch
from apps.experiments.manifests import build_manifest
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.records.comparability import find_differences
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, Evaluation
from apps.results.exporting import export, list_exporters
from apps.results.triage.queries import load_grades
from apps.results.triage.sections import load_section_means
from apps.results.triage.triaging import load_judgments, load_losses
from apps.retrieval.indexing import create_index
from apps.verdicts.coverage import load_coverage
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.rules import read_rules
from benchbench.errors import ConflictError
from tests.created import build, create_benchmark, finish, run_benchmark
from tests.drafts import set_judgment
from tests.kept import made_once
from tests.library import ENCODER, import_all

FRUITS = ("apple", "pear", "plum", "fig")
HALVES = (SectionRecord("s1", start=0, end=6), SectionRecord("s2", start=6, end=14))


def build_document(name: str, **changes: Any) -> DocumentRecord:
    fields = {
        "uri": f"file:///{name}.md",
        "file_name": f"{name}.md",
        "metadata": {"edition": "first"},
        "sections": HALVES,
    }
    return DocumentRecord(name, **{"title": name, "text": f"{name} " * 4, **fields, **changes})


SHELF = {name: build_document(name) for name in FRUITS}
REFERENCES = {
    "apple": {"document_id": "apple"},
    "pear": {"content_hash": SHELF["pear"].hash()},
    "plum": {"uri": "file:///plum.md"},
    "fig": {"file_name": "fig.md"},
}


@made_once
def make_orchard() -> Benchmark:
    """One query a document, each judged by another kind of reference, one of them for a document that is missing."""
    queries = [
        QueryRecord(
            name,
            name,
            judgments=[
                JudgmentRecord(reference, grade=1, section_refs=["s1"]),
                *([JudgmentRecord({"document_id": "olive"}, grade=1)] if name == "fig" else []),
            ],
            filters={"edition": "first"},
        )
        for name, reference in REFERENCES.items()
    ]
    mapping = import_all(list(SHELF.values()), queries, name="keywords", encoder=ENCODER)
    return run_benchmark(mapping, name="then", matrix={"search_modes": ["sparse", "dense"]})


@pytest.fixture
def orchard(transactional_db: None) -> Benchmark:
    return make_orchard()


def without(*names: str, **changed: DocumentRecord) -> list[DocumentRecord]:
    return [changed.get(name, document) for name, document in SHELF.items() if name not in names]


def rewritten(name: str) -> DocumentRecord:
    return build_document(name, text="a menu for the week")


CHANGES: dict[str, list[list[DocumentRecord]]] = {
    "one removed": [without("apple")],
    "all judged ones removed": [[build_document("melon")]],
    "one rewritten, judged by its hash": [without(pear=rewritten("pear"))],
    "one moved, judged by its address": [without(plum=build_document("plum", uri="file:///moved.md"))],
    "one renamed, judged by its file name": [without(fig=build_document("fig", file_name="figs.md"))],
    "another one with the same file name": [[*without(), build_document("dates", file_name="fig.md")]],
    "ids renamed": [[replace(document, external_id=f"new-{name}") for name, document in SHELF.items()]],
    "sections removed": [without(apple=build_document("apple", sections=()))],
    "sections renamed": [without(apple=build_document("apple", sections=(SectionRecord("s9", start=0, end=14),)))],
    "filtered field changed": [without(apple=build_document("apple", metadata={"edition": "second"}))],
    "the missing one added": [[*without(), build_document("olive")]],
    "removed and back again": [without("apple"), without()],
    "changed twice": [without("apple", pear=rewritten("pear")), without("plum")],
    "nothing": [without()],
}


def change(benchmark: Benchmark, imports: list[list[DocumentRecord]], *, search: bool = False) -> None:
    """Import the documents, and resolve the mapping after each import; with `search` benchmark each state."""
    for number, documents in enumerate(imports):
        collection = Collection.objects.get(pk=benchmark.mapping.collection_id)
        import_documents(collection, documents)
        mapping = Mapping.objects.get(pk=benchmark.mapping_id)
        resolve(mapping)
        if search:
            mapping.refresh_from_db()
            build(create_index(mapping.collection, name="keywords", encoder=ENCODER))
            run_benchmark(mapping, name=f"after {number}", matrix={"search_modes": ["sparse"]}, allow_missing=True)


def figures(benchmark: Benchmark) -> list[Any]:
    """Return all that pages, files and gates say of the runs on their own version."""
    benchmark = Benchmark.objects.get(pk=benchmark.pk)
    everything: list[Any] = []
    for evaluation in Evaluation.objects.filter(
        run__benchmark=benchmark, dataset_version=benchmark.dataset_version
    ).order_by("run__run_order"):
        run = evaluation.run
        losses = load_losses(run, evaluation)
        judged = load_judgments(run, evaluation.dataset_version)
        result = run.query_results.get(query__key="apple")
        everything.append(
            {
                "means": evaluation.means,
                "values": evaluation.values,
                "truth": (evaluation.truth_hash, evaluation.unresolved_count, evaluation.unresolved_share),
                "sections": load_section_means(evaluation),
                "coverage": load_coverage(evaluation),
                "losses": losses and (losses.tally, losses.queries, losses.is_current),
                "reasons": judged.reasons,
                "grades": load_grades(result),
            }
        )
    manifest = build_manifest(benchmark)
    files = {
        exporter.name: list(export(subject, exporter.name))
        for subject in (benchmark, benchmark.runs.order_by("run_order")[0])
        for exporter in list_exporters(subject)
    }
    return [*everything, manifest["collection"], manifest["mapping"], files]


@pytest.mark.parametrize(
    "search", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["imported", "searched"]
)
@pytest.mark.parametrize("name", CHANGES)
def test_figures_stay_those_of_what_was_searched(orchard, name, search):
    before = figures(orchard)
    assert before[0]["means"]["nDCG@10"] > 0.8
    change(orchard, CHANGES[name], search=search)
    rescore(orchard)
    assert figures(orchard) == before
    gate(orchard, rules=read_rules({"floors": {"nDCG@10": 0.5}}))  # refused if the truth were another


def test_judgments_made_later_find_documents_that_were_removed(orchard):
    """A round of the old runs grades what they found; the version that it makes measures them by it."""
    change(orchard, CHANGES["one removed"])
    set_judgment(orchard.mapping.dataset, "plum", {"document_id": "apple"}, 1)
    version = freeze(orchard.mapping.dataset)
    resolve(Mapping.objects.get(pk=orchard.mapping_id))
    rescore(orchard)
    run = Benchmark.objects.get(pk=orchard.pk).runs.get(config__search_mode="sparse")
    judged = load_judgments(run, version)
    query = version.queries.get(key="plum")
    assert {judged.find_external_id(key) for key in judged.truth.grades[query.pk]} == {"plum", "apple"}
    assert Evaluation.objects.get(run=run, dataset_version=version).unresolved_count == 1, "the olive alone"
    mapping = Mapping.objects.get(pk=orchard.mapping_id)
    assert mapping.counts["not_found"] == 3, "today's mapping lacks the apple twice"


def test_dropped_judgments_stay_dropped(orchard):
    mapping = orchard.mapping
    dropping = run_benchmark(mapping, name="drop", matrix={"search_modes": ["sparse"]}, unresolved="drop")
    before = figures(dropping)
    change(dropping, CHANGES["the missing one added"])
    rescore(dropping)
    assert figures(dropping) == before


def test_runs_of_two_states_can_be_compared(orchard):
    change(orchard, CHANGES["one removed"], search=True)
    later = Benchmark.objects.get(name="after 0")
    result = find_differences([orchard.runs.get(config__search_mode="sparse"), later.runs.get()])
    assert result.comparable
    assert [difference.about for difference in result.differences[:2]] == ["mapping", "collection"]
    assert "Their judgments refer to different documents" in result.warnings[0]
    assert (orchard.document_count, later.document_count) == (4, 3)


def test_page_names_the_documents_that_were_searched(orchard, admin_client: Client):
    change(orchard, CHANGES["all judged ones removed"])
    page = admin_client.get(reverse("admin:benchmark_results", args=[orchard.pk])).content.decode()
    facts = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page))
    assert "library, 4 documents It has changed since, and has 1 document now." in facts
    manifest = build_manifest(Benchmark.objects.get(pk=orchard.pk))
    state = CollectionState.objects.get()
    assert manifest["collection"] == {"name": "library", "fingerprint": state.fingerprint, "documents": 4}


def test_state_that_nobody_searched_leaves_no_trace(orchard):
    collection = orchard.mapping.collection
    import_documents(collection, without(pear=rewritten("pear")))
    assert list(FormerDocument.objects.values_list("document__external_id", "since", "until")) == [("pear", 0, 2)]
    import_documents(collection, without())
    import_documents(collection, without("pear"))
    assert FormerDocument.objects.count() == 1
    assert not Document.objects.filter(external_id="pear", removed_at=None).exists()


def test_launch_refuses_documents_that_changed_meanwhile(orchard, monkeypatch: pytest.MonkeyPatch):
    second = create_benchmark(orchard.mapping, name="second", matrix={"search_modes": ["sparse"]})
    import_documents(Collection.objects.get(), without("pear"))
    monkeypatch.setattr("apps.execution.launching.require_current", lambda mapping: None)
    with pytest.raises(ConflictError, match="are changing: launch the benchmark again afterwards"):
        launch(second)
    assert Benchmark.objects.get(pk=second.pk).state is None


def test_resumed_benchmark_keeps_its_state(orchard):
    orchard.runs.update(status="pending")
    Benchmark.objects.update(state=7)
    finish(orchard)
    assert Benchmark.objects.get(pk=orchard.pk).state == 7
    fresh = create_benchmark(orchard.mapping, name="fresh", matrix={"search_modes": ["sparse"]})
    assert finish(fresh).state == 1


CALL = re.compile(r"\bResolution\.objects\.(?!at\()|\.resolutions\.")
ALLOWED: dict[str, Callable[[str], bool]] = {"apps/mappings/resolving.py": lambda line: line.endswith(".delete()")}


def test_every_reader_of_resolutions_says_in_which_state():
    checkout = Path(__file__).resolve().parents[2]
    hits = [
        f"{path.relative_to(checkout)}: {line.strip()}"
        for path in (checkout / "apps").rglob("*.py")
        for line in path.read_text().splitlines()
        if CALL.search(line) and not ALLOWED.get(str(path.relative_to(checkout)), lambda line: False)(line)
    ]
    assert hits == []
