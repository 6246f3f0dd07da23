import random
from functools import cache

import pytest

from benchbench.ir.content import answer_token_overlap, evidence_recall, longest_common_subsequence, rouge_l, words


def test_words_are_lower_case_runs_of_letters_digits_and_underscores():
    assert words("Émile's  max_k: 42 文書!") == ["émile", "s", "max_k", "42", "文書"]


class TestEvidence:
    TEXTS = ("The cat sat on the mat.", "A dog, however, stood.")

    @pytest.mark.parametrize(
        ("evidence", "recall"),
        [
            (["cat SAT on"], 1),
            (["cat sat", "dog however stood", "no such words"], 2 / 3),
            (["at sat"], 0),  # whole words only
            (["mat a dog"], 0),  # within one text only
            (["cat on"], 0),  # without a gap
            (["...", "cat"], 1),
        ],
    )
    def test_it_is_the_share_of_passages_found(self, evidence, recall):
        assert evidence_recall(evidence, self.TEXTS) == pytest.approx(recall)

    def test_without_evidence_there_is_no_value_and_without_text_it_is_zero(self):
        assert evidence_recall([], self.TEXTS) is None
        assert evidence_recall(["?"], self.TEXTS) is None
        assert evidence_recall(["cat"], []) == 0


def test_the_overlap_counts_each_word_of_the_answer_once():
    assert answer_token_overlap("the cat, the dog", ["The cat", "sat"]) == pytest.approx(2 / 3)
    assert answer_token_overlap("the cat", []) == 0
    assert answer_token_overlap("?", ["the cat"]) is None


class TestRougeL:
    def test_it_is_the_harmonic_mean_of_precision_and_recall(self):
        # police the gunman: precision 3/4, recall 3/4
        assert rouge_l("police killed the gunman", ["police kill the gunman"]) == pytest.approx(3 / 4)
        assert rouge_l("police killed the gunman", ["the gunman kill police"]) == pytest.approx(2 / 4)
        assert rouge_l("a b c d", ["a x c"]) == pytest.approx(2 * 2 / 7)

    def test_the_closest_text_counts(self):
        assert rouge_l("a b", ["x", "a b", "a b c"]) == 1

    def test_without_an_answer_there_is_no_value_and_without_text_it_is_zero(self):
        assert rouge_l("", ["a"]) is None
        assert rouge_l("a", []) == 0
        assert rouge_l("a", [""]) == 0

    @pytest.mark.parametrize("seed", range(20))
    def test_the_longest_common_subsequence_is_that_of_the_textbook(self, seed):
        pick = random.Random(seed)
        first, second = ([pick.choice("abc") for _ in range(pick.randint(0, 30))] for _ in range(2))

        @cache
        def length(i: int, j: int) -> int:
            if i == len(first) or j == len(second):
                return 0
            if first[i] == second[j]:
                return 1 + length(i + 1, j + 1)
            return max(length(i + 1, j), length(i, j + 1))

        assert longest_common_subsequence(first, second) == length(0, 0)
