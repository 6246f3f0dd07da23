"""Files that a query enters on its way from upload to leaderboard, and a grade from a key press to a settled verdict.

A file counts when one of its functions runs, except while a module is imported. A climb is a call into a file that
imports the caller, directly or through others, and so goes against the imports. The script uses only commands,
addresses and pages, so that it can compare two checkouts: `ways.py DIR` traces another one.
"""

import argparse
import inspect
import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOTS = ("apps", "benchbench")
FRUITS = ("apple", "pear", "plum", "cherry", "fig", "grape")
Call = tuple[str, str]


def codes_above(frame: FrameType) -> Iterator[CodeType]:
    above = frame.f_back
    while above:
        yield above.f_code
        above = above.f_back


@contextmanager
def traced(checkout: Path) -> Iterator[set[Call]]:
    """Yield a set that fills with the calls between files of the checkout: (caller, called), in every thread."""
    calls: set[Call] = set()
    folders = tuple(f"{checkout / root}/" for root in ROOTS)

    def trace(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(folders) or not code.co_flags & inspect.CO_OPTIMIZED:
            return  # the code of a module or a class
        callers = (caller for caller in codes_above(frame) if caller.co_filename.startswith(folders))
        first = next(callers, None)
        call = (first.co_filename if first else "", code.co_filename)
        if call not in calls and "<module>" not in {caller.co_name for caller in (first, *callers) if caller}:
            calls.add(call)

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def imports_of(modules: dict[str, frozenset[str]]) -> dict[str, set[str]]:
    """Return the modules that each module imports, directly or through others."""
    reached: dict[str, set[str]] = {}
    for start in modules:
        found: set[str] = set()
        rest = [start]
        while rest:
            for name in modules.get(rest.pop(), frozenset()):
                owner = name if name in modules else name.rpartition(".")[0]
                if owner in modules and owner not in found:
                    found.add(owner)
                    rest.append(owner)
        reached[start] = found
    return reached


def describe(name: str, calls: set[Call], checkout: Path) -> str:
    import size

    reached = imports_of({module.name: module.imported for module in size.modules_below(checkout, *ROOTS)})

    def module_of(path: str) -> str:
        parts = Path(path).relative_to(checkout).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    files = {called for _, called in calls}
    pairs = {(module_of(caller), module_of(called)) for caller, called in calls if caller and caller != called}
    climbs = sum(caller in reached[called] for caller, called in pairs)
    return f"{name}: {len(files)} files, {climbs} climbs"


def write_files(folder: Path) -> None:
    documents = [{"_id": f"d{n}", "title": fruit, "text": f"{fruit} {FRUITS[n - 1]}"} for n, fruit in enumerate(FRUITS)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    queries = [
        {"query_key": fruit, "query_text": fruit, "relevant_docs": [{"doc_ref": {"document_id": f"d{n}"}}]}
        for n, fruit in enumerate(FRUITS[:3])
    ]
    (folder / "queries.json").write_text(json.dumps({"metadata": {"name": "fruit"}, "queries": queries}))


def upload(folder: Path) -> Any:
    """Import documents and queries, build an index, run a benchmark and open its page; return the admin's client."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    call_command("import_collection", str(folder / "corpus.jsonl"), name="fruit")
    call_command("build_index", "fruit", name="words", no_vectors=True, wait=True)
    matrix = ["--modes", "sparse", "--lexical", "bm25,fts"]
    call_command("run_benchmark", "--queries", folder / "queries.json", "--collection", "fruit", *matrix, "--wait")
    client = Client()
    client.force_login(User.objects.create_superuser("ada"))
    benchmark = client.get("/api/v2/benchmarks").json()["benchmarks"][0]
    assert client.get(f"/admin/benchmarks/benchmark/{benchmark['id']}/change/").status_code == 200
    return client


def open_round(client: Any) -> str:
    benchmark = client.get("/api/v2/benchmarks").json()["benchmarks"][0]
    runs = client.get(f"/api/v2/benchmarks/{benchmark['id']}/results").json()["runs"]
    body = {"name": "round", "run_ids": [run["id"] for run in runs], "judges": ["ada"], "order": "depth"}
    return client.post("/api/v2/judging-rounds", body, content_type="application/json").json()["id"]


def judge(client: Any, round: str) -> None:
    """Grade each item as a judge's page does, and look at the round until its verdict is settled."""
    page = client.get(f"/admin/judging/round/{round}/judge/").content.decode()
    (text,) = re.findall(r'<script id="[^"]*" type="application/json">(.*?)</script>', page, re.DOTALL)
    data = json.loads(text)
    while data["held"]:
        grades = [{"key": str(item), "item": item, "kind": "grade", "grade": 0} for item in data["held"]]
        body = {"entries": grades, "present_ids": [], "count": 8}
        data |= client.post(data["url"], body, content_type="application/json").json()
    assert client.get(f"/admin/judging/round/{round}/state/").status_code == 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("checkout", nargs="?", type=Path, default=here, help="checkout to trace (default: this one)")
    checkout = parser.parse_args().checkout.resolve()
    sys.path[:0] = [str(checkout), str(checkout / "perf")]
    os.environ |= {"DEBUG": "false", "SECRET_KEY": "perf", "ALLOWED_HOSTS": "testserver"}
    import throwaway

    throwaway.open_site()
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        with traced(checkout) as calls:
            client = upload(Path(folder))
    print(describe("from upload to leaderboard", calls, checkout))
    round = open_round(client)
    with traced(checkout) as calls:
        judge(client, round)
    print(describe("from a key press to a settled verdict", calls, checkout))


if __name__ == "__main__":
    main()
