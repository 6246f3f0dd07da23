"""Importing documents."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.collections.folders import read_files, scan
from apps.collections.importing import (
    CollectionImportError,
    ImportReport,
    create_collection,
    import_collection,
    import_documents,
)
from apps.collections.models import Collection, Document
from apps.collections.records import DocumentError, DocumentRecord, SectionRecord
from apps.collections.sources import Source, open_source
from benchbench.errors import BenchbenchError, ConflictError
from tests.sessions import elsewhere, until_waited_for
from tests.waiting import HANG_SECONDS

APPLE = DocumentRecord("apple", "Apple", "A red fruit.", uri="shop:apple", metadata={"season": "autumn"})
PEAR = DocumentRecord("pear", "Pear", "A green fruit.")
PLUM = DocumentRecord("plum", "Plum", "A blue fruit.")


@pytest.fixture
def fruit(db: None) -> Collection:
    return create_collection("fruit")


@pytest.mark.django_db(transaction=True)
def test_a_second_import_waits_for_the_first() -> None:
    collection = create_collection("fruit")
    with transaction.atomic():
        import_documents(collection, [APPLE])
        second = elsewhere(lambda: import_documents(collection, [APPLE, PEAR]))
        until_waited_for(second)
    assert second.result(HANG_SECONDS) == ImportReport(created=1, unchanged=1)


def test_it_stores_documents(fruit: Collection) -> None:
    report = import_documents(fruit, [PEAR, APPLE])
    assert report == ImportReport(created=2)
    assert str(report) == "2 created, 0 updated, 0 unchanged, 0 removed, 0 duplicates"
    fruit.refresh_from_db()
    assert fruit.document_count == 2
    apple, pear = fruit.documents.all()
    assert (apple.external_id, apple.title, apple.text, apple.uri) == ("apple", "Apple", "A red fruit.", "shop:apple")
    assert apple.metadata == {"season": "autumn"}
    assert pear.content_hash == sha256(b"Pear\nA green fruit.").hexdigest()


def test_unchanged_documents_are_not_rewritten(fruit: Collection) -> None:
    import_documents(fruit, [APPLE, PEAR])
    before = list(fruit.documents.values_list("id", "updated_at"))
    fingerprint = fruit.fingerprint
    assert import_documents(fruit, [PEAR, APPLE]) == ImportReport(unchanged=2)
    assert list(fruit.documents.values_list("id", "updated_at")) == before
    assert fruit.fingerprint == fingerprint


@pytest.mark.parametrize(
    "changes",
    [{"text": "Brown."}, {"title": "P."}, {"uri": "u"}, {"metadata": {"a": 1}}, {"file_name": "f"}],
    ids=lambda changes: next(iter(changes)),
)
def test_changed_documents_are_updated_in_place(fruit: Collection, changes: dict[str, object]) -> None:
    import_documents(fruit, [APPLE, PEAR])
    before = fruit.documents.get(external_id="pear")
    changed = replace(PEAR, **changes)  # type: ignore[arg-type]
    assert import_documents(fruit, [APPLE, changed]) == ImportReport(updated=1, unchanged=1)
    after = fruit.documents.get(external_id="pear")
    assert (after.id, after.uuid) == (before.id, before.uuid)
    assert {name: getattr(after, name) for name in changes} == changes
    assert after.content_hash == changed.hash()


def test_missing_documents_are_marked_removed_and_can_return(fruit: Collection) -> None:
    import_documents(fruit, [APPLE, PEAR])
    full = fruit.fingerprint
    assert import_documents(fruit, [APPLE]) == ImportReport(unchanged=1, removed=1)
    pear = fruit.documents.get(external_id="pear")
    assert pear.removed_at is not None
    assert fruit.document_count == 1
    assert fruit.fingerprint != full
    assert import_documents(fruit, [APPLE]) == ImportReport(unchanged=1), "it is removed once"
    assert import_documents(fruit, [APPLE, PEAR]) == ImportReport(updated=1, unchanged=1)
    pear.refresh_from_db()
    assert pear.removed_at is None
    assert fruit.fingerprint == full


def test_missing_documents_are_kept_on_request(fruit: Collection) -> None:
    import_documents(fruit, [APPLE, PEAR])
    assert import_documents(fruit, [PLUM], remove_missing=False) == ImportReport(created=1)
    assert fruit.document_count == 3


def test_it_counts_documents_stated_twice_alike(fruit: Collection) -> None:
    other_order = replace(APPLE, metadata=dict(reversed(APPLE.metadata.items())), location="line 9")
    assert import_documents(fruit, [APPLE, PEAR, other_order, APPLE]) == ImportReport(created=2, duplicates=2)


def test_conflicting_duplicate_ids_are_refused_and_nothing_stored(fruit: Collection) -> None:
    import_documents(fruit, [PLUM])
    fingerprint = fruit.fingerprint
    filler = [DocumentRecord(f"filler {number}", "", "") for number in range(1500)]
    second = replace(APPLE, text="Not a fruit.", location="corpus.jsonl, line 1502")
    sentence = r"'apple' \(corpus\.jsonl, line 1502\) occurs before with other .* such as \"version\": \["
    with pytest.raises(DocumentError, match=sentence):
        import_documents(fruit, [APPLE, *filler, second])
    assert [document.external_id for document in fruit.documents.all()] == ["plum"]
    fruit.refresh_from_db()
    assert fruit.fingerprint == fingerprint


def test_it_keeps_ids_that_look_alike_apart(fruit: Collection) -> None:
    ids = ["apple", "\u0430pple", "Apple"]
    report = import_documents(fruit, [DocumentRecord(id, id, "red") for id in ids])
    assert (report.created, Document.objects.filter(collection=fruit).count()) == (3, 3)


def test_it_refuses_an_import_of_nothing(fruit: Collection) -> None:
    import_documents(fruit, [APPLE])
    with pytest.raises(CollectionImportError, match="no documents to import"):
        import_documents(fruit, [])
    assert fruit.documents.filter(removed_at=None).count() == 1


def test_several_chunks_are_stored_with_progress(fruit: Collection) -> None:
    messages: list[int] = []
    records = (DocumentRecord(str(number), "", f"text {number}") for number in range(2500))
    assert import_documents(fruit, records, on_progress=messages.append).created == 2500
    assert messages == [1000, 2000, 2500]


SECTIONS = (SectionRecord("s1", "Colour", 1, 0, 5), SectionRecord("s2", "Kind", 2, 6, 12))


def test_a_new_collection_is_never_searched_by_id(fruit: Collection) -> None:
    """Without statistics PostgreSQL reads the whole collection for each such query: the time would be quadratic."""
    records = [DocumentRecord(str(number), "", "colour: kind", sections=SECTIONS) for number in range(1500)]
    with CaptureQueriesContext(connection) as captured:
        assert import_documents(fruit, records) == ImportReport(created=1500)
    assert not [query["sql"] for query in captured if '"external_id" IN' in query["sql"]]
    assert [document.sections.count() for document in fruit.documents.order_by("?")[:5]] == [2] * 5
    assert import_documents(fruit, [*records, APPLE]) == ImportReport(created=1, unchanged=1500)


def test_sections_are_replaced_only_if_they_differ(fruit: Collection) -> None:
    import_documents(fruit, [replace(APPLE, sections=SECTIONS), replace(PEAR, sections=SECTIONS)])
    apple, pear = fruit.documents.all()
    assert [(s.section_id, s.ordinal, s.heading, s.level, s.start, s.end) for s in apple.sections.all()] == [
        ("s1", 0, "Colour", 1, 0, 5),
        ("s2", 1, "Kind", 2, 6, 12),
    ]
    stored = [section.pk for section in pear.sections.all()]
    report = import_documents(
        fruit, [replace(APPLE, sections=SECTIONS[::-1]), replace(PEAR, sections=SECTIONS, uri="shop:pear")]
    )
    assert report == ImportReport(updated=2)
    assert [section.section_id for section in apple.sections.all()] == ["s2", "s1"]
    assert [section.pk for section in pear.sections.all()] == stored


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (replace(PEAR, external_id=" "), "has no id"),
        (replace(PEAR, external_id="p" * 501), "has more than 500 characters in its external_id"),
        (replace(PEAR, file_name="p" * 501), "has more than 500 characters in its file_name"),
        (replace(PEAR, uri="é" * 1001), "has more than 2000 bytes in its uri"),
        (replace(PEAR, text="a\0b"), r"'pear' \(line 3\) holds a character that cannot be stored \(NUL"),
        (replace(PEAR, title="\udc80"), "cannot be stored"),
        (replace(PEAR, metadata={"a": ["\0"]}), "cannot be stored"),
        (replace(PEAR, metadata={"a": float("nan")}), "holds NaN"),
        (replace(PEAR, sections=(SECTIONS[0], SECTIONS[0])), "has two sections with the id 's1'"),
        (replace(PEAR, sections=(SectionRecord(""),)), "has a section whose id is blank"),
        (
            replace(PEAR, sections=(SectionRecord("s", end=99),)),
            "has a section 's' that ends before it begins or outside",
        ),
    ],
)
def test_unstorable_documents_are_refused(fruit: Collection, record: DocumentRecord, sentence: str) -> None:
    with pytest.raises(DocumentError, match=sentence):
        import_documents(fruit, [APPLE, replace(record, location="line 3")])
    assert not fruit.documents.exists()


def test_it_stores_the_longest_keys_that_it_admits(fruit: Collection) -> None:
    noise = "".join(sha256(str(number).encode()).hexdigest() for number in range(40))
    widest = "".join(chr(0x10000 + int(noise[i : i + 4], 16)) for i in range(0, 2000, 4))
    record = DocumentRecord(widest, "", "", file_name=widest, uri=noise[:2000])
    assert import_documents(fruit, [record]).created == 1


def test_fingerprint_covers_document_content_but_not_order(fruit: Collection) -> None:
    def state(*records: DocumentRecord) -> str:
        import_documents(fruit, records)
        return fruit.fingerprint

    hashed = replace(PEAR, content_hash="a" * 64)
    states = [
        state(APPLE, PEAR),
        state(APPLE, replace(PEAR, external_id="p")),
        state(APPLE, hashed),
        state(APPLE, replace(hashed, text="Another reading of the same bytes.")),
        state(APPLE, replace(hashed, title="Another title of the same bytes")),
        state(APPLE, replace(hashed, uri="file:///pear")),
        state(APPLE, replace(hashed, file_name="pear.txt")),
        state(APPLE, replace(hashed, metadata={"colour": "green"})),
        state(APPLE),
    ]
    assert len(set(states)) == len(states)
    assert state(PEAR, APPLE) == states[0]
    declared = [[r.external_id, r.hash(), r.hash(), r.uri, r.file_name, json.dumps(r.metadata)] for r in (APPLE, PEAR)]
    lines = ["\0".join(fields) + "\n" for fields in declared]
    assert states[0] == sha256("".join(lines).encode()).hexdigest()


def test_the_fingerprint_orders_ids_by_code_point(fruit: Collection) -> None:
    records = [DocumentRecord(name, "", "") for name in ("b", "A", "a", "é", "Z", "10", "9")]
    import_documents(fruit, records)
    ids = [document.external_id for document in fruit.documents.all()]
    assert ids == ["10", "9", "A", "Z", "a", "b", "é"]


def test_a_name_is_taken_once_per_owner(fruit: Collection, admin_user: object) -> None:
    create_collection("fruit", owner=admin_user)
    with pytest.raises(ConflictError, match='collection "fruit" already exists: choose another name'):
        create_collection(" fruit ")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "n" * 201])
def test_a_collection_needs_a_name(db: None, name: str) -> None:
    with pytest.raises(BenchbenchError, match="name"):
        create_collection(name)


def test_a_failed_import_leaves_no_new_collection_behind(db: None) -> None:
    with pytest.raises(DocumentError):
        import_collection(Source(iter([replace(PEAR, text="\0")])), name="fruit")
    assert not Collection.objects.exists()


def test_it_counts_documents_without_a_text(fruit: Collection) -> None:
    report = import_documents(fruit, [PEAR, replace(PEAR, external_id="blank", text=" \n")])
    assert (report.empty, str(report)) == (1, "2 created, 0 updated, 0 unchanged, 0 removed, 0 duplicates, 1 empty")
    assert "empty" not in str(import_documents(fruit, [PEAR]))


def test_it_imports_a_folder_and_recognises_its_files_again(fruit: Collection, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\ntext")
    (tmp_path / "b.html").write_text("<h1>B</h1>")
    assert import_documents(fruit, read_files(scan(tmp_path))) == ImportReport(created=2)
    (tmp_path / "a.md").write_text("# A\n\nother text")
    assert import_documents(fruit, read_files(scan(tmp_path))) == ImportReport(updated=1, unchanged=1)


def test_it_finds_the_corpus_in_a_directory(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    assert [record.external_id for record in open_source(tmp_path).documents] == ["a"]
    with pytest.raises(BenchbenchError, match="URI prefix is for folders"):
        open_source(tmp_path, uri_prefix="x:")
    with pytest.raises(BenchbenchError, match="does not exist"):
        open_source(tmp_path / "absent")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(BenchbenchError, match="neither a folder nor a corpus"):
        open_source(tmp_path / "notes.txt")
    (tmp_path / "corpus.jsonl").rename(tmp_path / "queries.jsonl")
    with pytest.raises(BenchbenchError, match="import those as a dataset"):
        open_source(tmp_path / "queries.jsonl")
