import math
import random

import numpy as np
import pytest

from benchbench.ir.coverage import cover
from benchbench.ir.measures import (
    DEFINITIONS,
    GradedRankings,
    Measure,
    MeasureError,
    Truths,
    evaluate,
    grade_matrix,
    mean,
)
from benchbench.ir.ranking import collapse
from tests.ir.simulated import random_case

RANKED = ["P@5", "P@10", "R@5", "R@100", "nDCG@3", "nDCG@10", "nDCG"]
RANKED += ["AP", "AP@5", "RR", "RR@2", "Success@1", "Success@5", "Hits@10", "Hits"]


def value(measure, ranking, truth):
    """The measure of one ranking, whose documents have names of one letter."""
    return evaluate([Measure.parse(measure)], GradedRankings.from_rankings([list(ranking)], [truth])).item()


class TestMeasure:
    @pytest.mark.parametrize("text", [*RANKED, "Judged@10", "Judged", "FirstRelevant", "FirstRelevant@5"])
    def test_its_text_parses_back(self, text):
        assert str(Measure.parse(text)) == repr(Measure.parse(text)) == text
        assert Measure.read(text) == Measure.parse(text) == Measure.parse(Measure.read(text).wire)

    @pytest.mark.parametrize(
        ("text", "wire"),
        [
            ("P@10", "precision@10"),
            ("R@10", "recall@10"),
            ("nDCG@10", "ndcg@10"),
            ("RR", "mrr"),
            ("AP", "ap"),
            ("AP@10", "map@10"),
            ("Judged@10", "Judged@10"),
            ("Success@5", "Success@5"),
            ("RR@10", "RR@10"),
            ("nDCG", "nDCG"),
            ("Hits@3", "Hits@3"),
            ("FirstRelevant", "FirstRelevant"),
        ],
    )
    def test_it_has_a_name_on_the_wire(self, text, wire):
        assert Measure.parse(text).wire == wire

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("DCG@10", "'DCG@10' is not a measure: the measure 'DCG' does not exist; choose one of P, R, nDCG"),
            ("P", "'P' is not a measure: it needs a cutoff, such as P@10"),
            ("precision", "it needs a cutoff, such as P@10"),
            ("nDCG@ten", "'nDCG@ten' is not a measure: a number must follow the @"),
            ("nDCG@-1", "a number must follow the @"),
            ("nDCG@1.5", "the cutoff must be a whole number from 1 to 1,000,000"),
            ("nDCG@1.2.3", "a number must follow the @"),
            ("P@0", "the cutoff must be a whole number from 1 to 1,000,000"),
            ("ndcg@0", "the cutoff must be a whole number from 1 to 1,000,000"),
            ("P(cutoff=0)", "the cutoff must be a whole number"),
            ("RR@1000001", "the cutoff must be a whole number"),
            ("P(rel=2)@99999999999999999999", "the cutoff must be a whole number"),
            ("P(cutoff=3)@5", "cutoff is given twice"),
            ("P(rel=0)@5", "rel must be a whole number from 1 to 1,000"),
            ("P(rel=True)@5", "rel must be a whole number"),
            ("RBP(p=1.5)", "p must be a number from 0.001 to 0.999"),
            ("RBP(p=1e400)", "p must be a number"),
            ("IPrec@0.405", "recall must be a number with at most two decimals from 0.0 to 1.0"),
            ("SDCG(min_rel=4,max_rel=4)@5", "max_rel must be above min_rel"),
            ("nDCG(gains={0:'a'})@5", "gains maps 1 to 20 grades to gains"),
            ("Accuracy@5", "the library ir_measures cannot compute Accuracy"),
            ("x" * 101, f"'{'x' * 100}…' is not a measure: a name has at most 100 characters".replace("…", r".u2026")),
            ("", "'' is not a measure"),
        ],
    )
    def test_another_text_is_refused_in_a_sentence(self, text, sentence):
        with pytest.raises(MeasureError, match=sentence):
            Measure.read(text)

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("NDCG@10", "nDCG@10"),
            ("Recall@5", "R@5"),
            (" p@5 ", "P@5"),
            ("mrr", "RR"),
            ("map@10", "AP@10"),
            ("judged@5", "Judged@5"),
        ],
    )
    def test_names_are_read_in_any_case(self, text, name):
        assert str(Measure.read(text)) == name

    @pytest.mark.parametrize("name", ["P@0", "RBP(rel=1)", "SetF", "Compat"])
    def test_older_stored_names_stay_as_they_are(self, name):
        assert str(Measure.parse(name)) == name
        assert np.isfinite(value(name, "axb", {"a": 1}))


class TestKnownAnswers:
    @pytest.mark.parametrize(
        ("measure", "ranking", "truth", "expected"),
        [
            ("P@5", "abcde", {"a": 1, "c": 1, "e": 1}, 0.6),
            ("P@10", "ab", {"a": 1, "b": 1}, 0.2),
            ("R@5", "abcde", {"a": 1, "c": 1, "f": 1}, 2 / 3),
            ("RR", "xya", {"a": 1}, 1 / 3),
            ("nDCG@3", "cba", {"a": 3, "b": 2, "c": 1}, 0.7899980),
            ("nDCG@3", "abc", {"a": 3, "b": 1, "c": 2}, 0.9725045),
            ("nDCG@2", "ab", {"a": 1, "b": 3}, 0.7967076),
            ("AP", "axby", {"a": 1, "b": 1}, 5 / 6),
            ("AP", "axy", {"a": 1, "b": 1}, 0.5),
            ("P@5", "ab", {"a": 3, "c": 2}, 0.2),
            ("R@5", "ab", {"a": 3, "c": 2}, 0.5),
            ("nDCG@5", "ab", {"a": 3, "c": 2}, 0.7039181),
            ("RR", "ab", {"a": 3, "c": 2}, 1.0),
            ("AP", "ab", {"a": 3, "c": 2}, 0.5),
            ("P@3", "abc", {"a": 3, "c": 1}, 2 / 3),
            ("nDCG@3", "abc", {"a": 3, "c": 1}, 0.96394),
            ("AP", "abc", {"a": 3, "c": 1}, 5 / 6),
        ],
    )
    def test_a_ranking_with_a_known_value(self, measure, ranking, truth, expected):
        assert value(measure, ranking, truth) == pytest.approx(expected, abs=5e-7 if expected != 0.96394 else 5e-6)

    def test_chunks_count_as_the_documents_that_they_belong_to(self):
        """Chunks a, a, a, b, c have the values of the documents a, b, c in the table above."""
        chunks = np.array(["a", "a", "a", "b", "c"])
        documents = "".join(chunks[collapse(np.unique(chunks, return_inverse=True)[1])])
        assert documents == "abc"
        truth = {"a": 3, "c": 1}
        values = [value(measure, documents, truth) for measure in ("P@3", "nDCG@3", "AP")]
        assert values == pytest.approx([0.6667, 0.96394, 0.8333], abs=5e-5)

    @pytest.mark.parametrize("measure", ["P@0", "R@0", "nDCG@0", "AP@0", "RR@0", "Success@0", "Judged@0"])
    def test_a_cutoff_of_zero_is_worth_zero(self, measure):
        assert value(measure, "ab", {"a": 1}) == 0

    @pytest.mark.parametrize("measure", RANKED)
    def test_value_is_zero_without_truth_relevant_documents_or_results(self, measure):
        assert value(measure, "ab", {}) == 0
        assert value(measure, "ab", {"a": 0, "b": -1}) == 0
        assert value(measure, "", {"a": 1}) == 0

    def test_negative_grades_gain_nothing(self):
        assert value("nDCG@2", "xa", {"x": -2, "a": 1}) == pytest.approx(1 / math.log2(3))

    def test_judgments_of_missing_documents_count_in_the_denominators(self):
        graded = GradedRankings.from_rankings([[1, 2]], [{1: 2, -1: 2}])
        values = evaluate([Measure("R", 5), Measure("AP"), Measure("nDCG", 2)], graded)[:, 0]
        assert values == pytest.approx([0.5, 0.5, 1 / (1 + 1 / math.log2(3))])

    def test_judged_divides_by_the_documents_there_are(self):
        assert value("Judged@4", "axby", {"a": 1, "b": -1}) == 0.5
        assert value("Judged@10", "ab", {"a": 1, "b": 0}) == 1
        assert value("Judged", "axx", {"a": 1}) == pytest.approx(1 / 3)
        assert value("Judged@10", "", {"a": 1}) == 0

    def test_hits_is_a_count_and_first_relevant_a_rank(self):
        truth = {"a": 1, "b": 2, "x": 0}
        names = ("Hits@3", "Hits", "FirstRelevant@3", "FirstRelevant")
        assert [value(name, "yxab", truth) for name in names] == [1, 2, 3, 3]
        assert value("Hits@2", "yxab", truth) == 0
        for nothing in (value("FirstRelevant@2", "yxab", truth), value("FirstRelevant", "yx", truth)):
            assert math.isnan(nothing)


def test_values_are_bit_identical_in_any_batch():
    rankings, truths = random_case(99)
    measures = [Measure(name, 10) for name in DEFINITIONS] + [Measure("nDCG"), Measure("AP")]
    together = evaluate(measures, GradedRankings.from_rankings(rankings, truths))
    for query, (ranking, truth) in enumerate(zip(rankings, truths, strict=True)):
        assert (
            evaluate(measures, GradedRankings.from_rankings([ranking], [truth]))[:, 0].tobytes()
            == together[:, query].tobytes()
        )


def test_heads_have_the_bits_of_rankings_that_end_there():
    rankings, truths = random_case(7)
    measures = [Measure(name, k) for name in DEFINITIONS for k in (0, 3, 10, 50)]
    measures += [Measure(name) for name in DEFINITIONS if not DEFINITIONS[name].needs_cutoff] + [
        Measure.parse("RBP(p=0.8)")
    ]
    complete = GradedRankings.from_rankings(rankings, truths)
    draw = random.Random(7)
    for lengths in [[draw.randint(0, len(ranking)) for ranking in rankings] for _ in range(5)]:
        cut = GradedRankings.from_rankings([ranking[:n] for ranking, n in zip(rankings, lengths, strict=True)], truths)
        heads = complete.heads(np.array(lengths, np.int64))
        assert evaluate(measures, heads).tobytes() == evaluate(measures, cut).tobytes()
        assert cover(measures, heads).condensed.tobytes() == cover(measures, cut).condensed.tobytes()
        assert heads.heads(cut.lengths // 2).read_until(heads.sums.hits, None).tobytes() == (
            cut.heads(cut.lengths // 2).read_until(cut.sums.hits, None).tobytes()
        )


def test_grade_matrix_lengths_separate_unjudged_from_absent():
    grades, lengths = grade_matrix([np.array([4, 9, 2]), [9]], [{4: 3, 2: 0}, {9: 1}])
    np.testing.assert_array_equal(grades, [[3, math.nan, 0], [1, math.nan, math.nan]])
    assert lengths.tolist() == [3, 1]


@pytest.mark.parametrize("seed", range(20))
def test_arrays_of_ids_are_graded_as_the_same_lists(seed):
    """Ids of equal remainder, judgments under names, queries and rankings without any."""
    draw = random.Random(seed)
    documents = [*range(6), *range(2**16, 2**16 + 6)]
    ids = [*documents, -3, 2**62, "missing"]
    truths = [{name: draw.randint(-1, 3) for name in draw.sample(ids, draw.randint(0, 6))} for _ in range(seed)]
    rankings = [np.array(draw.sample(documents, draw.randint(0, 9)), np.int64) for _ in truths]
    recognised = Truths.from_grades(truths)
    arrays, lists = recognised.grade_arrays(rankings), recognised.grade([ranking.tolist() for ranking in rankings])
    np.testing.assert_array_equal(arrays.grades, lists.grades)
    np.testing.assert_array_equal(arrays.lengths, lists.lengths)


def test_no_queries_and_no_measures_are_no_error():
    nothing = GradedRankings.from_rankings([], [])
    assert evaluate([Measure("nDCG", 10), Measure("RR")], nothing).shape == (2, 0)
    assert evaluate([], GradedRankings.from_rankings([[1]], [{1: 1}])).shape == (0, 1)


class TestMean:
    VALUES = np.array([[1.0, 0.0, 0.5, 0.9], [0.2, 0.0, 0.4, 0.9]])
    HAS_RELEVANT = np.array([True, False, True, True])
    FAILED = np.array([False, False, False, True])

    def test_mean_counts_empty_queries_as_zero_and_skips_failed(self):
        means = mean(self.VALUES, has_relevant=self.HAS_RELEVANT, failed=self.FAILED)
        assert means.values == pytest.approx([0.5, 0.2])
        assert (means.counted, means.empty, means.failed) == (3, 1, 1)

    def test_it_can_skip_queries_without_relevant_judgments(self):
        means = mean(self.VALUES, has_relevant=self.HAS_RELEVANT, failed=self.FAILED, empty="skip")
        assert means.values == pytest.approx([0.75, 0.3])
        assert (means.counted, means.empty, means.failed) == (2, 1, 1)

    def test_a_mean_of_nothing_is_not_zero(self):
        means = mean(self.VALUES, has_relevant=self.HAS_RELEVANT, failed=np.ones(4, bool))
        assert means.counted == 0
        assert np.isnan(means.values).all()

    def test_mean_skips_queries_without_a_value(self):
        means = mean(np.array([[3.0, math.nan, 1.0, math.nan], [1.0, 0.0, 1.0, 0.0]]), has_relevant=np.ones(4, bool))
        assert means.values.tolist() == [2.0, 0.5]
        assert means.counted == 4

    def test_mean_does_not_depend_on_query_order(self):
        values = np.random.default_rng(0).random((2, 1001))
        every = np.ones(1001, bool)
        shuffled = values[:, np.random.default_rng(1).permutation(1001)]
        assert mean(values, has_relevant=every).values.tobytes() == mean(shuffled, has_relevant=every).values.tobytes()
