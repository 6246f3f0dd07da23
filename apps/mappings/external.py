"""External mappings: a dataset over the stub collection of rankings that were made elsewhere."""

from django.db import transaction

from apps.collections.importing import create_collection
from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import add_judged_documents, is_stale, resolve_now
from benchbench.database.rereading import read_again
from benchbench.names import MAX_LENGTH, under_free_name

ENDING = " (external runs)"


@transaction.atomic
def external_mapping(dataset: Dataset) -> Mapping:
    """Return the mapping of `dataset` to its collection of ids, resolved for its newest frozen version.

    Both are made when first needed, one of each for a dataset, and belong to whom the dataset belongs to. Raises
    ResolveError where the dataset has no frozen version.
    """
    read_again(Dataset.objects.select_for_update(), dataset.pk)  # two imports make one mapping
    mapping = find_external_mapping(dataset) or _make(dataset)
    if mapping.status == Mapping.Status.PENDING or is_stale(mapping):
        add_judged_documents(mapping)
        mapping = resolve_now(mapping)
    return mapping


def find_external_mapping(dataset: Dataset) -> Mapping | None:
    """Return the mapping that runs from elsewhere are measured under, if there is one yet."""
    mappings = Mapping.objects.filter(dataset=dataset, collection__kind=Collection.Kind.EXTERNAL)
    return mappings.select_related("collection").order_by("created_at").first()


def _make(dataset: Dataset) -> Mapping:
    name = dataset.name[: MAX_LENGTH - len(ENDING)] + ENDING
    mine = [Collection.objects.filter(owner=dataset.owner), Mapping.objects.filter(owner=dataset.owner)]
    return under_free_name(name, mine, lambda free: _make_named(free, dataset))


def _make_named(name: str, dataset: Dataset) -> Mapping:
    stub = create_collection(
        name,
        owner=dataset.owner,
        kind=Collection.Kind.EXTERNAL,
        description=f'The ids that judgments of "{dataset}" and rankings made elsewhere name. Nothing is searched.',
    )
    mapping = create_mapping(dataset, stub, name=name, owner=dataset.owner)
    for made in (stub, mapping):
        made.team = dataset.team
        made.save(update_fields=["team", "updated_at"])
    return mapping
