"""A site on which every text that a person or a file can give is markup that acts in a page that does not escape it."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.contrib.postgres.fields import ArrayField
from django.db import models

from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, Run
from tests.admin.addresses import make_world
from tests.benchmarks.gated import pinned

# It ends a quoted attribute, a title and a script, and then has each way in which an attribute can act.
ACTS = 'x-data x-init="pwned()" x-html="pwned()" hx-on:load="pwned()" hx-get="/pwned" hx-trigger="load"'
MARKUP = f'\'"--></title></script><img class=pwned src=x onerror=pwned() {ACTS}><a href="//pwned">'
OURS = "apps."
# What the code compares with words of its own, or reads as something else than a text for people.
READ = {
    *("strategy", "engine", "source_format", "schema_version", "queue", "key", "encoder", "reranker", "measure"),
    *("fingerprint", "collection_fingerprint", "config_hash", "content_hash", "ref_hash", "text_hash", "truth_hash"),
    *("policies_hash", "prompt_hash", "body_hash", "sha256", "digest", "jti", "basis", "mark", "cron", "rules"),
    *("kind", "prompt_version", "lease_owner", "backup_owner", "hint", "path", "document_ids", "measures", "llm"),
}
# Objects of JSON whose texts are for people: their values, and where a person names the keys, these.
MARKED_FIELDS = {"metadata", "slice_definitions", "warnings", "filters", "evidence", "unfit_workers", "hits", "scale"}
# That such a text is there says something by itself.
STATES = {"error", "error_message", "problem", "waits_for", "turned"}
FURTHER: tuple[type[models.Model], ...] = (Group, User, LogEntry)
FURTHER_FIELDS = {"name", "username", "first_name", "last_name", "email", "object_repr", "change_message"}


def make_marked_world(owner: User) -> None:
    """Make a site with a row of everything, each of whose texts is markup."""
    make_world(owner)
    pinned(Run.objects.get(benchmark__origin__isnull=False))  # of the dataset whose benchmark has a schedule
    assert mark_texts() > 300
    for benchmark in Benchmark.objects.filter(status="completed", runs__evaluations__isnull=False).distinct():
        rescore(benchmark)  # documents have other ids now


def list_fields() -> Iterator[tuple[type[models.Model], Any]]:
    """Yield each field of a table that holds texts for people."""
    for model in apps.get_models():
        ours = model.__module__.startswith(OURS)
        if not model._meta.managed or not (ours or model in FURTHER):
            continue
        for field in model._meta.concrete_fields:
            recognised = field.name not in READ if ours else field.name in FURTHER_FIELDS
            if recognised and not field.choices and not field.is_relation and is_text(field):
                yield model, field


def is_text(field: Any) -> bool:
    if isinstance(field, ArrayField):
        return is_text(field.base_field)
    if isinstance(field, models.JSONField):
        return field.name in MARKED_FIELDS
    return isinstance(field, models.CharField | models.TextField)


def mark_texts() -> int:
    """Fill every such field of every row, where it is not empty by design, and return how many were filled."""
    filled = 0
    for model, field in list_fields():
        for row in model._default_manager.all():
            value = getattr(row, field.name)
            if value is None or (field.name in STATES and not value):
                continue
            marked = mark(value, field, row.pk)
            if marked != value:
                filled += model._base_manager.filter(pk=row.pk).update(**{field.name: marked})
    return filled


def mark(value: Any, field: Any, key: Any) -> Any:
    """Return `value` with markup in place of each text, unlike that of other rows."""
    if isinstance(field, ArrayField):
        return [f"{MARKUP}{number}"[: field.base_field.max_length] for number in range(max(1, len(value)))]
    if isinstance(field, models.JSONField):
        return mark_leaves(value)
    text = f"{key}{MARKUP}"
    return text if field.max_length is None else shorten(text, field.max_length)


def shorten(text: str, length: int) -> str:
    """Return `text` in at most `length` letters, with as much of the markup as acts: the tag always ends."""
    return text if len(text) <= length else f"{text[: length - len(SHORT)].partition('<')[0]}{SHORT}"[-length:]


SHORT = '<a class=pwned href="//pwned" x-data x-init=pwned()>'


def mark_leaves(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: mark_leaves(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [mark_leaves(inner) for inner in value]
    return MARKUP if isinstance(value, str) else value


class Escapes(HTMLParser):
    """Reads a page, and lists the tags that are in it and come from a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if any(name == "class" and "pwned" in (value or "").split() for name, value in attributes):
            line, column = self.getpos()
            self.found.append(f"<{tag}> in line {line} at {column}")
