"""Datasets that have every field that a format holds, and datasets drawn so that a format holds many of them."""

from typing import Any

from hypothesis import strategies as st

from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord


def by_id(*grades: int) -> list[JudgmentRecord]:
    return [JudgmentRecord({"document_id": f"doc {number}"}, grade) for number, grade in enumerate(grades, start=1)]


COMPLETE = DatasetRecord(
    "Fruit",
    [
        QueryRecord(
            "q1",
            " red\nfruit ",
            [
                JudgmentRecord({"document_id": "apple", "uri": "shop:apple"}, 3),
                JudgmentRecord({"content_hash": "0a" * 32}, 0),
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
            weight=2.5,
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
    "benchbench-json": COMPLETE,
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


ODD = ['"', "'", "=", "-", "@", ",", ";", "\t", "\n", "\r", " ", "<", "{", "\ufeff", "\u2028", "\\", "%"]


def texts(**limits: int) -> st.SearchStrategy[str]:
    """Texts as the tables hold them, with what formats make something of more often than chance has it."""
    complete = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    return st.lists(st.sampled_from(ODD) | complete, **{"max_size": 5} | limits).map("".join)


FILLED = texts(min_size=1).filter(str.strip)
WORDS = st.text("abcü-_.1", min_size=1, max_size=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts(), inner, max_size=2),
    max_leaves=3,
)
NAMES = st.sampled_from(["version", "split", "name", "expected_positive_count", "notes", "weight"])
OBJECTS = st.dictionaries(NAMES | texts(), VALUES, max_size=2)
REFERENCES = st.dictionaries(
    st.sampled_from(["document_id", "uri", "path", "file_name"]), FILLED | WORDS, min_size=1, max_size=2
) | st.fixed_dictionaries({"content_hash": st.from_regex(r"\A[0-9a-fA-F]{64}\Z")})
BY_ID = st.fixed_dictionaries({"document_id": WORDS | FILLED})
# What a format wants of a judgment, of a query, and of how many judgments it has.
FITTING: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[int, int]]] = {
    "benchbench-json": ({"doc_ref": REFERENCES, "grade": st.integers(0, 3)}, {}, (0, 3)),
    "beir": ({"doc_ref": BY_ID}, {"split": st.sampled_from(["", "test", "dev-1"])}, (0, 3)),
    "trec": ({"doc_ref": BY_ID}, {}, (0, 3)),
    "flowbaby": ({"doc_ref": BY_ID, "grade": st.integers(0, 2)}, {}, (0, 3)),
}
LOOSE = ({"doc_ref": REFERENCES}, {}, (0, 3))


def records(format: str) -> st.SearchStrategy[DatasetRecord]:
    """Return datasets of which a format holds about every second; the others are of any kind."""
    return _records(*FITTING[format]) | _records(*LOOSE)


def _records(of_judgment: dict[str, Any], of_query: dict[str, Any], judged: tuple[int, int]) -> Any:
    judgment = st.builds(
        JudgmentRecord,
        **{
            "grade": st.integers(-1, 4),
            "section_refs": st.none() | st.lists(FILLED, max_size=2, unique=True),
            "source": st.sampled_from(["import", "import", "human", "llm"]),
            "judge": texts(),
            "note": texts(),
        }
        | of_judgment,
    )
    judgments = st.lists(
        judgment, min_size=judged[0], max_size=judged[1], unique_by=lambda one: str(sorted(one.doc_ref.items()))
    )
    query = st.builds(
        QueryRecord,
        **{
            "key": WORDS | FILLED,
            "text": FILLED,
            "judgments": judgments,
            "slices": st.lists(FILLED, max_size=2, unique=True),
            "split": texts() | st.sampled_from(["test", "train"]),
            "filters": OBJECTS,
            "evidence": st.lists(VALUES, max_size=2),
            "metadata": OBJECTS,
            "weight": st.sampled_from([1.0, 1e-9, 0.1, 7.0, 1e12]),
            **{name: texts() for name in ("category", "difficulty", "query_type", "expected_answer", "notes")},
        }
        | of_query,
    )
    return st.builds(
        DatasetRecord,
        name=FILLED,
        queries=st.lists(query, min_size=1, max_size=3, unique_by=lambda one: one.key),
        description=texts(),
        label=texts(),
        metadata=OBJECTS,
        slice_definitions=OBJECTS,
    )
