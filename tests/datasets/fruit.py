"""A dataset of one query with one judgment."""

from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord

APPLE, PEAR = {"document_id": "apple"}, {"document_id": "pear"}
RECORD = DatasetRecord("fruit", [QueryRecord("red", "red fruit", [JudgmentRecord(APPLE, 3)])], label="1")
