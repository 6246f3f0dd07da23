"""Content measures: evidence and expected answers in the retrieved text, without judgments.

They compare words, as `benchbench.texts.words` divides a text in any script; punctuation, case and Unicode forms make
no difference, other forms of a word do. None stands for nothing to compare with, and is left out of a mean; retrieved
text that is empty scores 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchbench.texts.words import split_words


def evidence_recall(evidence: Sequence[str], texts: Sequence[str]) -> float | None:
    """Return the share of the evidence passages whose words occur, in order and without a gap, in one of the texts.

    Passages without words are ignored. Returns None without evidence.
    """
    passages = [passage for passage in map(split_words, evidence) if passage]
    retrieved = [_join_tokens(split_words(text)) for text in texts]
    return _share([any(_join_tokens(passage) in text for text in retrieved) for passage in passages])


def answer_token_overlap(answer: str, texts: Sequence[str]) -> float | None:
    """Return the share of the answer's distinct words that occur in any of the texts; None without words."""
    retrieved = {word for text in texts for word in split_words(text)}
    return _share([word in retrieved for word in set(split_words(answer))])


def rouge_l(answer: str, texts: Sequence[str]) -> float | None:
    """Return ROUGE-L of the text that is closest to the answer (Lin 2004, with β = 1); None without words.

    For the longest common subsequence of the words of a text and the answer, of length l, precision is l / words of the
    text and recall l / words of the answer. ROUGE-L is their harmonic mean, 2 l / (words of both).
    """
    expected = split_words(answer)
    if not expected:
        return None
    retrieved = map(split_words, texts)
    return max(
        (2 * longest_common_subsequence(expected, text) / (len(expected) + len(text)) for text in retrieved),
        default=0.0,
    )


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of words in the longest common subsequence.

    Bit-parallel (Hyyrö 2004): a row of the table is one integer, with a 0 where the length goes up.
    """
    masks: dict[str, int] = {}
    for index, word in enumerate(first):
        masks[word] = masks.get(word, 0) | 1 << index
    every = (1 << len(first)) - 1
    row = every
    for word in second:
        matches = row & masks.get(word, 0)
        row = ((row + matches) | (row - matches)) & every
    return len(first) - row.bit_count()


def _join_tokens(tokens: Sequence[str]) -> str:
    """Return the words with a space around each, so that whole words match."""
    return f" {' '.join(tokens)} "


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None
