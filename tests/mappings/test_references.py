"""The rules of resolution as a table: a small library, references to it, and what becomes of each."""

import pytest

from apps.datasets.records import DOC_REF_KEYS
from apps.mappings.references import FIELDS, Match, Outcome, Verdict, resolve_reference

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
def test_it_resolves_what_names_one_document(doc_ref, key, document_id):
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
def test_it_says_what_no_document_has(doc_ref, reason):
    assert resolve_reference(doc_ref, LIBRARY) == Verdict(Outcome.NOT_FOUND, next(iter(doc_ref)), reason=reason)


def test_the_first_key_decides_even_when_it_finds_nothing():
    doc_ref = {"document_id": "doc-9", "uri": "file:///a.md", "content_hash": HASH, "file_name": "a.md"}
    assert resolve_reference(doc_ref, LIBRARY).outcome == Outcome.NOT_FOUND
    doc_ref = {"uri": "file:///copied.md", "content_hash": HASH}
    assert resolve_reference(doc_ref, LIBRARY).outcome == Outcome.AMBIGUOUS
    doc_ref = {"document_id": "", "uri": "file:///a.md"}
    assert resolve_reference(doc_ref, LIBRARY).outcome == Outcome.INVALID_REF


NO_KEY = "The reference has none of the keys document_id, uri, content_hash, path, file_name."


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
        ({"uri": ""}, "uri", "The uri is blank."),
        ({"file_name": " \t"}, "file_name", "The file_name is blank."),
        (
            {"content_hash": "abc"},
            "content_hash",
            "The content_hash 'abc' is not 64 hexadecimal digits (SHA-256).",
        ),
        (
            {"content_hash": "g" * 64},
            "content_hash",
            f"The content_hash '{'g' * 64}' is not 64 hexadecimal digits (SHA-256).",
        ),
    ],
)
def test_it_calls_nonsense_by_its_name(doc_ref, key, reason):
    assert resolve_reference(doc_ref, LIBRARY) == Verdict(Outcome.INVALID_REF, key, reason=reason)


def test_it_knows_the_keys_that_datasets_may_state_in_their_order():
    assert tuple(FIELDS) == DOC_REF_KEYS
