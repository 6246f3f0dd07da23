"""Review of the file of declarations, entry by entry with the lines of what is wrong, and samples for its writers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from apps.engines.declarations import PRESETS, find_line, read_entries, read_text
from apps.engines.records import Address
from benchbench.errors import BenchbenchError
from benchbench.reading import strict_yaml

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
WITHOUT_PRESET = """\
engines:
  shop:
    version: "1"  # change it whenever you change the engine: stored answers belong to a version
    url: https://search.example/find
    query: {text: "{query}", count: "{size}", start: "{offset}"}
    page_size: 50  # most hits that a request may ask for
    headers: {Authorization: "Bearer {secret}"}
    secret: SHOP_KEY  # the name of an environment variable, not the key; without a key, leave out this line and headers
    answer: {hits: results, id: sku, title: name, total: found}  # paths into the answer, in JMESPath
"""
NOTICES = """\
notices:
  team:
    url: https://hooks.example/benchbench  # where schedules send what became of a gate
    secret: TEAM_KEY  # the name of an environment variable, which signs the notices
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the file: `section.alias`, its line, and what is wrong with it; "" if nothing is."""

    name: str
    line: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """The file that BENCHBENCH_ENGINES names, "" without one; a problem that leaves it unread; else its entries."""

    file: str
    problem: str = ""
    entries: list[Entry] = field(default_factory=list)

    @property
    def wrong(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.problem]


def review_file() -> Review:
    """Return what is wrong in the file, also with entries after the first wrong one, and with their secrets."""
    file = settings.BENCHBENCH_ENGINES
    if not file:
        return Review("")
    try:
        text = read_text()
        return Review(file, entries=list(_review_entries(text, Path(file).name)))
    except BenchbenchError as error:
        return Review(file, error.message)


def _review_entries(text: str, name: str) -> Iterator[Entry]:
    entries, lines = list(read_entries(text, name)), strict_yaml.list_lines(text)
    for section, alias, entry, line in entries:
        path, problem = f"{section}.{alias}", ""
        if isinstance(entry, Address):
            try:
                entry.read_secret()
            except BenchbenchError as error:
                line, problem = find_line(lines, f"{path}.secret", path), error.message
        else:
            problem = entry.message
        yield Entry(path, line, problem)


def list_samples() -> dict[str, str]:
    """Return a complete file for each kind of server, by the name of its preset, for another server, and for notices.

    Values stand for those of a server; the comments say what they are.
    """
    names = sorted(file.stem for file in PRESETS.glob("*.yaml"))
    return {name: _write_sample(name) for name in names} | {"another server": WITHOUT_PRESET, "notices": NOTICES}


def _write_sample(name: str) -> str:
    text = (PRESETS / f"{name}.yaml").read_text(encoding="utf-8")
    preset = strict_yaml.parse(text, location=name)
    lines = ["engines:", "  shop:", f"    preset: {name}"]
    lines.append('    version: "1"  # change it whenever you change the engine: stored answers belong to a version')
    lines.append("    variables:")
    for variable, words in preset["variables"].items():
        example = words.partition("such as ")[2].removesuffix(".") or variable
        lines.append(f"      {variable}: {example}  # {words}")
    if "{secret}" in text:
        lines.append(
            "    secret: SHOP_KEY  # the name of an environment variable with the key; leave it out if none is needed"
        )
    if "{vector}" in text:
        lines.append(f"    encoder: {MODEL}  # the model that made the stored vectors")
    lines.append("    # private: true  # needed for localhost, private addresses, and http with a key")
    return "\n".join(lines) + "\n"
