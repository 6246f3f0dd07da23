"""Pages of rows that begin with facts: labelled, with units, before the form that changes the row."""

import re
from typing import Any

import pytest
from django.test import Client

from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.retrieval.models import Index
from benchbench.site.panels import build_list_url, change_url, show_values
from tests.factories import make_collection, make_dataset, make_mapping

STATS = {"num_documents": 1193, "num_vectors": 1193, "bytes": 2327111, "duration_sec": 25.126, "llm_calls": 0}


@pytest.fixture
def mapping(db: None) -> Mapping:
    dataset = make_dataset({"q1": [({"document_id": "d1"}, 1)]}, name="Fruit")
    return make_mapping(dataset, make_collection("Shelf", [{"title": "On pears"}]))


def read_facts(client: Client, row: Any) -> dict[str, str]:
    """Return the facts of a page, which come before its tables, and these before its folded form."""
    page = client.get(change_url(row)).text
    facts, form = page.index('id="about"'), page.index('<details class="bb-card bb-details" id="edit"')
    assert facts < form < page.index('name="_save"')
    assert 'class="bb-panel"' not in page[form:]
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", page[facts:form], re.DOTALL)
    return {label: " ".join(re.sub(r"<[^>]+>", " ", value).split()) for label, value in pairs}


def test_rows_begin_with_their_facts(admin_client: Client, mapping: Mapping) -> None:
    collection = mapping.collection
    facts = read_facts(admin_client, collection)
    assert (facts["Documents"], facts["Kind"]) == ("1", "Documents")
    assert "Language of the documents" in facts
    assert read_facts(admin_client, mapping)["With a document"] == "0 of 0 judgments"
    index = Index.objects.create(collection=collection, name="idx", encoder="BAAI/bge", stats=STATS)
    facts = read_facts(admin_client, index)
    actual = {name: facts[name] for name in ("Documents", "Vectors", "Size", "Work on it", "Language model")}
    assert actual == {
        **{"Documents": "1,193", "Vectors": "1,193", "Size": "2.2 MB", "Work on it": "25.1 s"},
        "Language model": "none",
    }
    assert "num_documents" not in admin_client.get(change_url(index)).text


def test_columns_of_a_list_have_names_of_their_own(admin_client: Client, mapping: Mapping) -> None:
    for model in (Mapping, Index, Operation):
        labels = [label for _, label, _ in admin_client.get(build_list_url(model)).context["columns"]]
        assert len(labels) == len({*labels}), labels


def test_json_is_shown_as_labelled_values() -> None:
    markup = '<pre>{"top_k": 10000, "is_own": true, "modes": ["a", "b"], "of": {"x": 0.250}, "no": null}</pre>'
    text = re.sub(r"<[^>]+>", "|", show_values(markup))
    assert re.findall(r"[^|]+", text) == [
        "top k",
        "10,000",
        "is own",
        "yes",
        "modes",
        "a, b",
        "of",
        "x",
        ".25",
        "no",
        "–",
    ]
    assert show_values("–") == "–"
    assert "<b>" not in show_values('{"a": "&lt;b&gt;"}')
