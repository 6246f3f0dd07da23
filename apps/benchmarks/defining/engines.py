"""Search engines of a matrix: the check that the site declares them, and what a run records of its engine."""

from collections.abc import Iterable
from typing import Any

from apps.datasets.models import DatasetVersion
from apps.engines.declarations import load_engine
from apps.engines.errors import EngineError
from apps.engines.records import Engine
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.engine import EngineSetting
from benchbench.ir.planning.matrix import MatrixError


def check_engines(configurations: Iterable[Configuration], version: DatasetVersion) -> None:
    """Raise MatrixError for an engine that is not declared, a wrong parameter, or queries that it cannot answer."""
    for text in dict.fromkeys(run.engine for run in configurations if run.engine):
        setting = EngineSetting.parse(text)
        try:
            engine = load_engine(setting.alias)
            engine.complete(dict(setting.parameters))
        except EngineError as error:
            raise MatrixError(f"engines: {error.message}", field="engines") from None
        if "filters" not in engine.names and version.queries.exclude(filters={}).exists():
            raise MatrixError(
                f"engines: queries of {version} have filters, but the declaration of {setting.alias} does not use "
                "{filters}: add it to the template of the engine.",
                field="engines",
            )


def describe_engine(engine: Engine, setting: EngineSetting) -> dict[str, Any]:
    """Return the alias, the declared version and all parameters of an engine, for the record of a run."""
    return {
        "alias": engine.alias,
        "version": engine.version,
        "parameters": engine.complete(dict(setting.parameters)),
        "concurrency": engine.concurrency,
    }
