"""Texts that others wrote, and which are stored: each can be stored, and has a limit, or is refused."""

import json
from typing import Any

import pytest
from django.db import models

from apps.accounts.single_sign_on import LONGEST_NAME, read_person
from apps.collections.records import DocumentError, DocumentRecord
from apps.engines.answers import LONGEST_SNIPPET, LONGEST_TITLE, Paths, map_answer
from apps.engines.errors import AnswerError
from apps.operations.handlers import MAX_CHARACTERS, Faults
from benchbench.errors import LONGEST, BenchbenchError, ConflictError, error_text
from benchbench.files.runs import LONGEST_NAME as LONGEST_FILE_NAME
from benchbench.files.runs import read_run_file
from benchbench.files.trec import LONGEST_TAG
from benchbench.reading.strict_json import MalformedFileError, parse
from benchbench.texts.storable import clean_text, is_storable
from tests.checkout import own_models

HOSTILE = "a\0b\ud800c" + "x" * 3_000_000
PATHS = Paths(hits="hits", id="id", title="title", snippet="text")


def map_hit(name: str) -> str:
    [hit], _ = map_answer({"hits": [{"id": "a", name: HOSTILE}]}, PATHS)
    return hit.title or hit.snippet


def refuse_hit(hit: Any) -> str:
    with pytest.raises(AnswerError) as refused:
        map_answer({"hits": [hit]}, PATHS)
    return refused.value.message


def list_traceback(piece: int) -> str:
    faults = Faults()
    faults.add(HOSTILE, ValueError(HOSTILE))
    [pair] = faults.as_result()["tracebacks"].items() if "tracebacks" in faults.as_result() else faults.items()
    return pair[piece]


WRITERS = {
    "a message": (lambda: BenchbenchError(HOSTILE).message, LONGEST),
    "a message as text": (lambda: str(ConflictError(HOSTILE)), LONGEST),
    "the field of a message": (lambda: BenchbenchError("a", field=HOSTILE).field, 200),
    "an unexpected error": (lambda: error_text(ValueError(HOSTILE)), LONGEST),
    "the error of a traceback": (lambda: list_traceback(0), LONGEST),
    "a traceback": (lambda: list_traceback(1), MAX_CHARACTERS),
    "a title of an engine": (lambda: map_hit("title"), LONGEST_TITLE),
    "a snippet of an engine": (lambda: map_hit("text"), LONGEST_SNIPPET),
    "an id of an engine, refused": (lambda: refuse_hit({"id": HOSTILE}), LONGEST),
    "a key of an engine, refused": (lambda: refuse_hit({HOSTILE: 1}), LONGEST),
    "a claim": (lambda: read_person({"given_name": HOSTILE}, {}).first_name, LONGEST_NAME),
}


@pytest.mark.parametrize("text", WRITERS)
def test_text_of_others_is_storable_and_has_a_limit(text):
    write, longest = WRITERS[text]
    written = write()
    assert is_storable(written)
    assert 0 < len(written) <= longest


def test_tags_and_names_of_run_files_have_limits(tmp_path):
    path = tmp_path / "a\udcffrun.txt"
    path.write_bytes(b"q1 Q0 d1 1 1.0 a\0b\xff" + b"x" * 1_000_000 + b"\n")
    file = read_run_file(path, {"q1"})
    assert all(is_storable(text) for text in (file.name, *file.tags))
    assert (len(file.name) <= LONGEST_FILE_NAME, len(file.tags[0])) == (True, LONGEST_TAG)


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_what_identifies_or_is_searched_is_refused(text):
    for record in (DocumentRecord(text, "a", "b"), DocumentRecord("a", text, "b"), DocumentRecord("a", "b", text)):
        with pytest.raises(DocumentError, match="cannot be stored"):
            record.check()
    with pytest.raises(MalformedFileError, match="cannot be stored"):
        parse(json.dumps({"key": text}), location="a.json")


def test_cleaning_keeps_what_can_be_stored():
    assert clean_text("Ünï😀\n\t", 10) == "Ünï😀\n\t"
    assert clean_text("a\0\ud83d\ude00b", 10) == "a\ufffd\ufffd\ufffdb"
    assert clean_text("abcdef", 4) == "abc…"


# Who makes the texts of each column without a limit fit to be stored.
ERRORS = "errors: messages and error_text"
OURS = "BenchBench writes them, of texts that are stored already"
STRICT = "strict_json.fault refuses what cannot be stored: forms, API, files"
CLEANED = "clean_text, where they come in"
UNLIMITED = {
    "accounts.Deletion": {"counts": OURS},
    "api.StoredAnswer": {"body": OURS},
    "benchmarks.Baseline": {"reason": STRICT},
    "benchmarks.Benchmark": {"description": STRICT, "matrix": STRICT},
    "benchmarks.BenchmarkVerdict": {"sentence": OURS, "words": OURS},
    "benchmarks.Evaluation": {"means": OURS, "policies": OURS},
    "benchmarks.GateOutcome": {"checks": OURS, "rules": STRICT},
    "benchmarks.MeansSoFar": {"runs": OURS},
    "benchmarks.Notice": {"error": ERRORS, "payload": OURS},
    "benchmarks.Origin": {"experiment": STRICT, "manifest": OURS},
    "benchmarks.Preparation": {"error": ERRORS},
    "benchmarks.QueryResult": {"error": ERRORS},
    "benchmarks.Repeat": {"problem": ERRORS, "result": OURS},
    "benchmarks.Run": {
        **{"config": STRICT, "error_message": ERRORS, "label": OURS, "timing": OURS, "warnings": OURS},
        **{"provenance": CLEANED, "traceback": CLEANED},
    },
    "benchmarks.Schedule": {"rules": STRICT},
    "benchmarks.StageList": {"error": ERRORS},
    "collections.Collection": {"description": STRICT, "metadata": STRICT},
    "collections.Document": {"metadata": STRICT, "text": STRICT, "title": STRICT},
    "collections.FormerDocument": {"metadata": OURS, "sections": OURS},
    "collections.Section": {"heading": STRICT},
    "datasets.Dataset": {"description": STRICT, "metadata": STRICT, "slice_definitions": STRICT},
    "datasets.DatasetVersion": {"note": STRICT},
    "datasets.Judgment": {"doc_ref": STRICT, "note": STRICT, "section_refs": STRICT},
    "datasets.Query": dict.fromkeys(("evidence", "expected_answer", "filters", "metadata", "notes", "text"), STRICT),
    "engines.EngineAnswer": {"filters": OURS, "hits": CLEANED, "parameters": STRICT, "text": OURS},
    "judging.Grade": {"note": CLEANED},
    "judging.Round": {"guidelines": STRICT, "scale": STRICT},
    "benchmarks.RoundVerdict": {"evidence": OURS, "record": OURS},
    "judging.RoundState": {"evidence": OURS, "front": OURS, "state": OURS},
    "mappings.Mapping": {"counts": OURS},
    "mappings.Resolution": {"reason": OURS},
    "operations.Batch": {"error": ERRORS, "hung": OURS, "payload": OURS, "result": CLEANED, "waits_for": OURS},
    "operations.Operation": {"error": ERRORS, "parameters": STRICT, "unfit_workers": ERRORS},
    "retrieval.Chunk": {"text": OURS},
    "retrieval.ChunkSet": {"parameters": OURS},
    "retrieval.Index": {
        **dict.fromkeys(("chunk_parameters", "llm_parameters"), STRICT),
        **dict.fromkeys(("query_prompt", "document_prompt"), "indexing.require_parameters"),
        **{"error": ERRORS, "prompts": "tasks.chunk, clean_text", "stats": OURS},
    },
    "retrieval.LLMAnswer": {"parameters": STRICT, "prompt": OURS, "text": CLEANED},
    "retrieval.LexicalIndex": {"parameters": OURS, "stats": OURS},
}


def test_every_text_without_a_limit_has_a_guard():
    unlimited: dict[str, set[str]] = {}
    for model in own_models():
        for field in model._meta.local_fields:
            inner = getattr(field, "base_field", field)
            if isinstance(inner, models.TextField | models.JSONField) and not field.choices:
                unlimited.setdefault(model._meta.label, set()).add(field.name)
    assert unlimited == {label: set(guards) for label, guards in UNLIMITED.items()}
