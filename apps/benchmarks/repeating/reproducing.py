"""Reproduction of an experiment file: finding the same data here, and creating the benchmark that it describes."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet

from apps.benchmarks.defining.choosing import is_current, ready_indexes
from apps.benchmarks.defining.creating import BenchmarkOptions, create_benchmark
from apps.benchmarks.models import Benchmark
from apps.benchmarks.repeating.manifests import SCHEMA, ExperimentFile, ManifestError
from apps.collections.models import Collection
from apps.datasets.models import DatasetVersion
from apps.mappings.models import Mapping
from apps.mappings.truth import TruthError, truth, truth_hash
from apps.retrieval.describing import content_of, identity_of
from apps.retrieval.models import Index
from benchbench.access import usable
from benchbench.files.experiment import NAME
from benchbench.reading import strict_yaml
from benchbench.reading.objects import InvalidKeyError, read_as
from benchbench.reading.strict_json import read_text, same

M = TypeVar("M", bound=Model)
SAME_OF_AN_INDEX = (
    *("strategy", "chunk_parameters", "encoder", "encoder_revision", "vector_source", "lexical"),
    *("llm", "llm_parameters", "summaries"),
)


def benchmark_from(experiment: Any, *, owner: User | None = None, name: str = "") -> Benchmark:
    """Create the pending benchmark that an experiment file describes, on the same data, and store the file with it.

    Finds dataset version, collection, mapping and indexes by the hashes of their content, under any id and name, among
    those that `owner` may see. Raises ManifestError, which names the missing or different part, and the errors of
    `create_benchmark`.
    """
    _require_readable(experiment)
    id = experiment.get("id")
    if id is not None and not NAME.holds(id):
        raise ManifestError(f"id must be {NAME.words}.", field="id")
    if experiment.get("runs"):
        return _create(
            experiment, owner, name or f"{experiment['benchmark']['name']}, again"[:200], manifest=experiment
        )
    called = name or f"{id or experiment['benchmark']['name']} {time.strftime('%Y-%m-%d %H:%M:%S')}"
    return _create(experiment, owner, called, experiment={"id": id} if id else None)


def _create(definition: dict[str, Any], owner: User | None, name: str, **kept: Any) -> Benchmark:
    mapping, version = _find_mapping(definition, owner)
    description = definition["benchmark"].get("description", "")
    return create_benchmark(
        mapping,
        BenchmarkOptions.among(
            definition, name=name, description=description, allow_missing=True
        ),  # modules that are missing were missing then too
        owner=owner,
        version=version,
        indexes={wanted["named"]: _find_index(wanted, mapping, owner) for wanted in definition["indexes"]},
        **kept,
    )


def read_definition(path: Path) -> dict[str, Any] | None:
    """Read the benchmark of an experiment file; return None for a file of the strategy benchmark.

    Raises MalformedFileError for an invalid file.
    """
    definition = strict_yaml.parse(read_text(path), where=path.name)
    return definition if isinstance(definition, dict) and "schema" in definition else None


def _require_readable(experiment: Any) -> None:
    if not isinstance(experiment, dict) or experiment.get("schema") != SCHEMA:
        raise ManifestError(
            f'This is not an experiment file: it has no "schema: {SCHEMA}". Download one from the page of a benchmark.'
        )
    try:
        read_as(ExperimentFile, experiment)
    except InvalidKeyError as error:
        raise ManifestError(f"The experiment file is damaged: {error.message}", field=error.field) from None


def _seen(rows: QuerySet[M], owner: User | None, *, through: str = "") -> QuerySet[M]:
    return rows if owner is None else usable(rows, owner, through=through)


def _find_mapping(manifest: dict[str, Any], owner: User | None) -> tuple[Mapping, DatasetVersion]:
    """Return the mapping of the same queries and judgments to the same documents, and their dataset version."""
    dataset, collection = manifest["dataset"], manifest["collection"]
    frozen = DatasetVersion.objects.filter(content_hash=dataset["content_hash"], frozen_at__isnull=False)
    versions = list(_seen(frozen.select_related("dataset"), owner, through="dataset"))
    collections = list(_seen(Collection.objects.filter(fingerprint=collection["fingerprint"]), owner))
    if not versions:
        raise _missing_dataset(dataset, owner)
    if not collections:
        raise _missing_collection(collection, owner)
    laid = Mapping.objects.filter(
        dataset__in=[version.dataset_id for version in versions], collection__in=collections
    ).select_related("dataset", "collection", "dataset_version")
    mappings = _by_name(_seen(laid, owner), manifest["mapping"].get("name", ""))
    if not mappings:
        raise ManifestError(
            f'The dataset "{versions[0].dataset}" is not mapped to the collection "{collections[0]}": map it, resolve '
            "the mapping, and run the experiment again."
        )
    laid_for = {version.dataset_id: version for version in versions}
    faults = {mapping: _fault_of_truth(manifest, mapping, laid_for[mapping.dataset_id]) for mapping in mappings}
    mapping = next((mapping for mapping, fault in faults.items() if not fault), None)
    if mapping is None:
        raise ManifestError(faults[mappings[0]])
    return mapping, laid_for[mapping.dataset_id]


def _by_name(rows: Iterable[Any], name: str) -> list[Any]:
    """Return the rows, those called `name` first."""
    return sorted(rows, key=lambda row: row.name != name)


def _missing_dataset(wanted: dict[str, Any], owner: User | None) -> ManifestError:
    of_name = DatasetVersion.objects.filter(dataset__name=wanted["name"], frozen_at__isnull=False)
    there = _seen(of_name.select_related("dataset"), owner, through="dataset").first()
    told = f'the experiment was run on "{wanted["name"]}" v{wanted.get("version")}, hash {wanted["content_hash"][:12]}'
    if there is None:
        return ManifestError(f"No dataset here has its queries and judgments ({told}): import that dataset first.")
    return ManifestError(
        f"No version of a dataset here has its queries and judgments ({told}); {there} has other content, hash "
        f"{there.content_hash[:12]}: import the version that was used."
    )


def _missing_collection(wanted: dict[str, Any], owner: User | None) -> ManifestError:
    there = _seen(Collection.objects.filter(name=wanted["name"]), owner).first()
    told = f'the experiment was run on "{wanted["name"]}", fingerprint {wanted["fingerprint"][:12]}'
    if there is None:
        return ManifestError(f"No collection here has its documents ({told}): import that collection first.")
    return ManifestError(
        f'No collection here has its documents ({told}); "{there}" has others, fingerprint {there.fingerprint[:12]}, '
        f"{there.document_count:,} documents where it had {wanted.get('documents', 0)}: import those that were used."
    )


def _fault_of_truth(manifest: dict[str, Any], mapping: Mapping, version: DatasetVersion) -> str:
    """Return why a mapping has another truth than the experiment, or "" if it has the same."""
    try:
        known = truth(mapping, version, unresolved=manifest["unresolved"])
    except TruthError as error:
        return error.message
    wanted = manifest["mapping"].get("truth_hash")
    if not wanted or truth_hash(known) == wanted:
        return ""
    return (
        f'The mapping "{mapping}" gives the judgments of {version} other documents than the experiment was measured '
        "against: resolve it again, and run the experiment again."
    )


def _find_index(wanted: dict[str, Any], mapping: Mapping, owner: User | None) -> Index:
    """Return the ready index with the same chunks and vectors that `owner` may search. Raises ManifestError without."""
    collection = mapping.collection
    ready = list(ready_indexes(mapping, owner).select_related("lexical_index"))
    for index in _by_name(ready, wanted["name"]):
        if is_current(index) and content_of(index) == wanted["content"]:
            return index
    near = next((index for index in ready if index.name == wanted["name"]), None)
    told = f'"{wanted["name"]}": {_describe(wanted)}'
    if near is None:
        raise ManifestError(
            f'The collection "{collection}" has no index like {told}. Build one, and run the experiment again.'
        )
    here = identity_of(near)
    differing = [key for key in SAME_OF_AN_INDEX if not same(here.get(key), wanted.get(key))]
    what = "; ".join(f"{key} is {_short(here.get(key))}, was {_short(wanted.get(key))}" for key in differing)
    raise ManifestError(
        f'No index of the collection "{collection}" is the one that the experiment was run on. The one that is called '
        f'"{near}" here differs: {what or "it was built before its documents changed"}. Build it as it was.'
    )


def _describe(wanted: dict[str, Any]) -> str:
    parts = {key: wanted.get(key) for key in SAME_OF_AN_INDEX if wanted.get(key)}
    return ", ".join(f"{key} {_short(value)}" for key, value in parts.items())


def _short(value: Any) -> str:
    text = str(value) if value else "none"
    return text if len(text) <= 60 else f"{text[:57]}…"
