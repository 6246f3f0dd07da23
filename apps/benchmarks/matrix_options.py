"""The configuration matrix and the measures as options of a command."""

import argparse
import contextlib
import re
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from apps.benchmarks.measures import names_in
from apps.benchmarks.modes import with_modes
from apps.mappings.missing import MissingModulesError
from apps.mappings.models import Mapping
from benchbench.ir.ann import split_settings
from benchbench.ir.matrix import MatrixError

ArgumentGroup = argparse._ArgumentGroup  # the standard library names the type so, and has no public name for it

OPTIONS = {  # by key of the matrix
    "indexes": "--indexes",
    "search_modes": "--modes",
    "use_reranker": "--rerank",
    "rerankers": "--reranker",
    "rerank_depths": "--rerank-depth",
    "top_k_values": "--top-k",
    "candidates": "--candidates",
    "ann": "--ann",
    "lexical": "--lexical",
    "fusion": "--fusion",
    "weights": "--weights",
    "rrf_k_values": "--rrf-k",
    "score_thresholds": "--thresholds",
    "k_values_for_metrics": "--k",
    "primary_k": "--primary-k",
}


def add_matrix_arguments(parser: CommandParser) -> None:
    """Add the options that `matrix_of` reads, and how is measured. Not given, one is None; `--measures` is empty."""
    matrix = parser.add_argument_group("matrix", "Each list multiplies the runs of the modes that it touches.")
    _add_depths(matrix)
    _add_engines(matrix)
    _add_measures(parser.add_argument_group("measures"))


def _add_depths(matrix: ArgumentGroup) -> None:
    matrix.add_argument(
        "--indexes",
        type=words,
        metavar="I,I",
        help="Names of indexes, the newest of each (default: of all, the one that became ready last).",
    )
    matrix.add_argument(
        "--modes", type=words, metavar="M,M", help="dense, sparse, hybrid (default: all that the indexes can)."
    )
    matrix.add_argument(
        "--rerank",
        choices=["on", "off", "both"],
        help="A second look at the first results: slower, often better (default: off).",
    )
    matrix.add_argument(
        "--reranker", metavar="M", help="Name or path of a cross-encoder (default: late-interaction, of the index)."
    )
    matrix.add_argument("--top-k", type=whole_numbers, metavar="K,K", help="Chunks that a run returns (default: 100).")
    matrix.add_argument(
        "--candidates", type=whole_numbers, metavar="C,C", help="Depth of the first stage, in chunks (default: top k)."
    )
    matrix.add_argument(
        "--rerank-depth",
        type=whole_numbers,
        metavar="D,D",
        help="Chunks that are reranked; a reranked run returns no others (default: top k).",
    )


def _add_engines(matrix: ArgumentGroup) -> None:
    matrix.add_argument(
        "--ann",
        type=split_settings,
        metavar="A,A",
        help='Dense search, such as "exact,hnsw(ef_search=100)" (default: exact).',
    )
    matrix.add_argument("--lexical", type=words, metavar="E,E", help="Lexical engines: bm25, fts (default: bm25).")
    matrix.add_argument("--fusion", type=words, metavar="F,F", help="Of hybrid search: rrf, weighted (default: rrf).")
    matrix.add_argument(
        "--weights",
        type=weights,
        metavar="D:L,D:L",
        help="Of dense and lexical in weighted fusion, as in 0.7:0.3 (default: 0.5:0.5).",
    )
    matrix.add_argument(
        "--rrf-k", type=whole_numbers, metavar="K,K", help="Constants of reciprocal rank fusion (default: 60)."
    )
    matrix.add_argument(
        "--thresholds", type=thresholds, metavar="T,T", help="Least scores in [0, 1], or none (default: none)."
    )


def _add_measures(measures: ArgumentGroup) -> None:
    measures.add_argument("--k", type=whole_numbers, metavar="K,K", help="Cutoffs of nDCG, P and R (default: 5,10,20).")
    measures.add_argument(
        "--primary-k", type=int, metavar="K", help="The cutoff whose nDCG decides the order of runs (default: 10)."
    )
    measures.add_argument(
        "--measures",
        type=names_in,
        default=[],
        metavar="M,M",
        help='Further ones, such as "Success@5,ERR@10,RBP(p=0.8)": ours, and those of ir_measures (default: none).',
    )
    measures.add_argument(
        "--unresolved",
        choices=["count", "drop"],
        help="Judgments without a document: count as not found (default), or leave out, which flatters every run.",
    )
    measures.add_argument(
        "--empty-queries",
        choices=["zero", "skip"],
        help="Queries without a relevant judgment: count as 0 (default), or leave out of the means.",
    )


def matrix_of(mapping: Mapping, options: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration matrix that the options describe; what is not given is left to the defaults.

    Raises MatrixError where the indexes have no mode in common.
    """
    given = {key: options[name_of(option)] for key, option in OPTIONS.items()} | {
        "search_modes": options["modes"],
        "use_reranker": {"on": [True], "off": [False], "both": [False, True]}[options["rerank"] or "off"],
        "rerankers": [options["reranker"]] if options["reranker"] else None,
    }
    stated = {key: value for key, value in given.items() if value is not None}
    return with_modes(mapping, stated, owner=options["owner"])


def name_of(option: str) -> str:
    """Return the name by which argparse keeps an option."""
    return option.strip("-").replace("-", "_")


@contextlib.contextmanager
def in_options() -> Iterator[None]:
    """Let an error about the matrix name the options that were typed, not the keys that they became."""
    try:
        yield
    except MissingModulesError as error:
        raise MissingModulesError(f"{error.message} That is --allow-missing.", field=error.field) from error
    except MatrixError as error:
        # A key that is a plain word too is meant only where the message begins with it.
        names = re.sub(r"^\w+(?=:)|\b\w+_\w+\b", lambda found: OPTIONS.get(found[0], found[0]), error.message)
        raise MatrixError(names, field=error.field) from error


def words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in words(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 10,20") from None


def whole_number(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def thresholds(text: str) -> list[float | None]:
    try:
        return [None if part.lower() == "none" else float(part) for part in words(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers or none, such as none,0.5") from None


def weights(text: str) -> list[list[float]]:
    try:
        return [[float(weight) for weight in part.split(":")] for part in words(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of pairs of numbers such as 0.7:0.3") from None
