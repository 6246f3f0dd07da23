"""Creating and deleting mappings, the command resolve_mapping, and the rules of resolution as a table."""

import json

import pytest
from django.core.management import CommandError, call_command

from apps.collections.models import Collection
from apps.datasets.models import Dataset, Judgment
from apps.datasets.records import DOC_REF_KEYS
from apps.mappings.creating import MappingExistsError, create_mapping, delete_dataset, delete_mapping, find_mapping
from apps.mappings.models import Mapping, Resolution
from apps.mappings.references import FIELDS, Match, Outcome, Verdict, resolve_reference
from apps.mappings.resolving import resolve
from benchbench.errors import ConflictError
from tests.factories import make_collection, make_dataset


@pytest.mark.django_db
def test_it_is_called_after_dataset_and_collection(admin_user):
    mapping = create_mapping(make_dataset(), make_collection(), owner=admin_user)
    assert (mapping.name, mapping.owner, mapping.status) == ("questions on library", admin_user, "pending")


@pytest.mark.django_db
def test_default_name_is_unused(admin_user):
    long, docs = make_dataset(name="q" * 200), make_collection()
    first, second = (create_mapping(long, make_collection("c" * 199 + end)) for end in "12")
    assert (first.name, second.name) == ("q" * 200, "q" * 196 + " (2)")
    create_mapping(make_dataset(name="x on y"), make_collection("z"))
    assert create_mapping(make_dataset(name="x"), make_collection("y on z")).name == "x on y on z (2)"
    shared = make_dataset(name="adi")
    mine = Dataset.objects.create(name="adi", owner=admin_user)
    names = [create_mapping(dataset, docs, owner=admin_user).name for dataset in (shared, mine)]
    assert names == ["adi on library", "adi on library (2)"]


@pytest.mark.django_db
def test_it_refuses_a_second_mapping_of_the_same_two():
    dataset, collection = make_dataset(), make_collection()
    create_mapping(dataset, collection, name="first")
    with pytest.raises(MappingExistsError, match='by the mapping "first": resolve that one again'):
        create_mapping(dataset, collection, name="second")
    assert Mapping.objects.count() == 1


@pytest.mark.django_db
def test_private_mappings_do_not_conflict_between_owners(django_user_model):
    alice, bob = (django_user_model.objects.create_user(name, is_staff=True) for name in ("alice", "bob"))
    dataset, collection = make_dataset(), make_collection()
    his = create_mapping(dataset, collection, owner=bob)
    assert find_mapping(dataset, collection, owner=alice) is None
    hers = create_mapping(dataset, collection, owner=alice)
    assert (hers.name, find_mapping(dataset, collection, owner=alice)) == (his.name, hers)
    assert find_mapping(dataset, collection) == his, "a command that names no owner finds everybody's"
    shared = create_mapping(dataset, collection)
    assert find_mapping(dataset, collection) == shared
    with pytest.raises(MappingExistsError, match="resolve that one again"):
        create_mapping(dataset, collection)
    hers.delete()
    assert find_mapping(dataset, collection, owner=alice) == shared
    with pytest.raises(MappingExistsError, match="resolve that one again"):
        create_mapping(dataset, collection, owner=alice)


@pytest.mark.django_db
def test_it_refuses_a_name_that_its_owner_uses_already(admin_user):
    collection = make_collection()
    create_mapping(make_dataset(name="one"), collection, name="mine")
    create_mapping(make_dataset(name="two"), collection, name="mine", owner=admin_user)
    with pytest.raises(MappingExistsError, match='A mapping "mine" exists already'):
        create_mapping(make_dataset(name="three"), collection, name="mine")


@pytest.mark.django_db
def test_mapping_being_resolved_is_not_deleted(settings):
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_DOCS = 0
    mapping = resolve(create_mapping(make_dataset(), make_collection(documents=[{}]))).mapping
    with pytest.raises(ConflictError, match="used by the operation"):
        delete_mapping(mapping)


@pytest.mark.django_db
def test_it_deletes_a_dataset_with_its_versions_and_mappings():
    dataset = make_dataset({"q1": [({"document_id": "d1"}, 1)]})
    for name in ("shelf", "library"):
        resolve(create_mapping(dataset, make_collection(name, documents=[{}])))
    delete_dataset(dataset)
    assert not any(model.objects.exists() for model in (Dataset, Judgment, Mapping, Resolution))
    assert Collection.objects.count() == 2


@pytest.fixture
def mapping(transactional_db) -> Mapping:
    judgments = [({"document_id": "a"}, 1), ({"uri": "file:///a"}, 2), ({"document_id": "x"}, 1)]
    library = make_collection(documents=[{"external_id": "a", "uri": "file:///a"}])
    return create_mapping(make_dataset({"q1": judgments}), library, name="trial")


@pytest.mark.parametrize("limit", [0, 100], ids=["queued", "at once"])
def test_resolve_mapping_waits_and_reports_the_result(mapping, capsys, settings, limit):
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = limit
    call_command("resolve_mapping", "trial", "--json")
    assert json.loads(capsys.readouterr().out) == {
        "id": str(mapping.pk),
        "name": "trial",
        "status": "partial",
        "dataset_version": 1,
        "mapped": 2,
        "total": 3,
        "counts": {"resolved": 2, "ambiguous": 0, "not_found": 1, "invalid_ref": 0, "conflicts": 1},
    }
    call_command("resolve_mapping", str(mapping.pk))
    assert capsys.readouterr().out == (
        'Mapping "trial" is partial: 2 of 3 judgments (not found 1, conflicts 1). '
        'Without a document: q1 {"document_id": "x"}.\n'
    )


def test_resolve_mapping_needs_one_mapping(mapping, admin_user):
    with pytest.raises(CommandError, match=r"The mapping 'trail' was not found; choose one of trial\."):
        call_command("resolve_mapping", "trail")
    create_mapping(make_dataset(name="other"), mapping.collection, name="trial", owner=admin_user)
    with pytest.raises(CommandError, match="Several mappings are named 'trial'"):
        call_command("resolve_mapping", "trial")


HASH = "ab" * 32
TWIN = "cd" * 32
UUID = "0b9c3f5e-7d5c-4a55-9a0f-0c1d2e3f4a5b"
OTHER_UUID = "11111111-2222-4333-8444-555555555555"

# Document 1 has everything; 2 and 3 are copies under other names; the external id of 4 is the UUID of 1.
LIBRARY = {
    ("external_id", "doc-1"): Match(1, 1),
    ("external_id", OTHER_UUID): Match(4, 1),
    ("uuid", UUID): Match(1, 1),
    ("uuid", OTHER_UUID): Match(2, 1),
    ("uri", "file:///a.md"): Match(1, 1),
    ("uri", "file:///copied.md"): Match(2, 2),
    ("content_hash", HASH): Match(1, 1),
    ("content_hash", TWIN): Match(2, 3),
    ("file_name", "a.md"): Match(1, 1),
    ("file_name", "README.md"): Match(2, 12),
}


@pytest.mark.parametrize(
    ("doc_ref", "key", "document_id"),
    [
        ({"document_id": "doc-1"}, "document_id", 1),
        ({"document_id": UUID}, "document_id", 1),
        ({"document_id": UUID.upper()}, "document_id", 1),
        ({"document_id": UUID.replace("-", "")}, "document_id", 1),
        ({"document_id": OTHER_UUID}, "document_id", 4),  # an external id comes before a public one
        ({"uri": "file:///a.md"}, "uri", 1),
        ({"content_hash": HASH}, "content_hash", 1),
        ({"content_hash": HASH.upper()}, "content_hash", 1),
        ({"path": "file:///a.md"}, "path", 1),
        ({"file_name": "a.md"}, "file_name", 1),
        ({"uri": None, "file_name": "a.md"}, "file_name", 1),  # null is absent
        ({"note": 7, "file_name": "a.md"}, "file_name", 1),  # other keys say nothing
        ({"file_name": "README.md", "document_id": "doc-1"}, "document_id", 1),  # order of keys, not of writing
    ],
)
def test_references_to_one_document_are_resolved(doc_ref, key, document_id):
    assert resolve_reference(doc_ref, LIBRARY) == Verdict(Outcome.RESOLVED, key, document_id)


@pytest.mark.parametrize(
    ("doc_ref", "reason"),
    [
        ({"uri": "file:///copied.md"}, "2 documents have the uri 'file:///copied.md'."),
        ({"path": "file:///copied.md"}, "2 documents have the path 'file:///copied.md'."),
        ({"content_hash": TWIN}, f"3 documents have the content_hash '{TWIN}'."),
        ({"file_name": "README.md"}, "12 documents have the file_name 'README.md'."),
        ({"file_name": "README.md", "uri": None}, "12 documents have the file_name 'README.md'."),
    ],
)
def test_it_does_not_choose_among_several_documents(doc_ref, reason):
    assert resolve_reference(doc_ref, LIBRARY) == Verdict(Outcome.AMBIGUOUS, next(iter(doc_ref)), reason=reason)


@pytest.mark.parametrize(
    ("doc_ref", "reason"),
    [
        ({"document_id": "doc-9"}, "No document has the document_id 'doc-9'."),
        ({"document_id": "DOC-1"}, "No document has the document_id 'DOC-1'."),
        ({"document_id": " doc-1"}, "No document has the document_id ' doc-1'."),
        ({"uri": "file:///z.md"}, "No document has the uri 'file:///z.md'."),
        ({"content_hash": "00" * 32}, f"No document has the content_hash '{'00' * 32}'."),
        ({"path": "a.md"}, "No document has the path 'a.md'."),
        ({"file_name": "z" * 300}, f"No document has the file_name '{'z' * 99}…'."),
    ],
)
def test_unmatched_reference_gives_the_reason(doc_ref, reason):
    assert resolve_reference(doc_ref, LIBRARY) == Verdict(Outcome.NOT_FOUND, next(iter(doc_ref)), reason=reason)


def test_the_first_key_decides_even_when_it_finds_nothing():
    doc_ref = {"document_id": "doc-9", "uri": "file:///a.md", "content_hash": HASH, "file_name": "a.md"}
    assert resolve_reference(doc_ref, LIBRARY).outcome == Outcome.NOT_FOUND
    doc_ref = {"uri": "file:///copied.md", "content_hash": HASH}
    assert resolve_reference(doc_ref, LIBRARY).outcome == Outcome.AMBIGUOUS
    doc_ref = {"document_id": "", "uri": "file:///a.md"}
    assert resolve_reference(doc_ref, LIBRARY).outcome == Outcome.INVALID_REF


NO_KEY = "The reference must have one of the keys document_id, uri, content_hash, path, file_name."


@pytest.mark.parametrize(
    ("doc_ref", "key", "reason"),
    [
        ("file:///a.md", "", "The reference is not an object."),
        (None, "", "The reference is not an object."),
        ([{"uri": "file:///a.md"}], "", "The reference is not an object."),
        ({}, "", NO_KEY),
        ({"url": "file:///a.md"}, "", NO_KEY),
        ({"uri": None, "file_name": None}, "", NO_KEY),
        ({"document_id": 17}, "document_id", "The document_id is not a string."),
        ({"uri": ["file:///a.md"]}, "uri", "The uri is not a string."),
        ({"uri": False}, "uri", "The uri is not a string."),
        ({"uri": ""}, "uri", "The uri must not be blank."),
        ({"file_name": " \t"}, "file_name", "The file_name must not be blank."),
        ({"content_hash": "abc"}, "content_hash", "The content_hash 'abc' is not 64 hexadecimal digits (SHA-256)."),
        (
            {"content_hash": "g" * 64},
            "content_hash",
            f"The content_hash '{'g' * 64}' is not 64 hexadecimal digits (SHA-256).",
        ),
    ],
)
def test_it_calls_nonsense_by_its_name(doc_ref, key, reason):
    assert resolve_reference(doc_ref, LIBRARY) == Verdict(Outcome.INVALID_REF, key, reason=reason)


def test_fields_match_dataset_reference_keys_in_order():
    assert tuple(FIELDS) == DOC_REF_KEYS
