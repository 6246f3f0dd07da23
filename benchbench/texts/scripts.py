"""Patterns of letters and words by script. The package `regex` is slow to import, so this is where a text needs it."""

import re

import regex

# Written without blanks, or with blanks between phrases, so each letter is compared as a word. Lucene's CJK and ICU
# analyzers divide the same scripts.
UNSPACED = (
    r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Yi}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}"
    r"\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Tibetan}\p{Javanese}\p{Balinese}ーｰ]&&[\p{L}\p{N}]]"
)
IGNORED = r"\p{Default_Ignorable_Code_Point}"  # such as soft hyphens, joiners and variation selectors
JOINED = rf"[\p{{M}}{IGNORED}ﾞﾟ]"
TOO_MANY_MARKS = regex.compile(rf"(?V1)({JOINED}{{30}}){JOINED}++")
HANGUL = r"[\u1100-\u115f]+[\u1160-\u11a7]+[\u11a8-\u11ff]*"  # a syllable in parts
SPACED = rf"[[\p{{L}}\p{{N}}_]--{UNSPACED}]"
WORD = regex.compile(rf"(?V1)(?P<letter>(?:{HANGUL}|{UNSPACED}){JOINED}*)|{SPACED}(?:{SPACED}|{JOINED})*")
UNSPACED_OR_RUN = regex.compile(rf"(?V1){UNSPACED}{JOINED}*|(?:(?!{UNSPACED}).)+", regex.DOTALL)
# The same as WORD in a folded text without an UNSPACED letter, in a quarter of the time.
SPACED_WORD = regex.compile(r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*")
PERHAPS_UNSPACED = re.compile(
    "[\u0e00-\u11ff\u1780-\u17ff\u1950-\u1aaf\u1b00-\u1b7f\u2e80-\ud7ff\uf900-\uffff"
    "\U000116d0-\U000116ff\U00016fe0-\U0003ffff]"
)
# Points that Hebrew and Arabic are mostly written without, and the stroke that lengthens an Arabic word.
LEFT_OUT = regex.compile(
    rf"{IGNORED}|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
)
