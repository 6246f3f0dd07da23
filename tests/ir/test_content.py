import random
import unicodedata
from functools import cache

import pytest

from benchbench.ir.content import (
    answer_token_overlap,
    evidence_recall,
    longest_common_subsequence,
    rouge_l,
)
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

PASSAGES = {  # a passage, and a text in which it is
    "Chinese": ("中国的首都", "北京是中国的首都，人口很多。"),
    "Japanese": ("図書館は八時まで", "この図書館は八時まで開いています。"),
    "half width": ("データベース", "これはﾃﾞｰﾀﾍﾞｰｽです"),
    "Korean": ("대한민국의 수도", "서울은 대한민국의 수도이다."),
    "Thai": ("เมืองหลวงของประเทศไทย", "กรุงเทพเป็นเมืองหลวงของประเทศไทย"),
    "Lao": ("ນະຄອນຫຼວງ", "ວຽງຈັນເປັນນະຄອນຫຼວງຂອງລາວ"),
    "Khmer": ("រាជធានី", "ភ្នំពេញជារាជធានីនៃកម្ពុជា"),
    "Burmese": ("မြို့တော်", "နေပြည်တော်သည်မြို့တော်ဖြစ်သည်"),
    "Hindi": ("भारत की राजधानी", "नई दिल्ली भारत की राजधानी है।"),
    "Tamil": ("தமிழ்நாட்டின் தலைநகரம்", "சென்னை தமிழ்நாட்டின் தலைநகரம்."),
    "Arabic, without its points": ("الكتاب الجديد", "هَذَا الْكِتَابُ الْجَدِيدُ مفيد"),
    "Hebrew, with its points": ("שָׁלוֹם עוֹלָם", "הוא אמר: שלום עולם!"),
    "Russian": ("СТОЛИЦА РОССИИ", "Москва — столица России."),
    "Greek, with a final sigma": ("ΟΔΟΣ", "η οδός, η οδος"),
    "German": ("STRASSE", "die Straße ist lang"),
    "Turkish": ("İSTANBUL", "istanbul büyük bir şehir"),
    "Vietnamese, decomposed": (unicodedata.normalize("NFD", "thủ đô Hà Nội"), "Thủ đô Hà Nội của Việt Nam"),
    "full width": ("ＡＢＣ １２３", "code abc 123, new"),
    "a soft hyphen": ("Bibliothek offen", "die Biblio\u00adthek offen bis acht"),
    "a joiner": ("می‌خواهم", "من میخواهم بروم"),
    "a ligature": ("fine offices", "ﬁne oﬃces"),
    "an accent": ("cafe\u0301 noir", "un Café noir."),
}


@pytest.mark.parametrize("name", PASSAGES)
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_a_passage_in_any_script_is_found(name, form):
    passage, text = PASSAGES[name]
    for changed in (passage, unicodedata.normalize(form, passage), passage.upper(), passage.casefold()):
        for texts in ([text], ["", unicodedata.normalize(form, text)], [text.replace(" ", "\n ")]):
            assert evidence_recall([changed], texts) == 1
            assert answer_token_overlap(changed, texts) == 1
            assert rouge_l(changed, texts) > 0
    assert rouge_l(text, [unicodedata.normalize(form, text)]) == 1


def test_other_passages_are_not_found():
    assert evidence_recall(["最大的国家", "最大的城市"], ["上海是最大的城市。"]) == 0.5
    assert evidence_recall(["城市最大"], ["上海是最大的城市。"]) == 0
    assert evidence_recall(["cafe"], ["un café"]) == 0  # another word
    assert answer_token_overlap("最小", ["最大"]) == 0.5


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

    def test_evidence_recall_is_none_without_evidence_zero_without_text(self):
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

    def test_rouge_l_is_none_without_answer_zero_without_text(self):
        assert rouge_l("", ["a"]) is None
        assert rouge_l("a", []) == 0
        assert rouge_l("a", [""]) == 0

    @pytest.mark.parametrize("seed", range(20))
    def test_the_longest_common_subsequence_is_that_of_the_textbook(self, seed):
        pick = random.Random(seed)
        first, second = ([pick.choice("abc") for _ in range(pick.randint(0, 30))] for _ in range(2))

        @cache
        def length(i, j):
            if i == len(first) or j == len(second):
                return 0
            if first[i] == second[j]:
                return 1 + length(i + 1, j + 1)
            return max(length(i + 1, j), length(i, j + 1))

        assert longest_common_subsequence(first, second) == length(0, 0)


HITS = [SectionHit("B", "s1"), SectionHit("A", "s9"), SectionHit("A", "s2")]


def test_a_section_counts_only_in_its_own_document():
    """Expected A{s1,s2}: the s1 that is found is another document's."""
    assert doc_rank(HITS, "A") == 2
    assert section_rank(HITS, "A", ["s1", "s2"]) == 3


def test_ranks_count_documents_and_sections_once():
    hits = [SectionHit("B", "s1"), SectionHit("B", "s1"), SectionHit("B", "s2"), SectionHit("B"), SectionHit("A", "s1")]
    assert doc_rank(hits, "A") == 2
    assert section_rank(hits, "A", ["s1"]) == 4


def test_missing_items_have_rank_minus_one():
    assert doc_rank(HITS, "C") == doc_rank([], "A") == NOT_FOUND == -1
    assert section_rank(HITS, "A", ["s1"]) == section_rank(HITS, "A", []) == -1
    assert section_share(HITS, "A", [], 10) == 0
    assert [reciprocal(-1), reciprocal(1), reciprocal(4)] == [0, 1, 0.25]


@pytest.mark.parametrize(
    ("k", "document", "any_section", "share"),
    [(0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 0, 0), (3, 1, 1, 0.5), (10, 1, 1, 0.5)],
)
def test_one_correct_section_counts_as_hit_and_as_share(k, document, any_section, share):
    assert (1 <= doc_rank(HITS, "A") <= k) == document
    assert (1 <= section_rank(HITS, "A", ["s1", "s2"]) <= k) == any_section
    assert section_share(HITS, "A", ["s1", "s2"], k) == share


def test_order_statistics_are_values_that_were_measured():
    assert order_statistic([4.0, 1.0, 3.0, 2.0], 0.5) == 3.0
    assert order_statistic(list(range(1, 101)), 0.95) == 96
    assert order_statistic([7.0], 0.95) == 7.0
    assert order_statistic([], 0.5) is None


def test_consistent_queries_rank_documents_identically_in_every_repetition():
    assert consistency([[["a", "b"], ["a", "b"]], [["a", "b"], ["b", "a"]], [["a"]], [[], []]]) == 0.75
    assert consistency([]) is None
