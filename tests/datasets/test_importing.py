"""Importing datasets as frozen versions, and the command import_dataset."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from apps.datasets.versions import hash_content, hash_version
from benchbench.errors import BenchbenchError, ConflictError

pytestmark = pytest.mark.django_db

RED = QueryRecord(
    "red", "red fruit", [JudgmentRecord({"document_id": "apple"}, 3), JudgmentRecord({"uri": "shop:plum"}, 0)]
)
BLUE = QueryRecord(
    "blue",
    "blue fruit",
    [JudgmentRecord({"document_id": "plum"}, 2, ["s1"], "llm", "judge-7", "clear")],
    slices=["easy", "colour"],
    category="colour",
    filters={"season": "autumn"},
    evidence=["blue"],
    metadata={"weight": 1.0, "far": 1e23, "none": -0.0, "ünï": [True, None]},
)
FRUIT = DatasetRecord("fruit", [RED, BLUE], label="1", description="Fruit by colour.", metadata={"judges": 2})


def contents_of(version: DatasetVersion) -> dict[str, dict[str, int]]:
    """What a version holds: query text → reference hash → grade."""
    return {
        f"{query.key}: {query.text}": {
            next(iter(judgment.doc_ref.values())): judgment.grade for judgment in version.judgments.filter(query=query)
        }
        for query in version.queries
    }


def test_it_makes_a_dataset_with_a_frozen_first_version(admin_user):
    imported = import_dataset(FRUIT, owner=admin_user)
    version, dataset = imported.version, imported.version.dataset
    assert (dataset.name, dataset.owner, dataset.description) == ("fruit", admin_user, "Fruit by colour.")
    assert dataset.metadata == {"judges": 2}
    assert (version.number, version.label, version.query_count, version.judgment_count) == (1, "1", 2, 3)
    assert version.frozen_at is not None
    assert version.content_hash == hash_content([RED, BLUE])
    assert imported.report.outcome == "created"
    assert (imported.report.queries, imported.report.judgments, imported.report.warnings) == (2, 3, ())
    assert contents_of(version) == {"red: red fruit": {"apple": 3, "shop:plum": 0}, "blue: blue fruit": {"plum": 2}}
    blue = Query.objects.get(key="blue")
    assert (blue.slices, blue.category, blue.filters) == (["easy", "colour"], "colour", {"season": "autumn"})
    judgment = blue.judgments.get()
    assert (judgment.section_refs, judgment.source, judgment.judge, judgment.note) == (
        ["s1"],
        "llm",
        "judge-7",
        "clear",
    )
    assert judgment.ref_hash == JudgmentRecord({"document_id": "plum"}, 1).ref_hash


def test_references_and_versions_are_hashed_by_content():
    assert JudgmentRecord({"uri": "ü", "document_id": "a"}, 1).ref_hash == (
        "643aea5d0bf0fc5b4ffa303425d8e9f95f5988721c0b7231911c59d882bd342d"
    )
    version = import_dataset(FRUIT).version
    assert hash_version(version) == version.content_hash
    shuffled = replace(RED, judgments=RED.judgments[::-1])
    assert hash_content([BLUE, shuffled]) == version.content_hash


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "rouge"}, {"slices": ["x"]}, {"category": "c"}, {"difficulty": "d"}, {"query_type": "t"},
        {"split": "s"}, {"filters": {"a": 1}}, {"expected_answer": "a"}, {"evidence": [1]}, {"notes": "n"},
        {"metadata": {"a": True}},
        {"judgments": RED.judgments[:1]}, {"judgments": [replace(RED.judgments[0], grade=1), RED.judgments[1]]},
    ],
    ids=str,
)  # fmt: skip
def test_the_hash_covers_all_that_counts(changes):
    assert hash_content([replace(RED, **changes)]) != hash_content([RED])


def test_it_recognises_equal_content():
    first = import_dataset(FRUIT).version
    again = import_dataset(replace(FRUIT, queries=[BLUE, RED]))
    assert (again.report.outcome, again.version) == ("unchanged", first)
    assert import_dataset(replace(FRUIT, label="")).report.outcome == "unchanged"
    assert import_dataset(replace(FRUIT, label="2")).version == first
    assert (DatasetVersion.objects.count(), Judgment.objects.count()) == (1, 3)


@pytest.mark.parametrize("label", ["1", ""])
def test_it_refuses_other_content_without_a_new_version(label):
    import_dataset(FRUIT)
    with pytest.raises(ConflictError, match=r'The dataset "fruit" is frozen with other content.*state a new version'):
        import_dataset(replace(FRUIT, queries=[RED], label=label))
    assert Query.objects.count() == 2


def test_new_version_reuses_equal_rows_and_preserves_old_version():
    first = import_dataset(FRUIT).version
    before = contents_of(first)
    judgment = Judgment.objects.get(doc_ref={"uri": "shop:plum"}).pk
    red = replace(
        RED,
        judgments=[JudgmentRecord({"document_id": "apple"}, 1), RED.judgments[1], JudgmentRecord({"uri": "new"}, 2)],
    )
    green = QueryRecord("green", "green fruit")
    imported = import_dataset(replace(FRUIT, queries=[red, green], label="2", metadata={}))
    second = imported.version
    assert (imported.report.outcome, second.number, second.label) == ("new version", 2, "2")
    assert contents_of(second) == {"red: red fruit": {"shop:plum": 0, "apple": 1, "new": 2}, "green: green fruit": {}}
    assert contents_of(first) == before
    assert hash_version(first) == first.content_hash
    assert hash_version(second) == second.content_hash
    assert (second.query_count, second.judgment_count) == (second.queries.count(), second.judgments.count()) == (2, 3)
    assert second.judgments.filter(pk=judgment).exists()
    assert Query.objects.filter(key="red").count() == 1
    assert second.dataset.metadata == {}
    assert import_dataset(FRUIT).version == first, "an older version is recognised by its label"
    with pytest.raises(ConflictError, match='states version "1": state a new version'):
        import_dataset(replace(FRUIT, queries=[red, green]))


def test_changed_query_keeps_judgments_and_removed_query_may_return():
    first = import_dataset(FRUIT).version
    second = import_dataset(replace(FRUIT, label="2", queries=[replace(RED, text="crimson fruit")])).version
    third = import_dataset(replace(FRUIT, label="3", queries=[RED, BLUE])).version
    assert contents_of(second) == {"red: crimson fruit": {"apple": 3, "shop:plum": 0}}
    assert contents_of(third) == contents_of(first)
    assert third.content_hash == first.content_hash


def test_an_import_stays_with_its_owner(admin_user):
    import_dataset(FRUIT)
    second = import_dataset(replace(FRUIT, queries=[RED]), owner=admin_user)
    assert second.report.outcome == "created"
    assert Dataset.objects.count() == 2


def test_it_takes_the_name_given_before_the_name_stated():
    assert import_dataset(FRUIT, name=" autumn ", description="Mine.").version.dataset.name == "autumn"
    assert Dataset.objects.get().description == "Mine."
    with pytest.raises(BenchbenchError, match="needs a name"):
        import_dataset(replace(FRUIT, name=""))


def test_it_warns_of_queries_that_nothing_answers():
    zero = QueryRecord("zero", "x", [JudgmentRecord({"uri": "u"}, 0)])
    bare = [QueryRecord(f"bare{number}", "x") for number in range(7)]
    report = import_dataset(replace(FRUIT, queries=[RED, zero, *bare], warnings=["Counted twice."])).report
    assert report.warnings == (
        "Counted twice.",
        "Queries without a judgment: bare0, bare1, bare2, bare3, bare4 and 2 more.",
        "Queries whose judgments are all 0 or less, so that nothing is relevant: zero.",
        "Texts that several queries have, each measured by its own judgments: x.",
    )


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (replace(FRUIT, queries=[]), "The dataset has no query"),
        (replace(FRUIT, queries=[RED, RED]), "Two queries have the key 'red'"),
        (replace(FRUIT, label="l" * 51), "more than 50 characters"),
        (replace(FRUIT, metadata={"a": "\0"}), "says about itself holds a character that cannot be stored"),
        (replace(FRUIT, queries=[replace(RED, key="k" * 201)]), "more than 200 characters in its key"),
        (replace(FRUIT, queries=[replace(RED, text="  ")]), "'red' needs a key and a text that are not blank"),
        (replace(FRUIT, queries=[replace(RED, slices=["s" * 101])]), "a slice of more than 100 characters"),
        (replace(FRUIT, queries=[replace(RED, notes="\0")]), "'red' holds a character that cannot be stored"),
        (replace(FRUIT, queries=[replace(RED, judgments=[JudgmentRecord({"uri": "\0"}, 1)])]), "cannot be stored"),
        (replace(FRUIT, queries=[replace(RED, judgments=[JudgmentRecord({"uri": "u"}, 40_000)])]), "out of range"),
        (replace(FRUIT, queries=[replace(RED, judgments=RED.judgments[:1] * 2)]), "judges a document twice"),
        (
            replace(FRUIT, queries=[replace(RED, judgments=[JudgmentRecord({"uri": "u"}, 1, judge="j" * 201)])]),
            "a judge of more than 200",
        ),
        (replace(FRUIT, queries=[replace(RED, text="a" * 1_000_000)]), "more than 100,000 characters in its text"),
        (
            replace(FRUIT, queries=[replace(RED, judgments=[JudgmentRecord({"document_id": "d" * 1_000_000}, 1)])]),
            "'red' has a document_id of more than 2,000 characters",
        ),
        (
            replace(FRUIT, queries=[replace(RED, judgments=[JudgmentRecord({"uri": "u"}, 1, ["s" * 1_000_000])])]),
            "'red' has a section of more than 2,000 characters",
        ),
    ],
)
def test_unstorable_dataset_is_refused_and_nothing_stored(record, sentence):
    with pytest.raises(DatasetError, match=sentence):
        import_dataset(record)
    assert not Dataset.objects.exists()


def test_the_longest_text_and_reference_are_kept():
    longest = replace(RED, text="a" * 100_000, judgments=[JudgmentRecord({"uri": "u" * 2_000}, 1, ["s" * 2_000])])
    version = import_dataset(replace(FRUIT, queries=[longest])).version
    assert hash_version(version) == version.content_hash


def test_keys_and_references_that_look_alike_are_kept_apart():
    apart = [JudgmentRecord({"document_id": "caf\u00e9"}, 1), JudgmentRecord({"document_id": "cafe\u0301"}, 0)]
    queries = [replace(RED, judgments=apart), replace(RED, key="r\u0435d"), replace(RED, key="Red")]
    imported = import_dataset(replace(FRUIT, queries=queries))
    assert set(imported.version.queries.values_list("key", flat=True)) == {"red", "r\u0435d", "Red"}
    assert imported.version.judgments.filter(query__key="red").count() == 2


def write(path: Path, **changes: object) -> Path:
    query = {"query_key": "q1", "query_text": "red", "relevant_docs": ["u", "u"]} | changes
    path.write_text(json.dumps({"metadata": {"name": "fruit"}, "queries": [query, {"query_key": "q2", "query": "x"}]}))
    return path


def test_it_imports_and_reports(tmp_path, capsys):
    call_command("import_dataset", write(tmp_path / "fruit.json"))
    out, err = capsys.readouterr()
    assert out == "fruit v1 (created): 2 queries, 1 judgment, 1 duplicate.\n"
    assert err == "Queries without a judgment: q2.\n"


def test_command_creates_a_labelled_version_and_reports_json(tmp_path, capsys):
    file = write(tmp_path / "fruit.json")
    call_command("import_dataset", file, name="colours")
    write(file, query_text="crimson")
    with pytest.raises(CommandError, match="state a new version"):
        call_command("import_dataset", file, name="colours")
    capsys.readouterr()
    call_command("import_dataset", file, name="colours", label="2026-11", json=True)
    assert json.loads(capsys.readouterr().out) == {
        "dataset": str(Dataset.objects.get().pk),
        "version": 2,
        "outcome": "new version",
        "queries": 2,
        "judgments": 1,
        "duplicates": 1,
        "dangling": None,
        "warnings": ["Queries without a judgment: q2."],
    }
    assert DatasetVersion.objects.get(number=2).label == "2026-11"


def test_its_errors_are_sentences(tmp_path):
    with pytest.raises(CommandError, match=r"queries\[0\]\.query_text \(query 'q1'\) must not be blank\."):
        call_command("import_dataset", write(tmp_path / "fruit.json", query_text=""))
    with pytest.raises(CommandError, match="absent does not exist"):
        call_command("import_dataset", tmp_path / "absent")
    assert not Dataset.objects.exists()
