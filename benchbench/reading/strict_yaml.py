"""Strict YAML: the data model of JSON, no repeated keys, nothing that runs code or expands when it is read."""

import re
from collections.abc import Callable
from typing import Any

import yaml

from benchbench.reading.strict_json import MAX_DEPTH, MalformedFileError, fault

MAX_CHARACTERS = 100_000
TAG = "tag:yaml.org,2002:"
ALIAS = "alias"  # the tag of the node that stands for one
ENTRY_DEPTH = 2  # of `section.entry`
CONSTRUCTORS: dict[
    str, Callable[[str], Any]
] = {  # scalars of YAML 1.2's core schema, which reads `no` and `2026-11-22` as texts
    f"{TAG}str": str,
    f"{TAG}null": lambda text: None,
    f"{TAG}bool": lambda text: {"true": True, "false": False}[text.lower()],
    f"{TAG}int": int,
    f"{TAG}float": float,
}


class _Loader(yaml.SafeLoader):
    """Loader that resolves plain scalars by the core schema; one with a leading zero, as in `017`, is a text.

    It counts depth while it reads. The depth of brackets is counted before the library looks ahead past them, because
    that takes time quadratic in the depth.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # without its text, which may be a secret that begins with an asterisk
            event = self.get_event()
            return yaml.ScalarNode(ALIAS, "", event.start_mark, event.end_mark)
        self.depth += 1
        self._check(self.depth)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def fetch_flow_collection_start(self, TokenClass: object) -> None:
        self._check(self.flow_level)
        super().fetch_flow_collection_start(TokenClass)

    def _check(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {MAX_DEPTH}", problem_mark=self.get_mark())


_Loader.add_implicit_resolver(f"{TAG}null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver(f"{TAG}bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), ["t", "T", "f", "F"])
_Loader.add_implicit_resolver(f"{TAG}int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    f"{TAG}float",
    re.compile(r"^[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


class _Dumper(yaml.SafeDumper):
    """Dumper that quotes texts which either version of YAML would read as another type, such as `1e5`."""


for _first, _resolvers in _Loader.yaml_implicit_resolvers.items():
    for _tag, _pattern in _resolvers:
        _Dumper.add_implicit_resolver(_tag, _pattern, [_first])


_Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str(text)))  # members of enumerations


def dump(value: object) -> str:
    """Return plain data as a YAML document from which `parse` reads equal data, with keys in their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def parse(text: str, *, location: str, spares_entries: bool = False) -> Any:
    """Return the value of one YAML document. `location` begins the sentence of an error: "experiment.yaml".

    With `spares_entries` what is wrong within an entry of a section, such as `engines.shop`, is not raised: the value
    has the error in place of the entry.

    Raises MalformedFileError for broken YAML, repeated keys, tags, aliases (a few lines can expand to gigabytes),
    numbers out of range, values that JSON or PostgreSQL cannot hold, and texts of more than 100,000 characters. Errors
    name the path of the key, such as `strategies[1].name`, or the line.
    """
    if len(text) > MAX_CHARACTERS:
        raise MalformedFileError(f"{location} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read.")
    try:
        value = _Builder(location, spares_entries).build(yaml.compose(text, Loader=_Loader), "")
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise MalformedFileError(
            f"{location}{line} cannot be read as YAML: {error.problem or error.context}."
        ) from None
    except yaml.YAMLError as error:
        raise MalformedFileError(f"{location} cannot be read as YAML: {str(error).splitlines()[0]}.") from None
    if flaw := fault(value):
        raise MalformedFileError(f"{location} {flaw}.")
    return value


def list_lines(text: str) -> dict[str, int]:
    """Return the line of each key by its path, such as `strategies.name`, of a text that `parse` accepts.

    That of a repeated key is its last.
    """
    lines: dict[str, int] = {}

    def walk(node: yaml.Node | None, path: str) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, inner in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                inner_path = f"{path}.{key.value}" if path else key.value
                lines[inner_path] = key.start_mark.line + 1
                walk(inner, inner_path)

    walk(yaml.compose(text, Loader=_Loader), "")
    return lines


class _Builder:
    """Builder of values from YAML nodes that tracks the path of each."""

    def __init__(self, location: str, spares_entries: bool) -> None:
        self._location = location
        self._spares_entries = spares_entries

    def build(self, node: yaml.Node | None, path: str, depth: int = 0) -> Any:
        if node is None:
            return None
        if node.tag == ALIAS:
            raise self._error(path, "is an alias: write out its value")
        if isinstance(node, yaml.MappingNode) and node.tag == f"{TAG}map":
            return self._build_mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{TAG}seq":
            return [self.build(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag in CONSTRUCTORS:
            try:
                return CONSTRUCTORS[node.tag](node.value)
            except (KeyError, ValueError):
                raise self._error(path, "cannot be read as a value of its type") from None
        raise self._error(path, "has a tag: tags are not allowed, and a text that begins with ! needs quotes")

    def _build_mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, object]:
        build = self._build_entry if self._spares_entries and depth + 1 == ENTRY_DEPTH else self.build
        members = {}
        for key, inner in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != f"{TAG}str":
                raise self._error(path, "has a key that is not a text")
            member_path = f"{path}.{key.value}" if path else key.value
            if key.value in members:
                raise self._error(member_path, f"occurs twice, the second time in line {key.start_mark.line + 1}")
            members[key.value] = build(inner, member_path, depth + 1)
        return members

    def _build_entry(self, node: yaml.Node, path: str, depth: int) -> object:
        """Return the value of an entry, or what is wrong in it."""
        try:
            value = self.build(node, path, depth)
        except MalformedFileError as error:
            return error
        flaw = fault(value)
        return self._error(path, flaw) if flaw else value

    def _error(self, path: str, problem: str) -> MalformedFileError:
        location = f"{self._location}, {path[:200]}" if path else self._location
        return MalformedFileError(f"{location} {problem}.", field=path[:200] or None)
