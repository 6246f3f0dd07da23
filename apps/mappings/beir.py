"""Import of a whole BEIR directory: its documents, its judged queries, their mapping, and an index."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from shlex import quote

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from apps.collections.importing import ImportReport, import_collection
from apps.collections.models import Collection
from apps.collections.sources import Source, find_corpus, open_catalogue, read_corpus
from apps.datasets.formats.catalogue import read_catalogue
from apps.datasets.formats.reading import read_dataset
from apps.datasets.importing import DatasetImport, DatasetReport, import_dataset
from apps.datasets.models import DatasetVersion
from apps.datasets.records import DatasetRecord
from apps.mappings.creating import ensure_mapping
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.retrieval.encoders.encoding import load_index_encoder
from apps.retrieval.importing_vectors import (
    VectorImport,
    import_vectors,
    read_vector_file,
    store_query_vectors,
)
from apps.retrieval.indexing import create_index, filter_equal_indexes, find_or_start_build
from apps.retrieval.models import Index
from benchbench.catalogue import parse_catalogue_id
from benchbench.errors import BenchbenchError, ConflictError

DEFAULT_SPLIT = "test"
# Parameters of every index made here, apart from its encoder or vectors.
IMPORTED: dict[str, object] = {"strategy": "flat", "chunk_parameters": {}, "lexical": True}


class BeirError(BenchbenchError):
    """The directory cannot be imported, or not with these options."""

    code = "invalid_beir"


@dataclass(frozen=True)
class Indexed:
    """An index of the imported documents.

    Without an `operation` it is ready: an equal one existed (`reused`), or vectors were imported into it (`vectors`).
    Otherwise the operation builds it.
    """

    index: Index
    reused: bool = False
    vectors: VectorImport | None = None
    operation: Operation | None = None


@dataclass(frozen=True)
class BeirImport:
    """The result of an import. The two reports say what is new and what existed already."""

    collection: Collection
    documents: ImportReport
    version: DatasetVersion
    queries: DatasetReport
    mapping: Mapping
    indexed: Indexed


@transaction.atomic
def import_beir(
    directory: Path,
    *,
    name: str,
    split: str = "",
    vectors: Path | None = None,
    model: str | None = None,
    lexical_only: bool = False,
    owner: User | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> BeirImport:
    """Import `directory` as a collection, a dataset, their resolved mapping and an index, all of them called `name`.

    `directory` may be a public collection, `ir_datasets:ID`. From a directory the given `split` is read, by default
    "test".

    The index holds each document as one chunk. It is searched by words (BM25) and, unless `lexical_only`, by vectors.
    These come from the .npz file `vectors`; `model` names their model if the file does not. Without a file an operation
    encodes the documents with `model`, by default BENCHBENCH_DEFAULT_MODEL. The import is one transaction; only that
    operation runs after it.

    Importing the same input again changes nothing: existing documents, queries and an equal index are reused. An
    unfinished index is built to its end. `on_progress` gets the number of documents read. Raises BeirError, and the
    errors of the readers, importers and indexes.
    """
    if lexical_only and (vectors is not None or model):
        raise BeirError("Choose: a file of vectors or a model, or no vectors at all.")
    source, record = _open(directory, split)
    collection, documents = import_collection(source, name=name, owner=owner, on_progress=on_progress)
    imported = _import_queries(record, directory, name, split, owner)
    version = imported.version
    mapping = ensure_mapping(version.dataset, collection, name=name, owner=owner)
    if vectors is not None:
        indexed = _import_index(collection, vectors, version, owner, model or "")
    else:
        encoder = "" if lexical_only else model or settings.BENCHBENCH_DEFAULT_MODEL
        indexed = _build_index(collection, encoder, owner)
    return BeirImport(collection, documents, version, imported.report, mapping, indexed)


def _open(directory: Path, split: str) -> tuple[Source, DatasetRecord]:
    if id := parse_catalogue_id(directory):
        if split:
            raise BeirError(f"{directory} names its split: leave --split out.", field="split")
        return open_catalogue(id), read_catalogue(id)
    if not directory.is_dir():
        raise BeirError(f"{directory} is not a directory: name the directory with corpus.jsonl and queries.jsonl.")
    corpus = find_corpus(directory)
    if corpus is None:
        raise BeirError(f"{directory} holds no corpus.jsonl and no corpus.jsonl.gz: is it a BEIR directory?")
    return Source(read_corpus(corpus)), read_dataset(directory, format="beir", split=split or DEFAULT_SPLIT)


def _import_queries(record: DatasetRecord, directory: Path, name: str, split: str, owner: User | None) -> DatasetImport:
    try:
        return import_dataset(record, name=name, owner=owner)
    except ConflictError as error:
        if error.field != "version":
            raise
        split = "" if parse_catalogue_id(directory) else split or DEFAULT_SPLIT
        alone = f"manage.py import_dataset {quote(str(directory))}" + (f" --split {quote(split)}" if split else "")
        source = f"the split {split} of {directory}" if split else str(directory)
        raise ConflictError(
            f'The dataset "{name}" already exists with other content than {source}, and a frozen version '
            f"does not change. Another split: give another --name, or import its queries alone by `{alone} "
            f"--name {quote(f'{name}-{split or 2}')}` and map them to the collection in the admin. The same split, "
            f"edited: make it the next version by `{alone} --name {quote(name)} --label 2`, and run this again.",
            field="name",
        ) from error


def _import_index(
    collection: Collection, vectors: Path, version: DatasetVersion, owner: User | None, model: str
) -> Indexed:
    if not vectors.is_file():
        raise BeirError(f"The file {vectors} does not exist.", field="vectors")
    with vectors.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    made_by = {"vector_source": digest} | ({"encoder": model} if model else {})
    equal = filter_equal_indexes(collection, owner, **IMPORTED, name=collection.name, **made_by)
    texts = dict(version.queries.values_list("key", "text"))
    if index := equal.filter(status=Index.Status.READY).first():
        report = store_query_vectors(index, read_vector_file(vectors), texts)  # of another split, or reworded
        return Indexed(index, reused=True, vectors=report)
    index = create_index(collection, name=collection.name, owner=owner)
    report = import_vectors(index, vectors, queries=texts, model=model)
    index.refresh_from_db()
    if model:
        load_index_encoder(index)  # raises if the model cannot have made the vectors of the file
    return Indexed(index, vectors=report)


def _build_index(collection: Collection, encoder: str, owner: User | None) -> Indexed:
    equal = filter_equal_indexes(collection, owner, **IMPORTED, name=collection.name, vector_source="", encoder=encoder)
    index = equal.first() or create_index(collection, name=collection.name, encoder=encoder, owner=owner)
    if index.status == Index.Status.READY:
        return Indexed(index, reused=True)
    return Indexed(index, operation=find_or_start_build(index, by=owner))
