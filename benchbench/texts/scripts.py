"""Patterns of letters and words by script. The package `regex` is slow to import, so this is where a text needs it."""

import re

import regex

# Written without blanks, or with blanks between phrases, so each letter is compared as a word, but digits form numbers.
# Lucene's CJK and ICU analyzers divide the same scripts.
UNSPACED = (
    r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Yi}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}"
    r"\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Tibetan}\p{Javanese}\p{Balinese}ーｰ]&&[\p{L}\p{Nl}\p{No}]]"
)
FOREIGN = regex.compile(r"(?V1)[\p{L}--[\p{Latin}\p{Greek}\p{Common}\p{Inherited}]]")  # to English
IGNORED = r"\p{Default_Ignorable_Code_Point}"  # such as soft hyphens, joiners and variation selectors
JOINED = rf"[\p{{M}}{IGNORED}ﾞﾟ]"
TOO_MANY_MARKS = regex.compile(rf"(?V1)({JOINED}{{30}}){JOINED}++")
HANGUL = r"[\u1100-\u115f]+[\u1160-\u11a7]+[\u11a8-\u11ff]*"  # a syllable in parts
SPACED = rf"[[\p{{L}}\p{{N}}_]--{UNSPACED}]"
WORD = regex.compile(rf"(?V1)(?P<letter>(?:{HANGUL}|{UNSPACED}){JOINED}*)|{SPACED}(?:{SPACED}|{JOINED})*")
UNSPACED_OR_RUN = regex.compile(rf"(?V1){UNSPACED}{JOINED}*|(?:(?!{UNSPACED}).)+", regex.DOTALL)
# The same as WORD in a folded text without an UNSPACED letter, in a quarter of the time.
SPACED_WORD = regex.compile(r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*")
# The same words, joined by a sign between letters or digits as in "can't", "3.14" and צה"ל: rules 6, 7, 7b, 7c, 11, 12
# of UAX #29.
BETWEEN = (
    r"(?:(?<=[\p{L}\p{M}])[\p{WB=MidLetter}\p{WB=MidNumLet}'׳](?=\p{L})"
    r"|(?<=\p{Nd})[\p{WB=MidNum}\p{WB=MidNumLet}'](?=\p{Nd})"
    r'|(?<=\p{WB=Hebrew_Letter})"(?=\p{WB=Hebrew_Letter}))'
)
RUN = rf"{SPACED}(?:{SPACED}|{JOINED})*+"
TOKEN = regex.compile(rf"(?V1)(?P<letter>(?:{HANGUL}|{UNSPACED}){JOINED}*)|{RUN}(?:{BETWEEN}{RUN})*+")
SPACED_RUN = r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*+"
SPACED_TOKEN = regex.compile(rf"(?V1){SPACED_RUN}(?:{BETWEEN}{SPACED_RUN})*+")
IDENTIFIER_WORD = regex.compile(r"[\p{L}\p{M}]+|\p{N}+")
CASE_BOUNDARY = regex.compile(r"(?V1)(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})")
PERHAPS_UNSPACED = re.compile(
    "[\u0e00-\u11ff\u1780-\u17ff\u1950-\u1aaf\u1b00-\u1b7f\u2e80-\ud7ff\uf900-\uffff"
    "\U000116d0-\U000116ff\U00016fe0-\U0003ffff]"
)
# Points that Hebrew and Arabic are mostly written without, the stroke that lengthens an Arabic word, and Armenian signs
# of tone within words.
LEFT_OUT = regex.compile(
    rf"{IGNORED}|[\u055b\u055c\u055e\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
)
# Scripts by name; those without a group of their own are as rare as their languages are here.
LETTERS_OF_SCRIPT = regex.compile(
    "|".join(
        rf"(?P<{name}>\p{{{name}}}+)"
        for name in (
            *("Latin", "Cyrillic", "Arabic", "Devanagari", "Han", "Hangul", "Thai", "Lao", "Khmer", "Myanmar"),
            *("Tibetan", "Greek", "Armenian", "Hebrew", "Bengali", "Gujarati", "Gurmukhi", "Tamil", "Telugu"),
            *("Kannada", "Malayalam", "Sinhala"),
        )
    )
    + r"|(?P<kana>[\p{Hiragana}\p{Katakana}]+)"
)
