"""Light stemmers for languages that PyStemmer does not cover: one ending goes, and at least three letters stay.

Lucene has such stemmers for Bulgarian, Bengali and Latvian. These are tables of the endings in grammars.
"""

import re


def _end(endings: str, *, minimum: int = 3) -> str:
    return rf"(?<=.{{{minimum}}})(?:{endings.replace(' ', '|')})$"


# Articles of Bulgarian follow the vowel of their gender; endings follow in another pass.
BULGARIAN = _end("(?<=[ая])та (?<=[ое])то (?<=[ие])те ят ът ове еве ища ия ии [аяоеий]")
BENGALI = _end("গুলোর গুলির গুলোকে গুলো গুলি টির টার টি টা য়ের দের ের েরা কে তে", minimum=2)
LIGHT = {
    "bengali": re.compile(rf"{BENGALI}|{_end('রা ে র')}"),
    "bulgarian": re.compile(BULGARIAN),
    "latvian": re.compile(_end("iem ām am ēm em im um os ās as ēs es is us ai ei [aeiouāēīūsš]")),
    "slovenian": re.compile(_end("ami ama imi ema ega emu om em am ah ih im ov ev [aeiou]")),
    "ukrainian": re.compile(
        _end("ами ями ові еві ого ому ими ою ею єю ах ях ів їв ам ям ом ем єм ий их им ій [аяоеєиіїуюйь]")
    ),
}
