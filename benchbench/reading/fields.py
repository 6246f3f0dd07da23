"""The keys of a JSON object in somebody's file, each asked for by what it must be."""

from collections.abc import Collection
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.reading.strict_json import kind, same


class InvalidKeyError(BenchbenchError):
    """A key of an input file that is unknown, missing, or holds something else than it must."""

    code = "invalid_key"


def without_nulls(item: Any) -> Any:
    """Return an object without its keys that are null, which some programs write for what is not stated."""
    return {key: value for key, value in item.items() if value is not None} if isinstance(item, dict) else item


class Fields:
    """An object with its place in a file; a key outside `known` is refused at once.

    `prefix` and `suffix` surround a key in sentences: `queries[3].` and ` (query "q4")`, or `corpus.jsonl, line 3, `.
    Every method raises `InvalidKeyError` with a sentence for what is not as it says.
    """

    def __init__(self, value: Any, known: Collection[str], *, prefix: str = "", suffix: str = "") -> None:
        self.prefix = prefix
        self.suffix = suffix
        self.place = (prefix.rstrip("., ") or "The file") + suffix
        if not isinstance(value, dict):
            raise InvalidKeyError(f"{self.place} must be an object, not {kind(value)}.", field=prefix.rstrip("., "))
        self.values = value
        for key in value:
            if key not in known:
                raise InvalidKeyError(
                    f"{self.place} has the unknown key {key[:40]!a}: known are {', '.join(known)}.",
                    field=f"{prefix}{key[:40]}",
                )

    def error(self, key: str, what: str) -> InvalidKeyError:
        return InvalidKeyError(f"{self.prefix}{key}{self.suffix} {what}.", field=f"{self.prefix}{key}")

    def value(self, key: str, *, alias: str = "", default: Any = None) -> Any:
        """The value of `key` or of its alias; without a default it must be there. Both must agree."""
        names = [name for name in (key, alias) if name and name in self.values]
        if len(names) == 2 and not same(self.values[key], self.values[alias]):
            raise InvalidKeyError(
                f"{self.place} has {key} and its alias {alias} with different values.", field=f"{self.prefix}{key}"
            )
        if names:
            return self.values[names[0]]
        if default is None:
            raise InvalidKeyError(f"{self.place} lacks the key {key}.", field=f"{self.prefix}{key}")
        return default

    def string(self, key: str, *, alias: str = "", default: str | None = None) -> str:
        value = self.value(key, alias=alias, default=default)
        if not isinstance(value, str):
            raise self.error(key, f"must be a string, not {kind(value)}")
        return value

    def filled(self, key: str, *, alias: str = "") -> str:
        """A string that is there and not blank."""
        value = self.string(key, alias=alias)
        if not value.strip():
            raise self.error(key, "is blank")
        return value

    def identifier(self, key: str) -> str:
        """A string that is not blank; an integer is read as its digits."""
        value = self.value(key)
        return str(value) if type(value) is int else self.filled(key)

    def mapping(self, key: str) -> dict[str, Any]:
        """An object; an empty one where the key is missing."""
        value = self.value(key, default={})
        if not isinstance(value, dict):
            raise self.error(key, f"must be an object, not {kind(value)}")
        return value

    def items(self, key: str, *, alias: str = "", default: list[Any] | None = None) -> list[Any]:
        value = self.value(key, alias=alias, default=default)
        if not isinstance(value, list):
            raise self.error(key, f"must be a list, not {kind(value)}")
        return value

    def strings(self, key: str) -> list[str]:
        """A list of strings that are not blank, repeated ones once; empty where the key is missing."""
        values = self.items(key, default=[])
        for value in values:
            if not isinstance(value, str) or not value.strip():
                raise self.error(key, "must be a list of strings that are not blank")
        return list(dict.fromkeys(values))
