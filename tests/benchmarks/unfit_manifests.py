"""Manifests that cannot be run, made of one that can."""

from typing import Any


def unfit(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a manifest may state that is refused, by what is said of it."""
    return {
        "no version of a dataset here has its": {"dataset": {**manifest["dataset"], "content_hash": "0" * 64}},
        "no dataset here has its": {"dataset": {**manifest["dataset"], "content_hash": "0" * 64, "name": "elsewhere"}},
        "library. has others": {"collection": {**manifest["collection"], "fingerprint": "0" * 64}},
        "no collection here has its": {"collection": {"name": "elsewhere", "fingerprint": "0" * 64}},
        "other documents than": {"mapping": {"name": "x", "truth_hash": "0" * 64}},
        "no index like": {"indexes": [{**manifest["indexes"][0], "name": "x", "content": "0" * 64}]},
        "encoder is keyword:.*was gone": {
            "indexes": [{**manifest["indexes"][0], "encoder": "gone", "content": "0" * 64}]
        },
        "has no .schema": {"schema": "else"},
        "schema_version": {"schema_version": "9"},
        "matrix must be an object, not a list": {"matrix": []},
        "seed must be a whole number, not a string": {"seed": "many"},
        r"runs\[0\] lacks the key config_hash": {"runs": [{"label": "x"}]},
        r"runs\[0\].result lacks the key means": {
            "runs": [{"label": "x", "config_hash": "x", "result": {"queries": 1, "failed_queries": 0}}]
        },
        r"indexes\[0\].named must be a string, not a list": {
            "indexes": [{**manifest["indexes"][0], "named": ["main"]}]
        },
        "dataset.content_hash must be a string, not an object": {
            "dataset": {**manifest["dataset"], "content_hash": {}}
        },
        "mapping.truth_hash must be a string, not a number": {"mapping": {**manifest["mapping"], "truth_hash": 1}},
        "benchmark.description must be a string, not null": {
            "benchmark": {**manifest["benchmark"], "description": None}
        },
        r"runs\[0\].config_hash must be a string, not a list": {
            "runs": [{**manifest["runs"][0], "config_hash": ["x"]}]
        },
        r"runs\[0\].label must be a string, not a number": {"runs": [{**manifest["runs"][0], "label": 1}]},
        r"runs\[0\].result must be an object, not a list": {"runs": [{**manifest["runs"][0], "result": []}]},
        r"runs\[0\].result.means must be an object, not a list": {
            "runs": [{**manifest["runs"][0], "result": {**manifest["runs"][0]["result"], "means": []}}]
        },
        r"runs\[0\].made_by\[0\] must be an object, not a string": {
            "runs": [{**manifest["runs"][0], "made_by": ["worker"]}]
        },
        r"runs\[0\].made_by\[0\].libraries must be an object, not a list": {
            "runs": [{**manifest["runs"][0], "made_by": [{"libraries": []}]}]
        },
        r"measures\[0\] must be a string, not a list": {"measures": [["RR"]]},
        "search_modes": {"matrix": {"search_modes": ["guess"]}},
    }
