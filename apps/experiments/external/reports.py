"""Reading files of rankings, and reports on the queries of a dataset version that they answer."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from django.conf import settings

from apps.collections.stubs import LONGEST_ID
from apps.datasets.models import DatasetVersion
from apps.mappings.references import load_judged_ids
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.files.archives import require_unpacked_size
from benchbench.files.flowbaby import OrderBy
from benchbench.files.runs import FORMATS, Ranked, RunFile, read_run_file
from benchbench.site.reading import cut_batches, yield_read

MAX_LISTED = 5
RESULTS = 20_000  # that a reading process sends at once
REMEDY = "Leave queries or ranks out, or import it with manage.py import_run."


class RunImportError(BenchbenchError):
    """The file of rankings cannot be a run of the dataset."""

    code = "invalid_run"


@dataclass(frozen=True, slots=True)
class RunReport:
    """Counts of a file against a dataset version.

    `queries` are those of the version, `answered` those with ranked documents in the file. Of the others, `missing`
    are judged and count as 0, as in trec_eval -c. `unjudged` queries of the version have no judgment. `unknown`
    queries of the file are not in the version; `first_unknown` names some. `tied` queries have equal scores ordered by
    document id. `results` counts ranked documents, `documents` the distinct ones. `unjudged_documents`
    are in no judgment of the version; `first_unjudged` names some.
    """

    file: str
    format: str
    tags: tuple[str, ...]
    queries: Annotated[int, "Queries of the version."]
    answered: Annotated[int, "Queries of the version for which the file ranks documents."]
    results: Annotated[int, "Ranked documents."]
    documents: Annotated[int, "Distinct documents."]
    missing: Annotated[int, "Judged queries that the file lacks; they count as 0."]
    unjudged: Annotated[int, "Queries of the version without a judgment."]
    unknown: Annotated[int, "Queries of the file that the version lacks; they are left out."]
    first_unknown: tuple[str, ...]
    tied: Annotated[int, "Queries in which documents with equal scores are ordered by id."]
    unjudged_documents: Annotated[
        int, "Distinct documents that no judgment of the version names; they count as not relevant."
    ]
    first_unjudged: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Summarise the content of the file in one line."""
        return (
            f"{self.file} ({FORMATS[self.format]}): {counted(self.results, 'result')}, "
            f"{counted(self.documents, 'document')}, for {self.answered:,} of {counted(self.queries, 'query')}."
        )

    def list_notes(self) -> Iterator[str]:
        """Yield a sentence for each finding that changes the values or may be a mistake."""
        if self.missing:
            yield f"Judged queries that {self.file} lacks, counted as 0: {self.missing:,}."
        if self.unknown:
            examples = ", ".join(self.first_unknown) + (", …" if self.unknown > len(self.first_unknown) else "")
            yield (
                f"Queries of {self.file} that the dataset does not have, left out: {self.unknown:,} of "
                f"{self.unknown + self.answered:,} ({examples})."
            )
        if self.unjudged_documents == self.documents:
            yield (
                f"No judgment of the dataset names a document of {self.file} ({self.documents:,}: "
                f"{self._first_unjudged}), so none counts as relevant. Check that both use the same ids."
            )
        elif self.unjudged_documents:
            yield (
                f"Documents of {self.file} that no judgment of the dataset names, counted as not relevant: "
                f"{self.unjudged_documents:,} of {self.documents:,} ({self._first_unjudged})."
            )
        if self.unjudged:
            yield (
                f"Queries of the dataset without a judgment: {self.unjudged:,}. They count as 0, unless queries "
                "without a relevant judgment are skipped; trec_eval leaves them out of its means."
            )
        if self.tied:
            yield f"Queries in which documents have equal scores, ordered by id, descending: {self.tied:,}."
        if len(self.tags) > 1:
            yield f"{self.file} has {len(self.tags):,} tags ({', '.join(self.tags[:5])}): it is imported as one run."

    @property
    def _first_unjudged(self) -> str:
        more = self.unjudged_documents > len(self.first_unjudged)
        return ", ".join(self.first_unjudged) + (", …" if more else "")


def read_for(
    version: DatasetVersion,
    path: Path,
    *,
    format: str = "",
    order_by: OrderBy | None = None,
    is_upload: bool = False,
) -> tuple[RunFile, RunReport]:
    """Read the rankings that a file, which may be an upload, has for the queries of `version`.

    Raises FileFormatError for an invalid file. Raises RunImportError if it answers none of the queries, or has a
    document id that is not valid.
    """
    keys = set(version.queries.values_list("key", flat=True))
    read = read_uploaded_run if is_upload else read_run_file
    run_file = read(path, keys, format=format, order_by=order_by)
    if not run_file.rankings:
        raise RunImportError(
            f"{path.name} answers no query of {version}, only {counted(run_file.unknown_count, 'query')} with other "
            f"keys ({', '.join(run_file.first_unknown)}). Check that it is a run of this dataset."
        )
    documents = {document for ranked in run_file.rankings.values() for document in ranked.documents}
    wrong = next((document for document in documents if len(document) > LONGEST_ID or "\0" in document), None)
    if wrong is not None:
        raise RunImportError(
            f"{path.name} names the document {wrong[:60]!a}…, which has more than {LONGEST_ID} characters or a NUL: "
            "such an id cannot be stored."
        )
    judged = set(version.judgments.order_by().values_list("query__key", flat=True).distinct())
    unjudged = sorted(documents - load_judged_ids(version))
    report = RunReport(
        file=path.name,
        format=run_file.format,
        tags=run_file.tags,
        queries=len(keys),
        answered=len(run_file.rankings),
        results=run_file.results,
        documents=len(documents),
        missing=len(judged - run_file.rankings.keys()),
        unjudged=len(keys - judged),
        unknown=run_file.unknown_count,
        first_unknown=run_file.first_unknown,
        tied=run_file.tied,
        unjudged_documents=len(unjudged),
        first_unjudged=tuple(unjudged[:MAX_LISTED]),
    )
    return run_file, report


def read_uploaded_run(path: Path, keys: Collection[str], **options: Any) -> RunFile:
    """Return what `read_run_file` does of an uploaded file. Raises the errors of `yield_read` too.

    Raises FileFormatError if it unpacks to more than BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES.
    """
    pieces = iter(yield_read(yield_run, path, keys, remedy=REMEDY, **options))
    run_file = next(pieces)
    assert isinstance(run_file, RunFile)
    return replace(run_file, rankings=dict(chain.from_iterable(batch for batch in pieces if isinstance(batch, list))))


def yield_run(path: Path, keys: Collection[str], **options: Any) -> Iterator[RunFile | list[tuple[str, Ranked]]]:
    """Yield an uploaded run without its rankings, then its rankings in batches."""
    require_unpacked_size(path, max_bytes=settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES)
    run_file = read_run_file(path, keys, **options)
    yield replace(run_file, rankings={})
    yield from cut_batches(
        run_file.rankings.items(), max_weight=RESULTS, weigh=lambda ranking: len(ranking[1].documents)
    )
