"""Creating and deleting mappings: of a dataset to a collection, and of a dataset to the ids of external runs."""

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from apps.collections.editing import delete_collection
from apps.collections.importing import create_collection
from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.mappings.resolving import add_judged_documents, is_stale, resolve_now
from apps.operations.models import Operation
from benchbench.access import usable
from benchbench.database.failures import read_again, refresh
from benchbench.deleting import delete_unused, in_use, referring, require_unused
from benchbench.errors import ConflictError
from benchbench.names import MAX_LENGTH, check_name, use_free_name


class MappingExistsError(ConflictError):
    """The owner already sees a mapping of the dataset to the collection, or the name is taken."""

    code = "mapping_exists"


def create_mapping(dataset: Dataset, collection: Collection, *, name: str = "", owner: User | None = None) -> Mapping:
    """Create the mapping of `dataset` to `collection`, not yet resolved.

    Without `name` the mapping gets the first free name made from both names. Raises MappingExistsError if the owner
    already sees a mapping of the two or has one called `name`. Raises ConflictError if the collection holds the ids of
    external runs and has a mapping already.
    """
    _refuse_second(dataset, collection, owner)
    if collection.kind == Collection.Kind.EXTERNAL and collection.mappings.exists():
        raise ConflictError(
            f'The collection "{collection}" holds the ids of external runs for one dataset: import a run to create '
            "one for another dataset.",
            field="collection",
        )
    mine = Mapping.objects.filter(owner=owner)
    if not name:
        after_both = f"{dataset.name} on {collection.name}"
        return use_free_name(
            after_both, [mine], lambda free: create_mapping(dataset, collection, name=free, owner=owner)
        )
    called = check_name(name, "mapping")
    try:
        with referring("The mapping"):
            return Mapping.objects.create(name=called, dataset=dataset, collection=collection, owner=owner)
    except IntegrityError as error:
        _refuse_second(dataset, collection, owner)  # another request may just have mapped them
        if not mine.filter(name=called).exists():
            raise
        raise MappingExistsError(f'A mapping "{called}" exists already: choose another name.', field="name") from error


def _refuse_second(dataset: Dataset, collection: Collection, owner: User | None) -> None:
    same = Mapping.objects.filter(dataset=dataset, collection=collection)
    if existing := (same.filter(owner=None) if owner is None else usable(same, owner)).first():
        raise MappingExistsError(
            f'The dataset "{dataset}" is already mapped to the collection "{collection}", by the mapping "{existing}": '
            "resolve that one again."
        )


def find_mapping(dataset: Dataset, collection: Collection, *, owner: User | None = None) -> Mapping | None:
    """Return the mapping of `dataset` to `collection` for `owner`: theirs, else one without an owner, else the oldest.

    Mappings that `owner` may not see are ignored. Without `owner`, as in a command, all mappings count.
    """
    same = Mapping.objects.filter(dataset=dataset, collection=collection)
    seen = same if owner is None else usable(same, owner)
    return seen.filter(owner=owner).first() or seen.filter(owner=None).first() or seen.order_by("created_at").first()


@transaction.atomic
def ensure_mapping(dataset: Dataset, collection: Collection, *, name: str = "", owner: User | None = None) -> Mapping:
    """Return the mapping of `dataset` to `collection` that `owner` sees, or a new one, and resolve it if needed."""
    mapping = find_mapping(dataset, collection, owner=owner)
    return _ensure_resolved(mapping or create_mapping(dataset, collection, name=name, owner=owner))


def _ensure_resolved(mapping: Mapping) -> Mapping:
    if mapping.status != Mapping.Status.PENDING and not is_stale(mapping):
        return mapping
    if mapping.collection.kind == Collection.Kind.EXTERNAL:
        add_judged_documents(mapping)
    return resolve_now(mapping)


ENDING = " (external runs)"


@transaction.atomic
def ensure_external(dataset: Dataset) -> Mapping:
    """Return the mapping of `dataset` to its collection of external ids, resolved for its newest frozen version.

    Each dataset has one of both, created on first use for the owner and team of the dataset. Raises ResolveError if
    the dataset has no frozen version.
    """
    read_again(Dataset.objects.select_for_update(), dataset.pk)  # so that two imports at once create one mapping
    existing = Mapping.objects.filter(dataset=dataset, collection__kind=Collection.Kind.EXTERNAL).order_by("created_at")
    name = dataset.name[: MAX_LENGTH - len(ENDING)] + ENDING
    mine = [Collection.objects.filter(owner=dataset.owner), Mapping.objects.filter(owner=dataset.owner)]
    return _ensure_resolved(
        existing.select_related("collection").first() or use_free_name(name, mine, lambda free: _create(free, dataset))
    )


def _create(name: str, dataset: Dataset) -> Mapping:
    stub = create_collection(
        name,
        owner=dataset.owner,
        kind=Collection.Kind.EXTERNAL,
        description=f'The ids that judgments of "{dataset}" and rankings made elsewhere name. Nothing is searched.',
    )
    mapping = create_mapping(dataset, stub, name=name, owner=dataset.owner)
    for row in (stub, mapping):
        row.team = dataset.team
        row.save(update_fields=["team", "updated_at"])
    return mapping


def delete_mapping(mapping: Mapping) -> None:
    """Delete `mapping` and its resolutions, and keep its dataset and collection.

    A collection of external ids is deleted with its mapping. Raises ConflictError if benchmarks use the mapping or an
    operation is resolving it.
    """
    with transaction.atomic():
        _require_deletable(mapping)
        collection = mapping.collection
        delete_unused(mapping)
        if collection.kind == Collection.Kind.EXTERNAL:
            delete_collection(collection)


def _require_deletable(mapping: Mapping) -> None:
    refresh(mapping, Mapping.objects.select_for_update())  # a request to resolve it waits
    if active := Operation.active_on(mapping):
        raise in_use(mapping, active)
    require_unused(mapping)


@transaction.atomic
def delete_dataset(dataset: Dataset) -> None:
    """Delete a dataset with all its versions and mappings, and keep the collections.

    Raises ConflictError and deletes nothing if a benchmark uses a mapping or an operation is resolving one: unlike
    mappings, results cannot be made again.
    """
    try:
        mappings = list(dataset.mappings.select_related("collection"))
        for mapping in mappings:  # all of them, before any is deleted
            _require_deletable(mapping)
        for mapping in mappings:
            delete_mapping(mapping)
    except ConflictError as error:
        raise ConflictError(f'The dataset "{dataset}" cannot be deleted. {error.message}') from error
    delete_unused(dataset)
