"""Creating a mapping: a dataset laid over a collection."""

from typing import Any

from django.db import IntegrityError

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from benchbench.access import usable
from benchbench.database.references import referring
from benchbench.errors import ConflictError
from benchbench.names import checked_name, under_free_name


class MappingExistsError(ConflictError):
    """The owner sees a mapping of the dataset onto the collection already, or the name is taken."""

    code = "mapping_exists"


def create_mapping(dataset: Dataset, collection: Collection, *, name: str = "", owner: Any = None) -> Mapping:
    """Create the mapping of `dataset` onto `collection`, not yet resolved.

    Without a name it is called after both, by the first such name that the owner has not used: nobody is told that a
    name is taken which nobody stated. Raises MappingExistsError: the owner sees at most one mapping of the two when it
    is made, and an owner's mappings have different names; ConflictError for the ids of external runs, which have one.
    """
    _refuse_second(dataset, collection, owner)
    if collection.kind == Collection.Kind.EXTERNAL and collection.mappings.exists():
        raise ConflictError(
            f'The collection "{collection}" holds the ids of external runs, for one dataset: importing a run makes one '
            "for another.",
            field="collection",
        )
    mine = Mapping.objects.filter(owner=owner)
    if not name:
        after_both = f"{dataset.name} on {collection.name}"
        return under_free_name(
            after_both, [mine], lambda free: create_mapping(dataset, collection, name=free, owner=owner)
        )
    called = checked_name(name, "mapping")
    try:
        with referring("The mapping"):
            return Mapping.objects.create(name=called, dataset=dataset, collection=collection, owner=owner)
    except IntegrityError as error:
        _refuse_second(dataset, collection, owner)  # somebody mapped them in the same moment
        if not mine.filter(name=called).exists():
            raise
        raise MappingExistsError(f'A mapping "{called}" exists already: choose another name.', field="name") from error


def _refuse_second(dataset: Dataset, collection: Collection, owner: Any) -> None:
    same = Mapping.objects.filter(dataset=dataset, collection=collection)
    if there := (same.filter(owner=None) if owner is None else usable(same, owner)).first():
        raise MappingExistsError(
            f'The dataset "{dataset}" is already mapped to the collection "{collection}", by the mapping "{there}": '
            "resolve that one again."
        )


def mapping_of(dataset: Dataset, collection: Collection, *, owner: Any = None) -> Mapping | None:
    """Return the mapping of `dataset` onto `collection` that `owner` sees: theirs, else nobody's, else the oldest.

    One that they do not see is not there for them. Without an owner it is nobody's, else the oldest, whosever it is: a
    command that names none finds everybody's.
    """
    same = Mapping.objects.filter(dataset=dataset, collection=collection)
    seen = same if owner is None else usable(same, owner)
    return seen.filter(owner=owner).first() or seen.filter(owner=None).first() or seen.order_by("created_at").first()
