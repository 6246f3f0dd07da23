"""Datasets that have, in each format, every field that it holds."""

from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord


def by_id(*grades: int) -> list[JudgmentRecord]:
    return [JudgmentRecord({"document_id": f"doc {number}"}, grade) for number, grade in enumerate(grades, start=1)]


WHOLE = DatasetRecord(
    "Fruit",
    [
        QueryRecord(
            "q1",
            " red\nfruit ",
            [
                JudgmentRecord({"document_id": "apple", "uri": "shop:apple"}, 3),
                JudgmentRecord({"content_hash": "00"}, 0),
                JudgmentRecord({"path": "a/b", "file_name": "b"}, 1),
            ],
            slices=["easy", "colour"],
            category="colour",
            difficulty="low",
            query_type="keyword",
            split="test",
            filters={"season": "autumn", "year": 2026, "share": 0.5, "organic": True},
            expected_answer="=1+1",
            evidence=["red", {"page": 3}, None],
            notes="A warm-up.",
            metadata={"author": "mara", "deep": [1, [2]]},
        ),
        QueryRecord("q2", "what?"),
        QueryRecord("ü", "Ünïcödé\u2028 \U0001f34e", [JudgmentRecord({"uri": "'-x"}, 2)]),
    ],
    description="Questions about fruit.",
    label="2.1",
    metadata={"judges": 2},
    slice_definitions={"easy": "One fruit."},
)
SAMPLES = {
    "benchbench-json": WHOLE,
    "beir": DatasetRecord(
        "beir",
        [
            QueryRecord("q1", " red\n", by_id(-1, 0, 4), split="dev-1", metadata={"a": [1]}),
            QueryRecord("q 2", "blue", by_id(1), split="dev-1"),
        ],
        metadata={"split": "dev-1"},
    ),
    "trec": DatasetRecord(
        "trec",
        [
            QueryRecord("301", "red\tfruit", [JudgmentRecord({"document_id": "d,1"}, -2)]),
            QueryRecord(
                "302", "blue", [JudgmentRecord({"document_id": "ü"}, 4), JudgmentRecord({"document_id": "x"}, 0)]
            ),
        ],
    ),
    "flowbaby": DatasetRecord(
        "golden",
        [
            QueryRecord("q1", "one", by_id(2, 1, 0), slices=["a", "b"], split="train", notes="first"),
            QueryRecord("q2", "two", slices=["default"], metadata={"expected_positive_count": 0}),
        ],
        description="Golden.",
        label="1.2",
        metadata={
            "dataset_id": "golden",
            "canonicalization_version": "v1",
            "created": "2026",
            "updated": "later",
            "notes": "n",
        },
        slice_definitions={"a": "first", "b": {"rule": 1}},
    ),
}
