"""Search engines as arms of a matrix, against a small server over HTTP."""

from pathlib import Path

import numpy as np
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from apps.engines.declarations import load_engine
from apps.engines.errors import EngineError
from apps.engines.storing import find_snippet
from apps.execution.defining.creating import CloneError, clone
from apps.execution.defining.previewing import preview
from apps.execution.launching import launch, retry
from apps.execution.running.engines import embed_for
from apps.mappings.creating import ensure_external
from apps.operations.working import wait
from apps.records.lists.reading import load_rankings
from apps.records.models import Benchmark, Schedule
from apps.results.comparison.axes import compute_effects
from apps.results.exporters.documents import render_text
from apps.results.triage.lost_documents import UntracedError, triage_of
from apps.results.triage.queries import load_hits
from apps.retrieval.encoders.registry import load_encoder
from apps.verdicts.comparing import compare_runs
from apps.verdicts.configurations import build_configuration, build_labels
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.matrix import MatrixError
from benchbench.site.panels import change_url
from tests.admin.form_parser import open_form
from tests.api.callers import Caller
from tests.benchmarks.shop_server import declare_anew
from tests.created import create_benchmark, run_benchmark
from tests.factories import make_schedule
from tests.tiny_models import WINDOW, save_encoder


def list_documents(benchmark: Benchmark, order: int) -> list[list[str]]:
    run = benchmark.runs.get(run_order=order)
    names = dict(benchmark.mapping.collection.documents.values_list("pk", "external_id"))
    return [[names[pk] for pk in documents] for documents in load_rankings(run).values()]


def test_an_engine_is_measured_beside_an_index(shop_library, shop):
    matrix = {"search_modes": ["dense", "engine"], "engines": ["shop(newest=false|true)"], "top_k_values": [10]}
    benchmark = run_benchmark(shop_library, name="b", matrix=matrix | {"k_values_for_metrics": [5]})
    labels = list(benchmark.runs.order_by("run_order").values_list("label", "status", "failed_queries"))
    assert labels == [
        ("dense · top 10", "completed", 0),
        ("shop(newest=false) · top 10", "completed", 0),
        ("shop(newest=true) · top 10", "completed", 0),
    ]
    assert list_documents(benchmark, 2) == [shop.ranking[:10]] * 3
    assert list_documents(benchmark, 3) == [shop.ranking[::-1][:10]] * 3
    run = benchmark.runs.get(run_order=3)
    assert run.provenance["engine"]["version"] == "7"
    assert run.provenance["engine"]["parameters"] == {"newest": True}
    assert run.timing["search_ms"] > 0
    assert run.evaluations.get().means["nDCG@10"] >= 0


def test_stages_follow_an_engine(shop_library, shop):
    """Fused by rank with our own list, and its first hits reranked."""
    modes = {
        "search_modes": ["dense", "sparse", "engine", "engine+dense", "engine+sparse"],
        "use_reranker": [False, True],
    }
    benchmark = run_benchmark(
        shop_library, name="b", matrix=modes | {"engines": ["shop"], "top_k_values": [10], "k_values_for_metrics": [5]}
    )
    assert set(benchmark.runs.values_list("status", flat=True)) == {"completed"}, [
        (run.label, run.error_message) for run in benchmark.runs.all()
    ]
    orders = {(run.config["search_mode"], run.config["use_reranker"]): run.run_order for run in benchmark.runs.all()}
    for personal in ("dense", "sparse"):
        ours = list_documents(benchmark, orders[personal, False])
        for query, fused in enumerate(list_documents(benchmark, orders[f"engine+{personal}", False])):
            scores = dict.fromkeys([*ours[query], *shop.ranking[:10]], 0.0)
            for ranking in (ours[query], shop.ranking[:10]):
                for rank, document in enumerate(ranking, start=1):
                    scores[document] += 1 / (60 + rank)
            assert [scores[document] for document in fused] == sorted(scores.values(), reverse=True)[:10]
    reranked = list_documents(benchmark, orders["engine", True])
    assert [sorted(hit) for hit in reranked] == [sorted(shop.ranking[:10])] * 3


def test_ids_alone_are_enough_for_an_engine(shop_library, shop):
    """Documents that are not here: the judged ones have their grades, the others are unjudged."""
    shop.ranking.insert(3, "elsewhere")
    mapping = ensure_external(shop_library.dataset)
    matrix = {"engines": ["shop"], "top_k_values": [20]}
    benchmark = run_benchmark(mapping, name="b", matrix=matrix)
    assert list_documents(benchmark, 1) == [shop.ranking] * 3
    document = mapping.collection.documents.get(external_id="elsewhere")
    assert (document.title, document.text) == ("Title of elsewhere", "")
    assert find_snippet(shop_library.dataset.queries.first().text, document) == "about elsewhere"
    hit = load_hits(benchmark.runs.get().query_results.first(), {}, limit=4)[3]
    assert (hit.score, "".join(piece.text for piece in hit.excerpt)) == (None, "about elsewhere")
    full = run_benchmark(shop_library, name="c", matrix=matrix | {"engines": ["shop(newest=true)"]})
    assert full.runs.get().error_message.startswith("Every query failed; the first: The engine named the document")


def test_verdicts_name_the_engine_as_the_leaderboard_does(shop_library, shop):
    matrix = {"engines": ["shop"], "search_modes": ["engine", "sparse", "engine+sparse"], "top_k_values": [20]}
    benchmark = run_benchmark(shop_library, name="b", matrix=matrix)
    runs = list(benchmark.runs.order_by("run_order"))
    assert [run.label.split(" · ")[1] for run in runs if "shop" in run.label]
    comparison = compare_runs(runs)
    assert [*comparison.labels] == build_labels(runs)
    assert [label for label in comparison.labels if "engine" in label] == []
    assert sorted(comparison.labels) == ["lexical", "shop", "shop + lexical"]
    words = {word for effect in compute_effects(comparison) for word in (effect.value, effect.reference)}
    assert words <= {"lexical", "shop", "shop + lexical"}
    assert "engine" not in render_text(benchmark).replace("search engine", "")


def test_names_that_no_document_has_are_errors(shop_library, shop):
    """URIs, where the ids are other ones, would be documents without judgments."""
    shop.ranking.insert(3, "x" * 501)
    mapping = ensure_external(shop_library.dataset)
    run = run_benchmark(mapping, name="b", matrix={"engines": ["shop"], "top_k_values": [20]}).runs.get()
    assert "The engine named the document 'xxxx" in run.error_message
    path = Path(settings.BENCHBENCH_ENGINES)
    path.write_text(path.read_text() + "    document: {by: uri}\n")
    shop.ranking.pop(3)
    run = run_benchmark(mapping, name="c", matrix={"engines": ["shop"], "top_k_values": [20]}).runs.get()
    assert "or correct `document` in the declaration" in run.error_message


def test_an_answer_is_asked_for_once(shop_library, shop):
    """A retry asks only what failed; a new benchmark asks again."""
    shop.failing = True
    benchmark = create_benchmark(shop_library, name="b", matrix={"engines": ["shop"]})
    wait(launch(benchmark))
    assert benchmark.runs.get().status == "failed"
    shop.failing, shop.asked = False, []
    wait(retry(benchmark))
    assert benchmark.runs.get().status == "completed"
    assert len(shop.asked) == 3
    run_benchmark(shop_library, name="c", matrix={"engines": ["shop"]})
    assert len(shop.asked) == 6


def test_requests_that_fail_for_now_are_repeated_and_counted(shop_library, shop):
    shop.unavailable = lambda number: number % 3 == 1
    run = run_benchmark(shop_library, name="b", matrix={"engines": ["shop"]}).runs.get()
    assert (run.status, run.failed_queries) == ("completed", 0)
    retries = len(shop.asked) - 3
    assert run.provenance["engine"]["retries"] == retries > 0
    assert any("failed at first" in warning for warning in run.warnings)


@pytest.mark.thorough
def test_an_arm_waits_for_an_engine_that_is_down(shop_library, shop):
    """And fails with a sentence once its patience ends; a retry asks for the rest."""
    shop.unavailable = lambda number: 2 <= number <= 5
    run = run_benchmark(shop_library, name="b", matrix={"engines": ["shop"]}).runs.get()
    assert (run.status, run.failed_queries) == ("completed", 0)
    shop.asked.clear()
    path = Path(settings.BENCHBENCH_ENGINES)
    path.write_text(path.read_text() + "    patience: 1\n")
    shop.unavailable = lambda number: number > 1
    benchmark = run_benchmark(shop_library, name="c", matrix={"engines": ["shop"]})
    assert benchmark.runs.get().status == "failed"
    assert benchmark.runs.get().error_message.startswith("The engine shop is down: it did not answer for 1 seconds")
    shop.unavailable = lambda number: False
    wait(retry(benchmark))
    assert (benchmark.runs.get().status, benchmark.runs.get().failed_queries) == ("completed", 0)


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ({"engines": ["store"]}, "engines: "),
        ({"engines": ["shop(oldest=true)"]}, "engines: "),
        ({"search_modes": ["engine"]}, "needs a search engine"),
        ({"search_modes": ["dense"], "engines": ["shop"]}, "no search mode asks an engine"),
        ({"engines": ["shop", "shop()"]}, "occurs more than once"),
    ],
)
def test_a_wrong_engine_is_refused(shop_library, matrix, sentence):
    with pytest.raises(MatrixError, match=sentence):
        create_benchmark(shop_library, name="b", matrix=matrix)
    with pytest.raises(MatrixError, match=sentence):
        preview(shop_library, matrix)
    assert not Benchmark.objects.exists()


def test_an_engine_no_longer_declared_fails_its_runs_alone(shop_library, shop):
    matrix = {"search_modes": ["sparse", "engine"], "engines": ["shop"]}
    ended = run_benchmark(shop_library, name="a", matrix=matrix)
    benchmark = create_benchmark(shop_library, name="b", matrix=matrix)
    operation = launch(benchmark)
    declare_anew(shop=None)
    wait(operation)
    personal, requested = benchmark.runs.order_by("run_order")
    assert (personal.status, requested.status) == ("completed", "failed")
    assert "shop is not declared" in requested.error_message
    with pytest.raises(CloneError, match="shop is not declared"):
        clone(ended)
    with pytest.raises(BenchbenchError, match="shop is not declared"):
        retry(benchmark)


def test_a_wrong_entry_stops_its_engine_alone(shop_library, shop, admin_client):
    """In workers, commands, API and forms, each with its line and remedy."""
    path = Path(settings.BENCHBENCH_ENGINES)
    entries = path.read_text()
    path.write_text(entries + entries.removeprefix("engines:\n").replace("shop:", "lost:"))
    matrix = {"engines": ["shop", "lost"], "search_modes": ["engine"]}
    ended = run_benchmark(shop_library, name="a", matrix=matrix)
    benchmark = create_benchmark(shop_library, name="b", matrix=matrix)
    operation = launch(benchmark)
    path.write_text(path.read_text() + "    colour: red\n")
    wait(operation)
    line = path.read_text().splitlines().index("  lost:") + 1
    sentence = f"The engine lost is refused until line {line} of engines.yaml is corrected."
    right, wrong = benchmark.runs.order_by("run_order")
    assert (right.status, wrong.status) == ("completed", "failed")
    assert "engines.lost has the unknown key" in wrong.error_message
    assert sentence in wrong.error_message
    run_benchmark(shop_library, name="c", matrix={"engines": ["shop"], "search_modes": ["engine"]})
    mapping = str(shop_library.pk)
    for command in (["run_benchmark", mapping, "--modes", "engine", "--engines", "lost"], ["try_engine", "lost", "a"]):
        with pytest.raises(CommandError, match=sentence):
            call_command(*command)
    fields = {"name": "d", "mapping_id": mapping, "config_matrix": {"search_modes": ["engine"], "engines": ["lost"]}}
    caller = Caller(User.objects.get(username="admin"))
    refused = caller.post("/benchmarks", fields)
    assert refused.status_code == 400
    assert sentence in refused.text
    form = open_form(admin_client, address := f"/admin/benchmarks/benchmark/add/?from={ended.pk}")
    assert "Declared: shop. Refused, because their entries are wrong: lost." in admin_client.get(address).text
    assert sentence in admin_client.post(address, form).text


def test_forms_say_which_engine_is_not_declared(shop_library, shop, admin_client, settings):
    benchmark = run_benchmark(shop_library, name="a", matrix={"engines": ["shop"]})
    schedule = make_schedule(benchmark)
    declare_anew(shop=None)
    for declarations in (settings.BENCHBENCH_ENGINES, ""):
        settings.BENCHBENCH_ENGINES = declarations
        address = f"/admin/benchmarks/benchmark/add/?from={benchmark.pk}"
        refused = admin_client.post(address, open_form(admin_client, address))
        assert "The engine shop is not declared in BENCHBENCH_ENGINES: " in refused.text
        assert "no search mode asks" not in refused.text
        address = "/admin/benchmarks/schedule/add/"
        values = {"name": "nightly", "benchmark": benchmark.pk, "cron": "0 3 * * *", "enabled": "on"}
        refused = admin_client.post(address, values)
        assert list(refused.context["adminform"].form.errors) == ["benchmark"]
        assert "The engine shop is not declared in BENCHBENCH_ENGINES: " in refused.text
    assert Schedule.objects.get() == schedule
    form = open_form(admin_client, change_url(schedule))
    form.pop("enabled")
    assert admin_client.post(change_url(schedule), form).status_code == 302, "it can be disabled"


def test_an_old_outage_does_not_fail_a_retried_run(shop_library, shop):
    declare_anew(patience=0.1)
    shop.unavailable = lambda number: True
    benchmark = run_benchmark(shop_library, name="b", matrix={"engines": ["shop"]})
    assert "is down" in benchmark.runs.get().error_message
    shop.unavailable, shop.wrong = lambda number: False, {shop.asked[0][0]}
    wait(retry(benchmark))
    run = benchmark.runs.get()
    assert (run.status, run.failed_queries) == ("completed", 1)


def test_files_name_the_engine_that_took_part(shop_library, shop):
    matrix = {"search_modes": ["dense", "engine+dense", "engine+sparse"], "engines": ["shop"]}
    benchmark = run_benchmark(shop_library, name="b", matrix=matrix)
    names = [build_configuration(run) for run in benchmark.runs.select_related("index").order_by("run_order")]
    assert [one.strategy for one in names] == ["flat", "shop + flat", "shop + flat"]
    assert names[1].embedding_model == names[0].embedding_model
    assert names[2].embedding_model is None


def test_stages_of_an_engine_are_unknown(shop_library, shop):
    run = run_benchmark(shop_library, name="b", matrix={"engines": ["shop"]}).runs.get()
    with pytest.raises(UntracedError, match="asks an engine that answers as a whole"):
        triage_of(run)


def test_mapping_of_ids_leads_to_a_benchmark(shop_library, shop, admin_client):
    mapping = ensure_external(shop_library.dataset)
    address = f"/admin/benchmarks/benchmark/add/?mapping={mapping.pk}"
    assert address in admin_client.get(change_url(mapping)).content.decode()
    benchmark = create_benchmark(mapping, name="b", matrix={"engines": ["shop"]})
    clone_url = f"/admin/benchmarks/benchmark/add/?from={benchmark.pk}"
    form = open_form(admin_client, clone_url)
    declare_anew(shop=None)
    assert address not in admin_client.get(change_url(mapping)).content.decode()
    assert open_form(admin_client, clone_url) == form
    errors = admin_client.post(clone_url, form).context["form"].errors
    assert list(errors) == ["engines"]
    assert errors["engines"][0].startswith("The engine shop is not declared")


def test_the_prompt_of_an_engine_is_before_queries(shop_library, shop, tmp_path):
    model = save_encoder(tmp_path / "e5-small")
    query = {"q": "{query}", "size": "{size}", "vector": "{vector}"}
    declare_anew(query=query, parameters={}, encoder=str(model))
    unprompted = run_benchmark(shop_library, name="a", matrix={"engines": ["shop"]}).runs.get()
    declare_anew(query_prompt="query: ")
    before = len(shop.asked)
    prompted = run_benchmark(shop_library, name="b", matrix={"engines": ["shop"]}).runs.get()
    assert len(shop.asked) == 2 * before, "the answers to other vectors are not used"
    assert not any("does not read the end" in sentence for sentence in prompted.warnings)
    (warning,) = (sentence for sentence in unprompted.warnings if "prompt" in sentence)
    assert warning.endswith('declare, in engines.shop, query_prompt "query: ".')
    assert not any("prompt" in sentence for sentence in prompted.warnings)
    declared = load_engine("shop")
    vectors = embed_for(declared, ["pear"]), load_encoder(str(model)).embed_batch(["query: pear"])
    assert np.allclose(*vectors, atol=1e-6)
    declare_anew(query={"q": "{query}"}, encoder=None)
    with pytest.raises(EngineError, match=r"query_prompt needs an encoder, which reads it before each query"):
        load_engine("shop")


def test_queries_that_an_engines_encoder_cuts_are_named(shop_library, tmp_path):
    query = {"q": "{query}", "size": "{size}", "vector": "{vector}"}
    declare_anew(query=query, parameters={}, encoder=str(save_encoder(tmp_path)), query_prompt="pear " * WINDOW)
    run = run_benchmark(shop_library, name="a", matrix={"engines": ["shop"]}).runs.get()
    assert any("The encoder does not read the end of" in sentence for sentence in run.warnings)
