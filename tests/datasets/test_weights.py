"""The weight of a query: read, written, edited, hashed and refused."""

import json
from dataclasses import replace

import pytest

from apps.datasets.editing.drafts import build_difference, find_draft, freeze
from apps.datasets.editing.queries import edit_query
from apps.datasets.exporting import export_record
from apps.datasets.formats.reading import read_dataset
from apps.datasets.formats.schema1 import parse_schema1
from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord, check
from apps.datasets.versions import hash_content
from tests.datasets.fruit import APPLE
from tests.factories import make_dataset


def read_json(*metadata: object) -> DatasetRecord:
    queries = [{"query_key": f"q{n}", "query_text": "red", "metadata": one} for n, one in enumerate(metadata)]
    return parse_schema1(json.dumps({"queries": queries}).encode())


def test_json_gives_queries_their_weights():
    record = read_json({"weight": 12}, {}, {"weight": "many"}, {"weight": 0}, {"weight": True})
    assert [query.weight for query in record.queries] == [12, 1, 1, 1, 1]
    assert [query.metadata for query in record.queries] == [{}, {}, {"weight": "many"}, {"weight": 0}, {"weight": True}]
    plain, weighted = record.warnings
    assert plain.startswith("metadata.weight is not what the weight of a query is, in q2, q3, q4")
    assert weighted.startswith("metadata.weight is the demand that a query stands for: q0 state one")


def test_table_reads_a_column_of_weights(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("query_key,query_text,doc_ref,grade,weight\na,red,x,1,2.5\na,red,y,1,2.50\nb,blue,x,1,\n")
    assert [query.weight for query in read_dataset(path, format="table").queries] == [2.5, 1]
    for wrong in ("-1", "nan", "lots", "1e13"):
        path.write_text(f"query_key,query_text,doc_ref,grade,weight\na,red,x,1,{wrong}\n")
        with pytest.raises(DatasetError, match=r"line 2, has the weight .* not a positive number"):
            read_dataset(path, format="table")


def test_hash_counts_only_weights_other_than_one():
    plain = [QueryRecord("a", "red"), QueryRecord("b", "blue")]
    assert hash_content(plain) == hash_content([replace(query, weight=1) for query in plain])
    assert hash_content(plain) == "dae573aaf6be9db1f9f98d7608026fef629371c7be26376075de886ecad51e70"
    heavy = [replace(plain[0], weight=3), plain[1]]
    assert hash_content(heavy) not in (hash_content(plain), hash_content([plain[0], replace(plain[1], weight=3)]))
    assert hash_content(heavy) == hash_content([replace(plain[0], weight=3.0), plain[1]])


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), 1e13, True, "2"])
def test_weights_that_count_nothing_are_refused(wrong):
    with pytest.raises(DatasetError, match="'red' has the weight"):
        check(DatasetRecord("x", [QueryRecord("red", "red", weight=wrong)]))


def test_formats_without_weights_name_the_loss():
    record = DatasetRecord("x", [QueryRecord("a", "red", weight=3), QueryRecord("b", "blue")], label="1")
    assert any("weight of 1 query" in warning for warning in export_record(record, "flowbaby", name="x").warnings)


@pytest.mark.django_db
def test_a_new_weight_begins_a_version():
    dataset = make_dataset({"red": [(APPLE, 1)], "blue": [(APPLE, 2)]})
    first = dataset.versions.get()
    edited = edit_query(dataset.queries.get(key="red"), {"weight": 40})
    assert (edited.weight, edited.since, edited.judgments.count()) == (40, 2, 1)
    draft = find_draft(dataset)
    assert draft is not None
    [changed] = build_difference(draft).queries_changed
    assert (changed.weight_before, changed.weight, changed.text_before) == (1, 40, changed.text)
    second = freeze(dataset)
    assert second.content_hash != first.content_hash
    assert list(first.queries.order_by("key").values_list("weight", flat=True)) == [1, 1]
    assert list(second.queries.order_by("key").values_list("weight", flat=True)) == [1, 40]
