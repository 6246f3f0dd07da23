"""Ways to divide a text into words, by the name that the option `words` has."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from benchbench.texts.words import fold_word, is_common, normalize

Split = Callable[[str], list[str]]
ASCII_TOKEN = re.compile(r"[a-z0-9_]+(?:(?:(?<=[a-z])[.:'](?=[a-z])|(?<=[0-9])[,;.'](?=[0-9]))[a-z0-9_]+)*")
PLAIN_TOKEN = re.compile(r"(?u)\b\w\w+\b")
BLANKS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}  # all that is in no word
ENGLISH_TOKEN = re.compile(r"\w[\w\u0300-\u036f]+")  # with the marks of its letters
SWAPPED = re.compile("([\u0e4d\u0ecd])([\u0e48-\u0e4b\u0ec8-\u0ecb])")  # of Thai and Lao: a vowel before the tone
IDENTIFIER = re.compile(r"\w+")
# The words of an identifier: a capital begins one, digits are one, and capitals before a capitalised word are one.
IDENTIFIER_WORD = re.compile(r"[^\W\d_]+|\d+")
CASE_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Words:
    """A way to divide a text into words.

    `build` returns the function that does so, which is slow for those with a dictionary. It reads a text with folded
    letters; an `is_raw` one reads any text and folds by itself. Words that are `is_plain` are used as they are, without
    what a language adds to the chain. `grams` is the length of the pieces into which words are cut, without stemming; 0
    for none. `packages` are the distributions that decide the words, with their modules.
    """

    build: Callable[[], Split]
    packages: Mapping[str, str] = field(default_factory=lambda: {"regex": "regex"})
    is_raw: bool = False
    is_plain: bool = False
    grams: int = 0


def split_unicode(text: str) -> list[str]:
    """Return the words of a folded text by UAX #29, and bigrams of the letters of scripts without blanks.

    A letter without a neighbour of its kind is a word, as in Lucene's CJKBigramFilter.
    """
    if text.isascii():
        return ASCII_TOKEN.findall(text)
    from benchbench.texts.scripts import PERHAPS_UNSPACED, SPACED_TOKEN

    if not PERHAPS_UNSPACED.search(text):
        return list(SPACED_TOKEN.findall(text))
    return list(_yield_bigrams(text))


def _yield_bigrams(text: str) -> Iterator[str]:
    from benchbench.texts.scripts import TOKEN

    text = SWAPPED.sub(r"\2\1", text).replace("เเ", "แ")
    last, end, is_paired = "", 0, False  # the letter before, where it ends, and whether a bigram has it
    for match in TOKEN.finditer(text):
        is_letter = match["letter"] is not None
        is_adjacent = bool(last) and is_letter and match.start() == end
        if last and not is_paired and not is_adjacent:
            yield last
        if is_adjacent:
            yield last + match[0]
        elif not is_letter:
            yield match[0]
        last, end, is_paired = match[0] if is_letter else "", match.end(), is_adjacent
    if last and not is_paired:
        yield last


def cut_grams(word: str, length: int) -> list[str]:
    """Return the overlapping pieces of a word, with "_" for its edges (McNamee and Mayfield, 2004); a number is whole.

    Inflected forms of a word share most of these pieces, in any language with an alphabet. Where vowels are left out
    or are of their consonant's letter, as in Hebrew, Arabic and Ethiopic, pieces are one shorter.
    """
    if not any(map(str.isalpha, word)):
        return [word]
    length -= "\u0590" <= word[0] <= "\u06ff" or "\u1200" <= word[0] <= "\u139f"
    word = f"_{word}_"
    return [word[start : start + length] for start in range(max(1, len(word) - length + 1))]


def split_code(text: str) -> list[str]:
    """Return the words of a text, and for each identifier the whole and the words that it is made of, folded.

    "getUserName" is getusername, get, user, name; "x86" is x86, x, 86: Lucene's WordDelimiterGraphFilter that preserves
    the original.
    """
    words = []
    for token in IDENTIFIER.findall(normalize(text, "NFKC")) if text.isascii() else _split_raw(text):
        words.append(token)
        pieces = _divide(token)
        words += pieces if len(pieces) > 1 else []
    return [fold_word(word) for word in words]


def _divide(identifier: str) -> list[str]:
    """Return the words that an identifier in any script is made of."""
    word, boundary = IDENTIFIER_WORD, CASE_BOUNDARY
    if not identifier.isascii():
        from benchbench.texts.scripts import CASE_BOUNDARY as boundary
        from benchbench.texts.scripts import IDENTIFIER_WORD as word
    return [piece for run in word.findall(identifier) for piece in boundary.split(run)]


def _split_raw(text: str) -> list[str]:
    from benchbench.texts.scripts import LEFT_OUT

    return split_unicode(LEFT_OUT.sub("", normalize(text, "NFKC")))


def split_english(text: str) -> list[str]:
    """Return the words of two or more characters of a folded text, and in other scripts those of `split_unicode`."""
    if text.isascii():
        return [word for word in text.translate(BLANKS).split() if len(word) > 1]  # PLAIN_TOKEN in half its time
    if is_common(text):
        return ENGLISH_TOKEN.findall(text)
    from benchbench.texts.scripts import FOREIGN

    text = text.replace("ʻ", "'").replace("ʼ", "'")
    if not FOREIGN.search(text):
        return ENGLISH_TOKEN.findall(text)
    words: list[str] = []
    for word in split_unicode(text):
        words += [word] if FOREIGN.search(word) else ENGLISH_TOKEN.findall(word)
    return words


def split_plain(text: str) -> list[str]:
    """Return the words of two or more characters, in lower case, as bm25s and scikit-learn divide a text."""
    return PLAIN_TOKEN.findall(text.lower())


def build_sudachipy() -> Split:
    """Return the segmenter of Japanese, with the shortest words, which suit search; each in its dictionary form."""
    from sudachipy import Dictionary, SplitMode

    tokenizer = Dictionary().tokenizer(mode=SplitMode.A)
    limit = 10_000  # characters; the tokenizer refuses texts of more than 49,149 bytes

    def split(text: str) -> list[str]:
        pieces = (text[start : start + limit] for start in range(0, len(text), limit))
        return [word.dictionary_form() for piece in pieces for word in tokenizer.tokenize(piece)]

    return split


def build_rjieba() -> Split:
    """Return the segmenter of Chinese, which also gives the words within long words."""
    import rjieba

    return lambda text: list(rjieba.cut_for_search(text))


def build_kiwipiepy() -> Split:
    """Return the segmenter of Korean, which divides words into morphemes and leaves out particles and endings."""
    from kiwipiepy import Kiwi

    kiwi = Kiwi(num_workers=1)
    return lambda text: [token.form for token in kiwi.tokenize(text) if token.tag[0] not in "JE"]


def build_pythainlp() -> Split:
    """Return the segmenter of Thai."""
    from pythainlp.tokenize import word_tokenize

    return lambda text: list(word_tokenize(text, engine="newmm", keep_whitespace=False))
