"""The lexical setting: an engine of search by words, with the options of its analyzer and its score."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from benchbench.errors import BenchbenchError
from benchbench.ir.planning.configuration import LEXICAL
from benchbench.ir.planning.options import Option, Values, complete_values, read_values, render_call
from benchbench.reading.calls import CallError, list_combinations, list_values
from benchbench.reading.kinds import Kind, one_of
from benchbench.reading.objects import format_value
from benchbench.texts.languages import NAMES, find_language

BM25, FULL_TEXT = LEXICAL
NONE = "none"
# Ways to divide a text.
WORDS = ("unicode", "fourgrams", "english", "plain", "code", "sudachipy", "rjieba", "kiwipiepy", "pythainlp")
# An empty default is the language of the collection, or what is usual for the language.
LANGUAGE = Option("", Kind(Literal[NAMES], "the name or code of a language, such as german or de"), builds=True)
PART_OF = Option("", Kind(Literal[(NONE, *NAMES)], "the name or code of a language, or none"), builds=True)
ENGINES: dict[str, dict[str, Option]] = {
    BM25: {
        "language": LANGUAGE,
        "words": Option("", one_of(*WORDS), builds=True),
        "stop": PART_OF,
        "stem": PART_OF,
        "k1": Option(1.5, Kind(Annotated[float, Field(ge=0, le=100)], "a number from 0 to 100")),
        "b": Option(0.75, Kind(Annotated[float, Field(ge=0, le=1)], "a number from 0 to 1")),
    },
    FULL_TEXT: {"language": LANGUAGE},
}
TEXT = re.compile(r"\s*(?P<engine>\w+(?:\|\w+)*)\s*(?:\((?P<options>[^()]*)\)\s*)?")


class LexicalError(BenchbenchError):
    """A lexical setting is unknown or invalid."""

    code = "invalid_matrix"


@dataclass(frozen=True, slots=True)
class Lexical:
    """An engine, and the value of each of its options in order. Made by `parse`, so always valid.

    `str` gives the canonical text of a setting, such as "bm25(k1=0.9, b=0.4)", so equal settings are equal texts.
    """

    engine: str = BM25
    options: Values = tuple((name, option.default) for name, option in ENGINES[BM25].items())

    @classmethod
    def parse(cls, setting: str | Mapping[str, Any]) -> Lexical:
        """Read "bm25", "bm25(k1=0.9)", "fts" or {"engine": "bm25", "k1": 0.9}. Raises LexicalError."""
        settings = cls.expand(setting)
        if len(settings) > 1:
            raise LexicalError(f"{format_value(setting)} states several settings; one is expected.")
        return settings[0]

    @classmethod
    def expand(cls, setting: str | Mapping[str, object]) -> list[Lexical]:
        """Return the settings that a text or object states, the last option varying fastest. Raises LexicalError."""
        try:
            engines, options = _read_object(setting) if isinstance(setting, Mapping) else _read_text(setting)
            chosen = list_combinations(setting, [engines, *map(list_values, options.values())])
            return [cls._build(engine, dict(zip(options, values, strict=True))) for engine, *values in chosen]
        except CallError as error:
            raise LexicalError(str(error)) from None

    @classmethod
    def _build(cls, engine: Any, values: Mapping[str, object]) -> Lexical:
        if not isinstance(engine, str) or engine not in ENGINES:
            raise LexicalError(f"{format_value(engine)} is not an engine; choose one of {', '.join(ENGINES)}.")
        canonical = {name: _name_language(value) if name != "words" else value for name, value in values.items()}
        complete = complete_values(engine, ENGINES[engine], canonical)
        numbers = (float(value) if isinstance(value, int) else value for _, value in complete)
        return cls(engine, tuple(zip(ENGINES[engine], numbers, strict=True)))

    def __getitem__(self, name: str) -> Any:
        """Return the value of an option of this engine."""
        return dict(self.options)[name]

    @property
    def is_built_by_run(self) -> bool:
        """Return whether its words are those of no index as it is built, so that a benchmark indexes them."""
        return self.engine == FULL_TEXT or any(
            ENGINES[self.engine][name].builds and value for name, value in self.options
        )

    @property
    def words(self) -> str:
        """Return the text of the setting without the options of its score: settings with equal words share an index."""
        options = ENGINES[self.engine]
        built = [(name, value) for name, value in self.options if options[name].builds]
        return render_call(self.engine, options, tuple(built))

    def __str__(self) -> str:
        return render_call(self.engine, ENGINES[self.engine], self.options)


def _name_language(value: object) -> object:
    """Return the name of a language for its code; any other value as it is."""
    return find_language(value) or value if isinstance(value, str) else value


def _read_object(setting: Mapping[str, object]) -> tuple[list[Any], dict[str, Any]]:
    if "engine" not in setting:
        raise LexicalError(f"{format_value(dict(setting))} must have an engine; choose one of {', '.join(ENGINES)}.")
    return list_values(setting["engine"]), {name: value for name, value in setting.items() if name != "engine"}


def _read_text(text: object) -> tuple[list[Any], dict[str, Any]]:
    match = TEXT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise LexicalError(f"{format_value(text)} is not a setting such as bm25, bm25(k1=0.9, b=0.4) or fts.")
    return match["engine"].split("|"), read_values(match["options"] or "", example="k1=0.9")
