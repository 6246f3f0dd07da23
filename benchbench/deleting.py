"""Deleting rows that are not in use."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS, IntegrityError, connection, transaction
from django.db.models import CASCADE, ForeignKey, Model, Q, QuerySet
from django.db.models.deletion import PROTECT, RESTRICT, Collector, ProtectedError, RestrictedError
from psycopg.errors import ForeignKeyViolation

from benchbench.access import is_visible_to_viewers
from benchbench.database.bin import keep_rows
from benchbench.database.failures import read_again
from benchbench.errors import ConflictError
from benchbench.models import NamedModel, OwnedModel, PublicModel


def delete_unused(instance: Model) -> None:
    """Delete `instance` and its parts. Raises ConflictError, which names what uses it, and then deletes nothing.

    Raises DeletedError if it was deleted meanwhile, so that two users cannot both put it into the bin.
    """
    try:
        with transaction.atomic():
            # A transaction that has stored a reference ends first and is seen here; a later one fails (`referring`).
            read_again(type(instance)._base_manager.select_for_update(), instance.pk)
            require_unused(instance)  # first of all: Django would load its parts before it refuses
            delete_all([instance])
    except ProtectedError as error:
        raise in_use(instance, *error.protected_objects) from None
    except RestrictedError as error:
        raise in_use(instance, *error.restricted_objects) from None


def require_unused(instance: Model) -> None:
    """Raise ConflictError, which names what uses `instance`. Call it with the row locked, before deleting its parts."""
    protected = [relation for relation in instance._meta.related_objects if _protects(relation)]
    users = [
        row
        for relation in protected
        for row in relation.related_model._base_manager.filter(**{relation.field.name: instance}).order_by("pk")
    ]
    if users:
        raise in_use(instance, *users)


def _protects(relation: Any) -> bool:
    return relation.on_delete in (PROTECT, RESTRICT)


@dataclass(frozen=True, slots=True)
class Effects:
    """Rows by model: the `contents` of a row, which go with it, and its `users`, which must go before it."""

    contents: dict[type[Model], QuerySet[Any]]
    users: dict[type[Model], QuerySet[Model]]


def find_effects(instance: Model, along: Collection[type[Model]] = ()) -> Effects:
    """Return what goes with `instance`, rows of the models `along` too, and what keeps it from being deleted.

    Rows that refer to a query or a document belong to what else is found. No rows are read.
    """
    lookups: dict[type[Model], str] = {type(instance): ""}
    users: defaultdict[type[Model], Q] = defaultdict(Q)
    waiting: list[type[Model]] = [type(instance)]
    for model in waiting:
        for relation in _list_relations(model):
            child = relation.related_model
            lookup = "__".join(filter(None, (relation.field.name, lookups[model])))
            if relation.on_delete is CASCADE or child in along:
                if child not in lookups:
                    lookups[child] = lookup
                    waiting.append(child)
            elif relation.on_delete is PROTECT and issubclass(model, PublicModel):
                root, path = _find_root(child)
                keys = child._base_manager.filter(**{lookup: instance}).values(path or "pk")
                users[root] |= Q(pk__in=keys)
    contents = {model: model._base_manager.filter(**{path: instance}) for model, path in lookups.items() if path}
    rows = {model: model._base_manager.filter(query) for model, query in users.items() if model not in lookups}
    return Effects(contents, rows)


def _list_relations(model: type[Model]) -> Iterator[Any]:
    """Give the foreign keys that lead to `model`, as seen from it."""
    for relation in model._meta.get_fields(include_hidden=True):
        if relation.auto_created and (relation.one_to_many or relation.one_to_one) and not relation.concrete:
            yield relation


def _find_root(model: type[Model]) -> tuple[type[Model], str]:
    """Return the model that users delete to delete rows of `model`, and the lookup that leads to it."""
    path: list[str] = []
    while not issubclass(model, NamedModel | OwnedModel):
        keys = (field for field in model._meta.fields if isinstance(field, ForeignKey))
        owner = next(key for key in keys if key.remote_field.on_delete is CASCADE)
        path.append(owner.name)
        model = owner.related_model
    return model, "__".join(path)


def delete_rows(rows: QuerySet[Model]) -> None:
    """Delete rows in one statement, without looking for rows that refer to them.

    A queryset's own `delete` loads the rows and deletes a hundred at a time. The caller first deletes the rows that
    refer to them. If one remains, its foreign key makes the commit fail.
    """
    keep_rows(rows)
    rows._raw_delete(rows.db)


def delete_all(rows: QuerySet[Any] | Sequence[Model]) -> int:
    """Delete rows with those that go with them, as Django does, and return their number. The bin can keep them."""
    collector = Collector(using=DEFAULT_DB_ALIAS)
    collector.collect(rows)
    for model, instances in collector.data.items():
        keep_rows(_select(model, instances))
    for fast in collector.fast_deletes:
        keep_rows(_select(fast.model, fast))
    updates: Any = collector.field_updates.items()
    for (field, _), updated in updates:
        for some in updated:
            keep_rows(_select(field.model, some), column=field.column)
    return collector.delete()[0]


def _select(model: type[Model], rows: Iterable[Model]) -> QuerySet[Any]:
    return rows if isinstance(rows, QuerySet) else model._base_manager.filter(pk__in=[row.pk for row in rows])


def in_use(instance: Model, *users: Model) -> ConflictError:
    """Return the error that names the rows that use `instance`: '… is used by mapping "a" and 2 more mappings …'.

    It leaves out names that not every user who may delete `instance` may see.
    """
    noun = instance._meta.verbose_name
    examples = {type(user): user for user in users if is_visible_to_viewers(_owned(user), instance)}
    counts = Counter(type(user) for user in users)
    foreign_types = {
        type(user) for user in users if getattr(_owned(user), "owner_id", None) != getattr(instance, "owner_id", None)
    }
    used_by = " and ".join(
        _describe_usage(model, count, examples.get(model), model in foreign_types) for model, count in counts.items()
    )
    return ConflictError(f'The {noun} "{instance}" cannot be deleted: it is used by {used_by}. Delete that first.')


def _owned(row: Model) -> Any:
    """Return the row that has the owner of `row`: for a run, its benchmark."""
    return row if hasattr(row, "owner_id") else getattr(row, "benchmark", row)


def _describe_usage(model: type[Model], count: int, example: Model | None, of_others: bool) -> str:
    meta = model._meta
    if count == 1:
        hidden = "of another owner" if of_others else "hidden from the team"
        return f'the {meta.verbose_name} "{example}"' if example else f"one {meta.verbose_name} {hidden}"
    hidden = "of other owners" if of_others else "hidden from the team"
    among = f'"{example}" among them' if example else hidden
    return f"{count} {meta.verbose_name_plural} ({among})"


@contextmanager
def referring(subject: str) -> Iterator[None]:
    """Open a transaction that stores rows which refer to others. Raises ConflictError if one of those was deleted.

    `subject` names the stored rows in a sentence: "The benchmark". PostgreSQL checks the foreign keys at the end of the
    block, not only at the commit. From then on, deleting a referenced row waits (`delete_unused`).
    """
    try:
        with transaction.atomic():
            yield
            connection.check_constraints()
    except IntegrityError as error:
        if not isinstance(error.__cause__, ForeignKeyViolation):
            raise
        raise ConflictError(
            f"{subject} was not created: an object that it needs was just deleted. Reload the page and try again."
        ) from error
