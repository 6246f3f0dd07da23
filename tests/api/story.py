"""The one story that the examples of the schema report: support questions, asked of a product handbook."""

from django.conf import settings
from django.test import override_settings

from apps.operations.leasing import make_owner
from apps.operations.models import Operation
from apps.operations.working import perform_batch, wait
from apps.records.models import QueryResult, Run
from tests.api.callers import ROOT, Caller
from tests.api.grading_story import grade
from tests.api.handbook import ANSWERS, HANDBOOK, WARRANTY, corpus, questions
from tests.api.recording import Walk
from tests.rankings import change_rankings

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
STAND_IN = "keyword:password,reset,invoice,battery,charge,start"
RUN = "q1 Q0 reset-password 1 9.5 bm25-tuned\nq2 Q0 invoices 1 8.1 bm25-tuned\nq3 Q0 start 1 7.7 bm25-tuned\n"
DATASETS = "/benchmark-datasets"


def walk_everything(walk: Walk) -> None:
    """Walk from the first token to the last deletion, past every operation."""
    sign_in(walk)
    collection = fill_collection(walk)
    dataset = upload_dataset(walk)
    edit_dataset(walk, dataset)
    mapping = lay_over(walk, dataset, collection)
    build(walk, collection)
    benchmark = run(walk, mapping)
    repeat(walk, benchmark)
    look(walk, benchmark)
    judge(walk, dataset, benchmark)
    grade(walk, benchmark)
    clear(walk, dataset, collection)
    walk.caller.post(f"{DATASETS}/{dataset}/mappings/{mapping}/resolve")
    repeat_nightly(walk, benchmark)


def sign_in(walk: Walk) -> None:
    walk.ask("GET", "/operations")  # none yet
    fields = {"username": "ada", "password": "correct horse battery staple", "scope": "write"}
    pair = walk.ask("POST", "/auth/token", fields)
    pair = walk.ask("POST", "/auth/token/refresh", {"refresh": pair["refresh"]})
    walk.ask("POST", "/auth/token/revoke", {"refresh": pair["refresh"]})


def fill_collection(walk: Walk) -> str:
    path = "/collections"
    walk.upload(path, corpus(HANDBOOK[:1]), file_name="handbook.jsonl", name="Handbook of last year")
    created = walk.ask("POST", path, {"name": "Product handbook", "description": "As of November."})
    path = f"{path}/{created['id']}"
    walk.upload(f"{path}/documents", corpus(HANDBOOK), file_name="handbook.jsonl")
    walk.ask("POST", f"{path}/documents", {"documents": [WARRANTY, *ANSWERS]})
    walk.ask("PATCH", path, {"description": "As of December."})
    listed = walk.ask("GET", f"{path}/documents", per_page=2)
    assert listed["total"] == len(HANDBOOK) + 3
    warranty = walk.caller.get(f"{path}/documents", external_id="warranty").json()["documents"][0]
    walk.ask("GET", f"{path}/documents/{warranty['id']}")
    walk.ask("GET", path)
    walk.ask("GET", "/collections")
    return str(created["id"])


def upload_dataset(walk: Walk) -> str:
    walk.ask("GET", f"{DATASETS}/formats")
    for _ in ("made", "there already"):
        created = walk.upload(
            DATASETS,
            questions(),
            file_name="questions.json",
            name="Support questions",
            description="Asked in October, judged by two people.",
        )
    walk.ask("GET", DATASETS)
    walk.ask("GET", f"{DATASETS}/{created['id']}")
    walk.ask("GET", f"{DATASETS}/{created['id']}/export", format="benchbench-json")
    return str(created["id"])


def edit_dataset(walk: Walk, dataset: str) -> None:
    """State a query and judgments more, and freeze the draft as version 2."""
    path = f"{DATASETS}/{dataset}"
    first = walk.caller.get(f"{path}/queries", query_key="q1").json()["queries"][0]
    change = {"expected_answer": "A link comes by mail.", "evidence": ["Open Account and press Reset."]}
    walk.ask("PATCH", f"{path}/queries/{first['id']}", change)
    fields = {"query_key": "q6", "query_text": "How do I change my password?", "slices": ["account"]}
    new = f"{path}/queries/{walk.ask('POST', f'{path}/queries', fields)['id']}"
    for note in ("", "It says where."):
        fields = {"doc_ref": {"document_id": "change-password"}, "relevance_grade": 2, "note": note}
        created = walk.ask("POST", f"{new}/judgments", fields)
    walk.ask("PUT", f"{new}/judgments/{created['id']}", {"relevance_grade": 3, "note": "Word for word."})
    terms = {"doc_ref": {"document_id": "warranty"}, "relevance_grade": 2, "section_refs": ["battery"]}
    start = {"doc_ref": {"document_id": "start"}, "relevance_grade": None}
    rows = [{"query_key": "q4", **terms}, {"query_key": "q3", **start}]
    walk.ask("POST", f"{path}/judgments/bulk", {"judgments": rows})
    walk.ask("GET", f"{path}/judgments", query_key="q4")
    walk.ask("GET", f"{path}/queries", query_key="q6")
    walk.ask("GET", new)
    walk.ask("GET", f"{new}/judgments")
    walk.ask("GET", f"{new}/judgments/{walk.caller.get(f'{new}/judgments').json()['judgments'][0]['id']}")
    walk.ask("GET", f"{path}/versions/2")
    walk.ask("GET", f"{path}/versions/2/difference")
    walk.ask("POST", f"{path}/versions", {"label": "2026-11", "note": "A sixth question, and sections."})
    walk.ask("GET", f"{path}/versions")
    removed = walk.caller.get(f"{path}/judgments", query_key="q1").json()["judgments"][1]
    walk.ask("DELETE", f"{path}/queries/{removed['query_id']}/judgments/{removed['id']}")
    walk.ask("DELETE", new)
    walk.ask("DELETE", f"{path}/versions/3")


def lay_over(walk: Walk, dataset: str, collection: str) -> str:
    path = f"{DATASETS}/{dataset}/mappings"
    created = walk.ask("POST", path, {"collection_id": collection})
    walk.refused(409, walk.caller.post(path, {"collection_id": collection}))
    one = f"{path}/{created['id']}"
    with override_settings(BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS=0):
        wait(Operation.objects.get(pk=walk.ask("POST", f"{one}/resolve")["operation_uuid"]))
    walk.ask("POST", f"{one}/resolve")
    walk.ask("GET", f"{one}/unresolved")
    walk.ask("POST", f"{one}/check", {"version": 2})
    walk.ask("GET", one)
    walk.ask("GET", path)
    return str(created["id"])


def build(walk: Walk, collection: str) -> None:
    path = f"/collections/{collection}/indexes"
    walk.ask("GET", "/indexes/options")
    fields = {"name": "minilm", "encoder": STAND_IN, "chunk_parameters": {"size": 500, "overlap": 50, "title": True}}
    created = walk.ask("POST", path, fields)
    started = walk.ask("POST", f"/indexes/{created['id']}/build")
    walk.ask("POST", f"/operations/{started['operation_uuid']}/cancel")
    again = walk.caller.post(f"/indexes/{created['id']}/build").json()
    wait(Operation.objects.get(pk=again["operation_uuid"]))
    walk.ask("GET", f"/indexes/{created['id']}")
    walk.ask("GET", path)
    grid = {
        "strategies": [
            {"strategy": "flat", "chunk_parameters": {"size": 500, "overlap": 50, "title": True}},
            {"strategy": "lod_embed"},
        ],
        "encoders": [STAND_IN],
    }
    walk.ask("POST", f"{path}/grid/preview", grid)
    for cell in walk.ask("POST", f"{path}/grid", grid)["indexes"][1:]:
        wait(Operation.objects.get(pk=cell["operation_uuid"]))
        walk.caller.delete(f"/indexes/{cell['id']}")
    spare = walk.caller.post(path, {"name": "words"}).json()
    walk.ask("DELETE", f"/indexes/{spare['id']}")


def run(walk: Walk, mapping: str) -> str:
    matrix = {
        "search_modes": ["dense", "sparse"],
        "use_reranker": [False],
        "top_k_values": [5],
        "rrf_k_values": [60],
        "score_thresholds": [None],
        "k_values_for_metrics": [5],
        "primary_k": 5,
    }
    walk.ask("POST", "/benchmarks/preview", {"mapping_id": mapping, "config_matrix": matrix})
    fields = {"name": "Dense or sparse", "mapping_id": mapping, "config_matrix": matrix}
    created = walk.ask("POST", "/benchmarks", fields)
    walk.refused(400, walk.caller.post("/benchmarks", fields | {"config_matrix": {"search_mode": "dense"}}))
    path = f"/benchmarks/{created['id']}"
    walk.ask("POST", f"{path}/start", {"priority": "low"})
    walk.ask("POST", f"{path}/cancel")
    with override_settings(BENCHBENCH_BATCH_SECONDS=0.001):
        operation = Operation.objects.get(pk=walk.caller.post(f"{path}/start").json()["operation_uuid"])
    perform_batch(operation.batches.order_by("ordinal")[0].pk, owner=make_owner())
    walk.ask("GET", f"/operations/{operation.pk}")
    walk.ask("GET", "/operations", kind="benchmark")
    wait(operation)
    change_rankings(
        QueryResult.objects.filter(run__benchmark=created["id"], query__key="q2"), error="The database was away."
    )
    Run.objects.filter(benchmark=created["id"]).update(failed_queries=1)
    wait(Operation.objects.get(pk=walk.ask("POST", f"{path}/retry")["operation_uuid"]))
    walk.ask("GET", path)
    walk.ask("GET", "/benchmarks")
    return str(created["id"])


def repeat(walk: Walk, benchmark: str) -> None:
    """Make the benchmark once more, in both ways, and hold the second against the first."""
    path = f"/benchmarks/{benchmark}"
    copy = walk.ask("POST", f"{path}/clone", {"name": "Dense or sparse, on new indexes"})
    walk.ask("DELETE", f"/benchmarks/{copy['id']}")
    manifest = walk.ask("GET", f"{path}/manifest")
    again = walk.ask("POST", "/benchmarks/manifest", {"manifest": manifest, "name": "Dense or sparse, again"})
    path = f"/benchmarks/{again['id']}"
    wait(Operation.objects.get(pk=walk.caller.post(f"{path}/start").json()["operation_uuid"]))
    walk.ask("GET", f"{path}/verification")


def look(walk: Walk, benchmark: str) -> None:
    """Read all that came of a benchmark."""
    path = f"/benchmarks/{benchmark}"
    with override_settings(BENCHBENCH_MEASURE_AT_ONCE=0):
        for act, requested in (("measures", {"metrics_to_compute": ["ERR@5"]}), ("rescore", {"version": 1})):
            wait(Operation.objects.get(pk=walk.ask("POST", f"{path}/{act}", requested)["operation_uuid"]))
    walk.ask("POST", f"{path}/measures", {"metrics_to_compute": ["map@5", "ERR@20"]})
    walk.ask("POST", f"{path}/rescore", {"version": 1})
    results = walk.ask("GET", f"{path}/results")
    dense, sparse = (run["id"] for run in results["runs"])
    walk.ask("GET", f"{path}/runs/{dense}")
    walk.ask("GET", f"{path}/runs/{dense}/queries", per_page=2)
    walk.ask("GET", "/export-formats")
    walk.ask("GET", f"{path}/export", format="json")
    walk.ask("GET", f"{path}/runs/{dense}/export", format="flowbaby-run")
    for of_run in ("coverage", "sections", "content", "slices", "triage", "triage/documents"):
        walk.ask("GET", f"/runs/{dense}/{of_run}")
    walk.ask("GET", "/comparison", run=[dense, sparse])
    walk.ask("GET", "/comparison/queries", run=sparse, baseline=dense, per_page=2)


def repeat_nightly(walk: Walk, benchmark: str) -> None:
    """Repeat the benchmark on a schedule."""
    fields = {"benchmark_id": benchmark, "name": "Every night", "cron": "0 3 * * *", "rules": {"floors": {"mrr": 0.5}}}
    path = f"/schedules/{walk.ask('POST', '/schedules', fields)['id']}"
    walk.ask("GET", "/schedules")
    walk.ask("PATCH", path, {"cron": "30 4 * * 1-5"})
    walk.ask("GET", path)
    walk.ask("POST", f"{path}/run")
    walk.ask("GET", f"{path}/repeats")
    walk.ask("DELETE", path)


def judge(walk: Walk, dataset: str, benchmark: str) -> None:
    """Approve the first run as a baseline, and judge runs by rules; a run from elsewhere, too."""
    path = f"{DATASETS}/{dataset}"
    run = walk.caller.get(f"/benchmarks/{benchmark}/results").json()["runs"][0]["id"]
    fields = {"run_id": run, "name": "main", "reason": "The release of November."}
    created = walk.ask("POST", f"{path}/baselines", fields)
    walk.ask("GET", f"{path}/baselines")
    walk.ask("GET", f"{path}/baselines/{created['id']}")
    rules = {"floors": {"mrr": 0.5}, "against_baseline": {"ndcg@5": {"may_lose": 0.05}}}
    walk.ask("POST", f"/benchmarks/{benchmark}/gate", {"rules": "floors:\n  mrr: 0.5\n", "run": "all"})
    walk.ask("POST", f"/runs/{run}/gate", {"rules": rules, "baseline": "main"})
    walk.ask("POST", f"{path}/baselines/{created['id']}/retire")
    walk.ask("DELETE", f"{path}/baselines/{created['id']}")
    walk.upload(f"{path}/external-runs", RUN, file_name="bm25.run", name="bm25-tuned")


def clear(walk: Walk, dataset: str, collection: str) -> None:
    """Be refused in every way, and delete what nothing else needs."""
    caller, user = walk.caller, walk.caller.user
    walk.refused(401, Caller().get("/collections"))
    walk.refused(403, Caller(user, scope="read").post("/collections", {"name": "Product handbook"}))
    walk.refused(404, caller.get(f"/collections/{dataset}"))
    walk.refused(415, caller.client.post(f"{ROOT}/collections", "name", content_type="text/plain"))
    walk.refused(413, caller.post("/collections", {"name": "Product handbook" * 200_000}))
    rates = settings.BENCHBENCH_API_RATES | {"read": (0, 10**10)}  # a window that never ends
    with override_settings(BENCHBENCH_API_RATES=rates):
        caller.get("/collections")
        walk.refused(429, caller.get("/collections"))
    with override_settings(CACHES={"default": settings.CACHES["default"] | {"LOCATION": "redis://127.0.0.1:1"}}):
        walk.refused(503, caller.get("/collections"))
    spare = caller.upload(DATASETS, questions(), name="Support questions, spare").json()["id"]
    mapping = caller.post(f"{DATASETS}/{spare}/mappings", {"collection_id": collection}).json()["id"]
    walk.ask("DELETE", f"{DATASETS}/{spare}/mappings/{mapping}")
    walk.ask("DELETE", f"{DATASETS}/{spare}")
    empty = caller.post("/collections", {"name": "Nothing"}).json()["id"]
    walk.ask("DELETE", f"/collections/{empty}")
