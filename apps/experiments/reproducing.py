"""Reproduction of an experiment file: finding the same data here, and creating the benchmark that it describes."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet

from apps.collections.models import Collection
from apps.datasets.models import DatasetVersion
from apps.execution.defining.choosing import is_current, list_ready_indexes
from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.experiments.manifests import SCHEMA, ExperimentFile, ManifestError
from apps.mappings.models import Mapping
from apps.mappings.truth import TruthError, TruthPolicies, hash_truth, read_truth
from apps.records.models import Benchmark
from apps.retrieval.describing import describe_identity, hash_content
from apps.retrieval.models import Index
from benchbench.access import usable
from benchbench.files.experiment import NAME
from benchbench.reading import strict_yaml
from benchbench.reading.objects import InvalidKeyError, read_as
from benchbench.reading.strict_json import is_same, read_text

M = TypeVar("M", bound=Model)
SAME_OF_AN_INDEX = (
    *("strategy", "chunk_parameters", "encoder", "encoder_revision", "vector_source", "lexical"),
    *("query_prompt", "document_prompt", "precision", "llm", "llm_parameters", "summaries"),
)


def reproduce(experiment: Any, *, owner: User | None = None, name: str = "") -> Benchmark:
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
    default_name = name or f"{id or experiment['benchmark']['name']} {time.strftime('%Y-%m-%d %H:%M:%S')}"
    return _create(experiment, owner, default_name, experiment={"id": id} if id else None)


def _create(definition: dict[str, Any], owner: User | None, name: str, **origin: Any) -> Benchmark:
    mapping, version = _find_mapping(definition, owner)
    description = definition["benchmark"].get("description", "")
    return create_benchmark(
        mapping,
        BenchmarkOptions.from_values(
            definition, name=name, description=description, allow_missing=True
        ),  # modules that are missing were missing then too
        owner=owner,
        version=version,
        indexes={facts["alias"]: _find_index(facts, mapping, owner) for facts in definition["indexes"]},
        **origin,
    )


def read_definition(path: Path) -> dict[str, Any]:
    """Read an exported benchmark. Raises MalformedFileError, and ManifestError for a file of the strategy benchmark."""
    definition = strict_yaml.parse(read_text(path), location=path.name)
    if not isinstance(definition, dict) or "schema" not in definition:
        raise ManifestError(f'{path.name} has no "schema", as exported benchmarks have: try run_experiment.')
    return definition


def _require_readable(experiment: Any) -> None:
    if not isinstance(experiment, dict) or experiment.get("schema") != SCHEMA:
        raise ManifestError(
            f'This is not an experiment file: it has no "schema: {SCHEMA}". Download one from the page of a benchmark.'
        )
    try:
        read_as(ExperimentFile, experiment)
    except InvalidKeyError as error:
        raise ManifestError(f"The experiment file is damaged: {error.message}", field=error.field) from None


def _filter_usable(rows: QuerySet[M], owner: User | None, *, through: str = "") -> QuerySet[M]:
    return rows if owner is None else usable(rows, owner, through=through)


def _find_mapping(manifest: dict[str, Any], owner: User | None) -> tuple[Mapping, DatasetVersion]:
    """Return the mapping of the same queries and judgments to the same documents, and their dataset version."""
    dataset, collection = manifest["dataset"], manifest["collection"]
    frozen = DatasetVersion.objects.filter(content_hash=dataset["content_hash"], frozen_at__isnull=False)
    versions = list(_filter_usable(frozen.select_related("dataset"), owner, through="dataset"))
    collections = list(_filter_usable(Collection.objects.filter(fingerprint=collection["fingerprint"]), owner))
    if not versions:
        raise _build_dataset_error(dataset, owner)
    if not collections:
        raise _build_collection_error(collection, owner)
    candidates = Mapping.objects.filter(
        dataset__in=[version.dataset_id for version in versions], collection__in=collections
    ).select_related("dataset", "collection", "dataset_version")
    mappings = _order_by_name(_filter_usable(candidates, owner), manifest["mapping"].get("name", ""))
    if not mappings:
        raise ManifestError(
            f'The dataset "{versions[0].dataset}" is not mapped to the collection "{collections[0]}": map it, resolve '
            "the mapping, and run the experiment again."
        )
    by_dataset = {version.dataset_id: version for version in versions}
    faults = {mapping: _find_truth_fault(manifest, mapping, by_dataset[mapping.dataset_id]) for mapping in mappings}
    mapping = next((mapping for mapping, fault in faults.items() if not fault), None)
    if mapping is None:
        raise ManifestError(faults[mappings[0]])
    return mapping, by_dataset[mapping.dataset_id]


def _order_by_name(rows: Iterable[object], name: str) -> list[Any]:
    """Return the rows, those called `name` first."""
    return sorted(rows, key=lambda row: row.name != name)


def _build_dataset_error(facts: dict[str, Any], owner: User | None) -> ManifestError:
    namesakes = DatasetVersion.objects.filter(dataset__name=facts["name"], frozen_at__isnull=False)
    local = _filter_usable(namesakes.select_related("dataset"), owner, through="dataset").first()
    detail = f'the experiment was run on "{facts["name"]}" v{facts.get("version")}, hash {facts["content_hash"][:12]}'
    if local is None:
        return ManifestError(f"The dataset of the experiment was not found ({detail}): import it first.")
    return ManifestError(
        f"The dataset version of the experiment was not found ({detail}). {local} has other content, hash "
        f"{local.content_hash[:12]}: import the version that was used."
    )


def _build_collection_error(facts: dict[str, Any], owner: User | None) -> ManifestError:
    local = _filter_usable(Collection.objects.filter(name=facts["name"]), owner).first()
    detail = f'the experiment was run on "{facts["name"]}", fingerprint {facts["fingerprint"][:12]}'
    if local is None:
        return ManifestError(f"The collection of the experiment was not found ({detail}): import it first.")
    return ManifestError(
        f'The collection of the experiment was not found ({detail}). "{local}" has other documents, fingerprint '
        f"{local.fingerprint[:12]}, {local.document_count:,} instead of {facts.get('documents', 0)}: import those "
        "that were used."
    )


def _find_truth_fault(manifest: dict[str, Any], mapping: Mapping, version: DatasetVersion) -> str:
    """Return why a mapping has another truth than the experiment, or "" if it has the same."""
    try:
        policies = TruthPolicies(manifest["unresolved"], manifest.get("identical_texts", "different"))
        actual = read_truth(mapping, version, policies=policies)
    except TruthError as error:
        return error.message
    expected_hash = manifest["mapping"].get("truth_hash")
    if not expected_hash or hash_truth(actual) == expected_hash:
        return ""
    return (
        f'The mapping "{mapping}" resolves the judgments of {version} to other documents than in the experiment: '
        "resolve it again, and run the experiment again."
    )


def _find_index(facts: dict[str, Any], mapping: Mapping, owner: User | None) -> Index:
    """Return the ready index with the same chunks and vectors that `owner` may search. Raises ManifestError without."""
    collection = mapping.collection
    ready = list(list_ready_indexes(mapping, owner).select_related("lexical_index"))
    for index in _order_by_name(ready, facts["name"]):
        if is_current(index) and hash_content(index) == facts["content"]:
            return index
    local = next((index for index in ready if index.name == facts["name"]), None)
    detail = f'"{facts["name"]}": {_describe(facts)}'
    if local is None:
        raise ManifestError(
            f'The collection "{collection}" has no index like {detail}. Build one, and run the experiment again.'
        )
    actual = describe_identity(local)
    differing = [key for key in SAME_OF_AN_INDEX if not is_same(actual.get(key), facts.get(key))]
    changes = "; ".join(f"{key} is {_shorten(actual.get(key))}, was {_shorten(facts.get(key))}" for key in differing)
    raise ManifestError(
        f'No index of the collection "{collection}" matches the index of the experiment. The index "{local}" differs: '
        f"{changes or 'it was built before its documents changed'}. Build it with the original values."
    )


def _describe(facts: dict[str, object]) -> str:
    fields = {key: facts.get(key) for key in SAME_OF_AN_INDEX if facts.get(key)}
    return ", ".join(f"{key} {_shorten(value)}" for key, value in fields.items())


def _shorten(value: object) -> str:
    text = str(value) if value else "none"
    return text if len(text) <= 60 else f"{text[:57]}…"
