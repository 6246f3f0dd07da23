"""The parts of a manifest that a second run reads; others may stand beside them."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """An object of a manifest."""

    model_config = ConfigDict(strict=True)


class Benchmark(Part):
    """What the benchmark was called, which a second one is called after."""

    name: str
    description: str = ""


class Mapping(Part):
    """What laid the judgments over the documents."""

    name: str = ""
    truth_hash: str = ""


class Dataset(Part):
    """What its version held."""

    name: str
    content_hash: str


class Collection(Part):
    """What its documents were."""

    name: str
    fingerprint: str


class Index(Part):
    """What was searched; `named` is what the matrix calls it, null the newest."""

    named: str | None
    name: str
    content: str


class Result(Part):
    """What a run found and was worth."""

    rankings: str
    values: str
    means: dict[str, Any]
    queries: int
    failed_queries: int


class MadeBy(Part):
    """A worker that took part."""

    libraries: dict[str, Any] = {}
    rerankers: dict[str, Any] = {}
    llms: dict[str, Any] = {}
    settings: dict[str, Any] = {}


class Run(Part):
    """A run; its result is null where it did not complete."""

    label: str
    config_hash: str
    result: Result | None
    made_by: list[MadeBy] = []


class Manifest(Part):
    """A whole manifest, schema 1.0 or 1.1 (docs/reproducing.md)."""

    benchmark: Benchmark
    dataset: Dataset
    collection: Collection
    mapping: Mapping
    indexes: list[Index]
    matrix: dict[str, Any]
    runs: list[Run]
    measures: list[str]
    execution: str
    runs_per_query: int
    seed: int
    unresolved: str
    empty_queries: str
