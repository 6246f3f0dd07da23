"""The tools of an assistant, by the protocol's own client, on a live site."""

import asyncio
import json
import os
import sys

import pytest
from mcp import Client, StdioServerParameters

from apps.accounts.tokens import issue_token
from apps.mappings.models import Mapping
from apps.records.models import Benchmark
from benchbench.client.client import Client as SiteClient
from benchbench.client.tools import LONGEST_ANSWER, Tools, list_tools, render_answer
from tests.checkout import CHECKOUT

MATRIX = {"search_modes": ["dense"], "score_thresholds": [None, 0.9], "k_values_for_metrics": [5]}


def talk(site, token, act):
    """Start `benchbench mcp`, and let `act(call)` call its tools: call(name, …) gives (whether it failed, text)."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "benchbench.client", "mcp"],
        env=os.environ | {"BENCHBENCH_URL": site, "BENCHBENCH_TOKEN": token, "PYTHONPATH": str(CHECKOUT)},
        cwd=CHECKOUT,
    )

    async def run():
        async with Client(parameters) as client:

            async def call(tool, **arguments):
                answer = await client.call_tool(tool, arguments)
                return bool(answer.is_error), "".join(piece.text for piece in answer.content)

            listed = (await client.list_tools()).tools
            return await act(call, {tool.name: tool for tool in listed})

    return asyncio.run(run())


@pytest.mark.thorough
def test_an_assistant_does_the_whole_job(site, ada, token, manage, library, questions_file):
    manage("manage.py", "worker")
    with SiteClient(site, token=token) as client:
        dataset = client.upload(questions_file, name="fruits")
        mapping = client.resolve(client.map(dataset, client.find_collection("library")))

    async def act(call, tools):
        assert len(tools) == 12
        assert not any("delete" in name or "remove" in name for name in tools)
        reading = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
        assert tools.keys() - reading == {"create_benchmark", "start_benchmark"}
        assert dataset["id"] in (await call("list_datasets"))[1]
        read = json.loads((await call("read_dataset", dataset_id=dataset["id"]))[1])
        assert read["mappings"][0]["id"] == mapping["id"]
        previewed = json.loads((await call("preview_benchmark", mapping_id=mapping["id"], config_matrix=MATRIX))[1])
        assert (previewed["total_runs"], len(json.loads((await call("list_benchmarks"))[1])["benchmarks"])) == (2, 0)
        new = {"name": "nightly", "mapping_id": mapping["id"], "config_matrix": MATRIX}
        assert not (await call("create_benchmark", **new))[0]
        assert not (await call("start_benchmark", benchmark="nightly"))[0]
        waited = json.loads((await call("wait_for_benchmark", benchmark="nightly", seconds=300))[1])
        assert waited["status"] == "completed"
        runs = json.loads((await call("list_runs", benchmark="nightly"))[1])["runs"]
        assert [run["number"] for run in runs] == [1, 2]
        is_error, verdict = await call("read_verdict", benchmark="nightly")
        assert not is_error
        assert verdict.startswith("## nightly\n\n**no threshold and score ≥ 0.9 are not distinguishable.")
        query = await call("read_query", benchmark="nightly", run_id=runs[1]["id"], query_key="plum")
        path = json.loads(query[1])
        assert (path["retrieved_doc_ids"], [lost["document_id"] for lost in path["lost"]]) == (["d5"], [None, "d4"])
        lost = json.loads((await call("list_lost_documents", run_id=runs[1]["id"]))[1])
        assert {document["cause"] for document in lost["documents"]} == {"cut by threshold", "not in collection"}
        judged = json.loads(
            (await call("check_gate", benchmark="nightly", rules="floors: {recall@5: 0.99}", run="2"))[1]
        )
        assert judged["outcome"] == "failed"
        failed, reason = await call("read_verdict", benchmark="weekly")
        assert (failed, reason.endswith("No benchmark named 'weekly' was found.")) == (True, True)
        failed, reason = await call("create_benchmark", **new | {"config_matrix": {"search_modes": ["dens"]}})
        assert failed
        assert "config_matrix.search_modes" in reason

    talk(site, token, act)
    benchmark = Benchmark.objects.get()
    assert (benchmark.status, benchmark.owner) == ("completed", ada)

    _, reading = issue_token(ada, name="assistant", scope="read")

    async def refuse(call, tools):
        new = {"name": "b", "mapping_id": mapping["id"], "config_matrix": MATRIX}
        failed, reason = await call("create_benchmark", **new)
        assert failed
        assert "scope" in reason.lower()

    talk(site, reading, refuse)
    assert (Benchmark.objects.count(), Mapping.objects.count()) == (1, 1)


def test_answers_of_tools_are_short():
    rows = [{"query_text": "x" * 5_000, "values": list(range(100))} for _ in range(500)]
    limited = json.loads(render_answer({"total": 500, "rows": rows}))
    assert len(json.dumps(limited)) <= LONGEST_ANSWER
    assert limited["rows"][-1].endswith("more are left out")
    assert json.loads(render_answer({"rows": rows[0]["values"]})) == {"rows": rows[0]["values"]}
    for answer in ({str(n): "é" * 3_000 for n in range(500)}, "é" * 30_000, [[["x" * 50] * 300] * 300]):
        assert len(render_answer(answer)) <= LONGEST_ANSWER
    assert len(list_tools(Tools(None))) == 12
