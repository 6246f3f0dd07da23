"""The language of texts, guessed by py3langid from their letters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchbench.texts.languages import BY_CODE, UNKNOWN

CHARACTERS = 500  # that are read of a text
CLEAR = 0.2  # the probability from which the language of a text counts: names and numbers are in none
MAJORITY = 0.55  # the share of a language's probability among those that are the best of a text
FEWEST = 1 / 3  # the share of texts that are best in it
NO_LANGUAGE = "zxx"
# Languages that the rules of another one serve: dialects, and those that few texts are in.
SERVED = {
    **{"ary": "arabic", "arz": "arabic", "as": "bengali", "bs": "croatian", "dz": "tibetan", "grc": "greek"},
    **{"hbo": "hebrew", "pcm": "english", "ext": "spanish", "wuu": "chinese", "yue": "chinese"},
}


@dataclass(frozen=True, slots=True)
class Guess:
    """The language of most texts, the number of texts in it, and the number that were read.

    "other" is a language that has no rules here.
    """

    language: str
    agreeing: int
    sampled: int


def guess_language(texts: Iterable[str]) -> Guess | None:
    """Return the language with most of the probability of the texts that have letters; None if that is not clear."""
    guesses = [_guess(start) for text in texts if any(map(str.isalpha, start := text[:CHARACTERS]))]
    best = [max(guess, key=guess.__getitem__, default="") for guess in guesses]
    totals = {name: sum(guess.get(name, 0) for guess in guesses) for name in sorted({*best} - {""})}
    language = max(totals, key=totals.__getitem__, default="")
    agreeing = best.count(language)
    if not language or totals[language] < MAJORITY * sum(totals.values()) or agreeing < FEWEST * len(guesses):
        return None
    return Guess(language, agreeing, len(guesses))


def _guess(text: str) -> Mapping[str, float]:
    """Return the probability of each language of a text, none unless one is clear.

    That of "other" is the highest of those without rules here.
    """
    probabilities = defaultdict[str, float](float)
    for code, probability in _load().rank(text):
        name = SERVED.get(code) or BY_CODE.get(code, UNKNOWN)
        if name != UNKNOWN:
            probabilities[name] += probability
        elif code != NO_LANGUAGE:
            probabilities[name] = max(probability, probabilities[name])
    return probabilities if max(probabilities.values()) >= CLEAR else {}


@cache
def _load() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
