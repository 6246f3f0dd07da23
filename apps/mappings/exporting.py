"""Export of a dataset version, with documents named as a mapping resolved them."""

from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from itertools import count

from apps.collections.sources import write_corpus
from apps.datasets.exporting import DatasetExport, export_record, record_of
from apps.datasets.models import DatasetVersion
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.mappings.models import Mapping, Resolution
from apps.mappings.resolving import load_basis
from apps.mappings.truth import TruthError, require_resolved

UNRESOLVED = "unresolved:"
Names = MappingOf[tuple[str, str], str]  # the external id of a document, by query key and hash of the reference


def export_dataset(version: DatasetVersion, format: str, *, mapping: Mapping | None = None) -> DatasetExport:
    """Return a frozen or draft version in a format of `apps.datasets.formats.registry`, ready to be written.

    With a `mapping` every judgment names its document by external_id, and a BEIR directory includes the corpus.
    A query's judgments of the same document are merged into one with the highest grade. A judgment without a document
    keeps its document_id, or gets an id that no document has. Raises WriteError if the format would distort the data.
    Raises TruthError if the mapping was not resolved for this version or its collection has changed.
    """
    name = f"{version.dataset.name}-v{version.number}"
    record = record_of(version)
    if mapping is None:
        return export_record(record, format, name=name)
    mapped, warnings = _map_record(record, version, mapping)
    extra_files = {"corpus.jsonl": write_corpus(mapping.collection)} if format == "beir" else {}
    export = export_record(mapped, format, name=name, extra_files=extra_files)
    return replace(export, warnings=(*export.warnings, *warnings))


def _map_record(record: DatasetRecord, version: DatasetVersion, mapping: Mapping) -> tuple[DatasetRecord, list[str]]:
    """Return the record with external ids, and warnings about unresolved and merged judgments."""
    require_resolved(mapping, version)
    # The corpus and the ids of unresolved judgments come from the collection as it is now.
    if mapping.collection_fingerprint != load_basis(mapping).fingerprint:
        raise TruthError(
            f'The documents of "{mapping.collection}" have changed since the mapping "{mapping}" was resolved: '
            "resolve it again, then export."
        )
    current = Resolution.objects.at(None).filter(mapping=mapping, judgment__in=version.judgments)
    resolved = current.filter(document__isnull=False)
    fields = ("judgment__query__key", "judgment__ref_hash", "document__external_id")
    names = {(key, ref): name for key, ref, name in resolved.values_list(*fields)}
    numbers = count(1)
    queries = [replace(query, judgments=_map_judgments(query, names, numbers)) for query in record.queries]
    lost = next(numbers) - 1
    merged = sum(len(query.judgments) for query in record.queries) - sum(len(query.judgments) for query in queries)
    warnings = []
    if lost:
        warnings.append(
            f"Judgments without a document in the collection, with generated ids ({UNRESOLVED}N): {lost:,}."
        )
    if merged:
        warnings.append(f"Judgments of a document that another judgment of the query names, left out: {merged:,}.")
    return replace(record, queries=queries), warnings


def _map_judgments(query: QueryRecord, names: Names, numbers: Iterator[int]) -> list[JudgmentRecord]:
    best: dict[str, JudgmentRecord] = {}
    for judgment in query.judgments:
        name = names.get((query.key, judgment.ref_hash))
        if name is None:
            id = judgment.doc_ref.get("document_id")
            name = id if id and id not in best else f"{UNRESOLVED}{next(numbers)}"
        before = best.get(name)
        if before is None or before.grade < judgment.grade:
            best[name] = replace(judgment, doc_ref={"document_id": name})
    return list(best.values())
