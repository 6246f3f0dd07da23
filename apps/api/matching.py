"""The headers ETag and If-Match: a change of a row that another user has changed since is refused."""

from hashlib import sha256
from typing import Any

from django.db.models import Manager, Model
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from benchbench.errors import ConflictError
from benchbench.reading.strict_json import dump_canonical
from benchbench.site.history import find_last_author

HEADER, TAG = "If-Match", "ETag"


class StaleError(ConflictError):
    """Another user changed the row after the client had read it."""

    code = "stale"


def compute_tag(row: Model, changes: type[Serializer]) -> str:
    """Return the tag of a row: the hash of its fields that a request of the serializer `changes` can change."""
    sources = [field.source or name for name, field in changes._declared_fields.items()]
    values = {source: _read(getattr(row, source, None)) for source in sources}
    return f'"{sha256(dump_canonical([str(row.pk), values]).encode()).hexdigest()[:32]}"'


def require_match(request: Request, row: Model, changes: type[Serializer]) -> None:
    """Raise StaleError unless If-Match names the tag of `row`, which the caller has locked, or is `*`."""
    expected = {tag.strip() for tag in request.headers[HEADER].split(",")}
    if expected.isdisjoint({"*", compute_tag(row, changes)}):
        author = find_last_author(row)
        by = f" by {author}" if author else ""
        raise StaleError(
            f"The {row._meta.verbose_name} was changed{by} since you read it: read it again, and send your change "
            f"with its new {TAG}.",
            field=HEADER,
        )


def _read(value: object) -> Any:
    return sorted(str(row.pk) for row in value.all()) if isinstance(value, Manager) else value
