import pytest

from benchbench.ir.records import RepeatedDocumentError, ScoredDocuments


def ranking(*scored: tuple[str, float]) -> list[str]:
    return ScoredDocuments("run, query 'q1',", [name for name, _ in scored], [score for _, score in scored]).ranking()


def test_it_ranks_by_score_then_by_id_falling():
    assert ranking(("a", 0.5), ("c", 0.5), ("b", 0.5), ("d", 0.9), ("e", -1.0)) == ["d", "c", "b", "a", "e"]


def test_scores_that_are_equal_as_float32_are_ties():
    assert ranking(("a", 0.5 + 1e-9), ("b", 0.5)) == ["b", "a"]
    assert ranking(("a", 0.5 + 1e-7), ("b", 0.5)) == ["a", "b"]
    assert ranking(("a", 1e300), ("b", 1e39)) == ["b", "a"]
    assert ranking(("a", 0.0), ("b", -0.0)) == ["b", "a"]


def test_ids_are_ordered_as_their_bytes_are():
    assert ranking(("z", 1.0), ("é", 1.0), ("😀", 1.0), ("～", 1.0), ("Z", 1.0)) == ["😀", "～", "é", "z", "Z"]


def test_it_refuses_a_document_twice():
    with pytest.raises(RepeatedDocumentError, match=r"run, query 'q1', ranks the document 'a' more than once"):
        ranking(("a", 1.0), ("b", 1.0), ("a", 0.5))
