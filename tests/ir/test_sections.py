import pytest

from benchbench.ir.sections import (
    NOT_FOUND,
    SectionHit,
    consistency,
    doc_rank,
    order_statistic,
    reciprocal,
    section_rank,
    section_share,
)

HITS = [SectionHit("B", "s1"), SectionHit("A", "s9"), SectionHit("A", "s2")]


def test_a_section_counts_only_in_its_own_document():
    """Expected A{s1,s2}: the s1 that is found is another document's."""
    assert doc_rank(HITS, "A") == 2
    assert section_rank(HITS, "A", ["s1", "s2"]) == 3


def test_ranks_count_documents_and_sections_once():
    hits = [SectionHit("B", "s1"), SectionHit("B", "s1"), SectionHit("B", "s2"), SectionHit("B"), SectionHit("A", "s1")]
    assert doc_rank(hits, "A") == 2
    assert section_rank(hits, "A", ["s1"]) == 4


def test_what_is_not_there_has_the_rank_minus_one():
    assert doc_rank(HITS, "C") == doc_rank([], "A") == NOT_FOUND == -1
    assert section_rank(HITS, "A", ["s1"]) == section_rank(HITS, "A", []) == -1
    assert [reciprocal(-1), reciprocal(1), reciprocal(4)] == [0, 1, 0.25]


@pytest.mark.parametrize(
    ("k", "document", "any_section", "share"),
    [(0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 0, 0), (3, 1, 1, 0.5), (10, 1, 1, 0.5)],
)
def test_one_right_section_is_recall_and_a_share_of_those_expected(k, document, any_section, share):
    assert (1 <= doc_rank(HITS, "A") <= k) == document
    assert (1 <= section_rank(HITS, "A", ["s1", "s2"]) <= k) == any_section
    assert section_share(HITS, "A", ["s1", "s2"], k) == share


def test_recall_of_nothing_is_zero():
    assert doc_rank(HITS, "C") == section_rank(HITS, "A", []) == NOT_FOUND
    assert section_share(HITS, "A", [], 10) == 0


def test_order_statistics_are_values_that_were_measured():
    assert order_statistic([4.0, 1.0, 3.0, 2.0], 0.5) == 3.0
    assert order_statistic(list(range(1, 101)), 0.95) == 96
    assert order_statistic([7.0], 0.95) == 7.0
    assert order_statistic([], 0.5) is None


def test_a_query_is_consistent_when_all_its_repetitions_list_the_same_documents_in_the_same_order():
    assert consistency([[["a", "b"], ["a", "b"]], [["a", "b"], ["b", "a"]], [["a"]], [[], []]]) == 0.75
    assert consistency([]) is None
