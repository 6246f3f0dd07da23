"""The verdict on a benchmark and the page of a comparison, as a reader sees them."""

import html
import re
from itertools import combinations
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode

from apps.judging.models import Round
from apps.records.models import Benchmark, Run
from apps.results.templatetags.benchbench import interval, signed
from apps.verdicts.comparing import compare_runs
from apps.verdicts.sentences import describe_verdict
from benchbench.decimals import figure, format_p
from benchbench.site.panels import build_list_url, change_url
from tests.benchmarks.gated import GOOD, POOR, make_gated, search
from tests.factories import make_round
from tests.results.compared import make_compared, make_queries, noisy
from tests.site import HOSTILE, count_statements, results_url, text_of

VALUES = noisy([0.3, 0.5, 0.49], 40)


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    return make_compared(make_queries(40, category=["a"] * 20 + ["b"] * 20), VALUES)


def page(client: Client, **requested: Any) -> Any:
    return client.get(reverse("admin:run_compare"), requested)


def opened(client: Client, **requested: Any) -> str:
    """Return the text of the page and of every part that it loads."""
    first = page(client, **requested)
    addresses = re.findall(r'hx-get="([^"]*panel=[^"]*)"', first.content.decode())
    return " ".join(map(text_of, [first, *(client.get(html.unescape(address)) for address in addresses)]))


def test_verdict_is_shown_above_the_leaderboard(admin_client, benchmark):
    board = admin_client.get(results_url(benchmark)).content.decode()
    assert f'hx-get="{results_url(benchmark, "verdict")}?version=1"' in board
    response = admin_client.get(results_url(benchmark, "verdict"))
    comparison = compare_runs(benchmark.runs.all())
    assert describe_verdict(comparison) in text_of(response)
    assert response.content.decode().count("hx-swap-oob") == 5
    assert re.search(r'bb-standing-worse"\s+hx-swap-oob="true"\s*>worse<', response.content.decode())
    for run, rank in zip(comparison.runs, ("3", "1–2", "1–2"), strict=True):
        assert f'<span id="rank-{run.pk}">' in board
        displayed = f'<span id="rank-{run.pk}" hx-swap-oob="true">{rank}</span>'
        assert (displayed in response.content.decode()) == ("–" in rank)
    for position, standing in ((1, "best"), (2, "not distinguishable")):
        assert f'id="standing-{comparison.runs[position].pk}"' in board
        assert f'id="standing-{comparison.runs[position].pk}"' in response.content.decode()
        assert f">{standing}</span>" in response.content.decode()


def test_the_verdict_leads_to_visible_rounds(client, make_staff, benchmark):
    for name, owner in (("ours", None), ("theirs", make_staff("grace"))):
        make_round(benchmark.runs.order_by("run_order")[0], name=name, owner=owner, items=0)
    client.force_login(make_staff("ada"))
    page = client.get(results_url(benchmark, "verdict")).content.decode()
    assert f'<a href="{change_url(Round.objects.get(name="ours"))}">ours</a> (open)' in page
    assert "theirs" not in page
    assert " more." not in page
    for number in range(4):
        make_round(benchmark.runs.order_by("run_order")[0], name=f"further {number}", items=0)
    many = text_of(client.get(results_url(benchmark, "verdict")))
    assert many.count("(open)") == 3
    assert "(open) and 2 more." in many


@pytest.mark.parametrize(
    "requested", [{"version": "7"}, {"version": "9" * 5000}, {"version": "x"}, {"seed": "9" * 5000}]
)
def test_an_unknown_version_is_not_found(admin_client, benchmark, requested):
    assert page(admin_client, benchmark=benchmark.pk, version="1", seed="7").status_code == 200
    assert page(admin_client, benchmark=benchmark.pk, **requested).status_code == 404
    if "version" in requested:
        assert admin_client.get(results_url(benchmark, "verdict"), requested).status_code == 404
        assert admin_client.get(results_url(benchmark), requested).status_code == 404


@pytest.mark.parametrize("status", ["running", "cancelled", "failed", "pending"])
def test_provisional_results_have_no_verdict(admin_client, benchmark, status):
    Benchmark.objects.update(status=status)
    assert admin_client.get(results_url(benchmark, "verdict")).content == b""
    assert "Comparing the runs" not in text_of(admin_client.get(results_url(benchmark)))


def test_verdict_counts_failed_runs_as_missing(admin_client, benchmark):
    benchmark.runs.filter(run_order=3).update(status=Run.Status.FAILED)
    displayed = html.unescape(text_of(admin_client.get(results_url(benchmark, "verdict"))))
    assert "1 of the benchmark's runs have no values" in displayed
    benchmark.runs.filter(run_order=2).update(status=Run.Status.FAILED)
    assert admin_client.get(results_url(benchmark, "verdict")).content == b""


def test_page_shows_the_numbers_of_the_comparison(admin_client, benchmark):
    text = opened(admin_client, benchmark=benchmark.pk)
    result = compare_runs(benchmark.runs.all())
    assert describe_verdict(result) in text
    for pair in (result.comparison.get_pair(0, 1), result.comparison.get_pair(2, 1), result.comparison.get_pair(2, 0)):
        assert signed(pair.difference) in text
        assert interval(pair.simultaneous) in text
        assert interval(pair.interval) in text
        assert format_p(pair.p_adjusted).replace("<", "&lt;") in text
        assert f"{pair.wins} / {pair.ties} / {pair.losses}" in text
    assert "seed 42" in text
    assert "3 pairs" in text
    for heading in ("Slices:", "Effect of each choice", "Quality and cost", "Measures:"):
        assert heading in text


def test_many_pairs_come_on_demand(admin_client, benchmark, monkeypatch):
    four = make_compared(benchmark.mapping, noisy([0.2, 0.3, 0.5, 0.49], 40), name="four")
    result = compare_runs(four.runs.all())
    pairs = [result.comparison.get_pair(*pair) for pair in combinations(result.order[1:], 2)]
    monkeypatch.setattr("apps.results.comparison.panels.MOST_PAIRS", 2)
    answer = page(admin_client, benchmark=four.pk)
    assert not any(interval(pair.simultaneous) in answer.content.decode() for pair in pairs)
    displayed = []
    while addresses := re.findall(r'hx-get="([^"]*panel=pairs[^"]*)"', answer.content.decode()):
        answer = admin_client.get(html.unescape(addresses[0]))
        displayed.append([interval(pair.simultaneous) in text_of(answer) for pair in pairs])
    assert displayed == [[True, True, False], [False, False, True]]


def test_another_measure_is_described(admin_client, benchmark):
    text = text_of(page(admin_client, benchmark=benchmark.pk, measure="P@10"))
    assert "P@10 is not tested here." in text
    assert "not distinguishable" not in text.replace("Not distinguishable", "")


def test_a_slice_and_a_baseline_can_be_asked_for(admin_client, benchmark):
    runs = list(benchmark.runs.order_by("run_order"))
    requests = {"run": [run.pk for run in runs], "slice": "category: a", "baseline": runs[0].pk}
    text = text_of(page(admin_client, **requests))
    assert describe_verdict(compare_runs(runs, slice="category: a", baseline=runs[0])) in text
    assert "This baseline is not pinned." in text
    assert "of “category: a”. The error rate holds for this slice" in text
    rows = page(admin_client, **requests, measure="P@10").context["rows"]
    assert all("version=1&measure=P%4010&slice=category%3A+a" in row["link"] for row in rows), "and by query too"
    assert all(row["against"].endswith("version=1&by=P%4010") for row in rows)


def test_two_of_more_runs_say_that_they_were_picked(admin_client, benchmark):
    first, second, _ = benchmark.runs.order_by("run_order")
    text = text_of(page(admin_client, run=[first.pk, second.pk]))
    assert "1 more run of this benchmark is not compared here." in text
    assert "Most lost by top 10" in text


def test_the_best_are_compared(admin_client, benchmark, monkeypatch):
    monkeypatch.setattr("apps.verdicts.describing.MOST_RUNS", 2)
    weakest, best, good = benchmark.runs.order_by("run_order")
    response = page(admin_client, benchmark=benchmark.pk)
    assert response.status_code == 200
    assert set(response.context["comparison"].runs) == {best, good}
    assert "1 lower-ranked run is left out" in text_of(response)
    claimed = page(admin_client, run=[weakest.pk, best.pk, good.pk], baseline=weakest.pk)
    assert set(claimed.context["comparison"].runs) == {weakest, best}
    response = admin_client.get(results_url(benchmark, "verdict"))
    verdict = text_of(response)
    assert 'id="rank-' not in response.content.decode(), "a run that is left out may have such a rank too"
    assert "No verdict" not in verdict
    assert "1 lower-ranked run is left out" in verdict


def test_two_runs_lead_from_each_query_to_both_rankings(admin_client, transactional_db):
    response = page(admin_client, benchmark=search(make_gated(), GOOD, POOR).pk)
    lost = response.context["queries"].losses[0]
    address = reverse("admin:run_side_by_side", args=[lost.result.run_id])
    query_string = {"against": response.context["reference"].pk, "query": lost.query.key, "version": 1}
    assert f'href="{address}?{urlencode(query_string).replace("&", "&amp;")}"' in response.content.decode()
    displayed = admin_client.get(address, query_string)
    assert displayed.context["query"] == lost.query
    assert [column.value for column in displayed.context["columns"]] == [lost.value, lost.reference_value]


def test_bounds_choose_another_run(admin_client, benchmark):
    assert "top 20 is the best" in text_of(page(admin_client, benchmark=benchmark.pk))
    assert "top 10 is the best within the bounds" in text_of(page(admin_client, benchmark=benchmark.pk, max_ms="15"))
    assert "No run is within these bounds." in text_of(page(admin_client, benchmark=benchmark.pk, max_mb="1"))


def test_runs_of_two_benchmarks_are_compared(admin_client, benchmark):
    second = make_compared(benchmark.mapping, noisy([0.9], 40, seed=5), name="another")
    response = page(admin_client, benchmark=[benchmark.pk, second.pk])
    assert response.context["verdict"].startswith('top 10 of "another" beats every other run')
    assert response.context["verdict"] in html.unescape(text_of(response))
    chosen = [str(run.pk) for run in Run.objects.all()]
    posted = admin_client.post(build_list_url(Run), {"action": "compare_selected", "_selected_action": chosen})
    assert posted.status_code == 302
    assert len(admin_client.get(posted["Location"]).context["rows"]) == 4
    alone = {"action": "compare_selected", "_selected_action": [str(benchmark.runs.all()[0].pk)]}
    message = admin_client.post(build_list_url(Run), alone, follow=True)
    assert message.redirect_chain[-1][0].partition("?")[0] == build_list_url(Run)
    assert "needs at least two runs" in message.content.decode()


def test_incomparable_selection_shows_the_reason_and_remedy(admin_client, benchmark):
    second = make_compared(make_queries(40, name="others"), VALUES[:1], name="other")
    response = page(admin_client, benchmark=[benchmark.pk, second.pk])
    assert response.status_code == 409
    assert "Compare runs of one dataset." in response.content.decode()
    one = page(admin_client, run=benchmark.runs.all()[0].pk)
    assert one.status_code == 400
    assert "takes 2 to 64 runs" in one.content.decode()


def test_runs_that_are_not_judged_alike_are_flagged(admin_client, db):
    benchmark = make_compared(make_queries(40), VALUES, measures=["nDCG@10", "Judged@10"])
    assert "Judgment coverage differs" in text_of(page(admin_client, benchmark=benchmark.pk))


def test_benchmarks_of_other_owners_are_not_found(client, benchmark, make_staff):
    ada, grace = make_staff("ada"), make_staff("grace")
    Benchmark.objects.update(owner=grace)
    client.force_login(ada)
    runs = [run.pk for run in benchmark.runs.all()]
    for requested in ({"run": runs}, {"benchmark": benchmark.pk}, {"run": "nonsense"}):
        assert page(client, **requested).status_code == 404
    assert client.get(results_url(benchmark, "verdict")).status_code == 404
    team = Group.objects.create(name="search")
    ada.groups.add(team)
    Benchmark.objects.update(team=team)
    assert page(client, run=runs).status_code == 200


def test_nothing_that_people_name_is_markup(admin_client, benchmark):
    Benchmark.objects.update(name=HOSTILE)
    Run.objects.update(label=HOSTILE)
    for run in Run.objects.all():
        run.config |= {"index": f"{HOSTILE}{run.run_order}"}
        run.save()
    benchmark.mapping.dataset.queries.update(text=HOSTILE, category=HOSTILE)
    first, second, _ = benchmark.runs.all()
    for requested in ({"benchmark": benchmark.pk}, {"run": [first.pk, second.pk]}):
        for panel in ("", "runs", "pairs", "slices", "measures"):
            assert "<script>alert" not in page(admin_client, **requested, panel=panel).content.decode()
    assert "<script>alert" not in admin_client.get(results_url(benchmark, "verdict")).content.decode()


@pytest.mark.parametrize("panel", ["", "runs", "pairs", "slices", "measures"])
def test_a_page_costs_the_same_for_sixteen_runs(admin_client, db, panel):
    mapping = make_queries(40, category=["a"] * 20 + ["b"] * 20)
    costs = []
    for number in (3, 16):
        second = make_compared(mapping, noisy([0.5] * number, 40), name=f"{number} runs")
        costs.append(
            count_statements(lambda created=second: text_of(page(admin_client, benchmark=created.pk, panel=panel)))
        )
    assert costs[0] == costs[1]
    assert costs[0] <= 16


def test_runs_beyond_the_best_are_folded(admin_client, db):
    second = make_compared(make_queries(40), noisy([0.9, *[0.1] * 14], 40))
    lowest = compare_runs(second.runs.all()).order[-1]
    requests = {"benchmark": second.pk, "baseline": str(second.runs.get(run_order=lowest + 1).pk)}
    response = page(admin_client, **requests)
    assert "All runs: 2 more runs: 2 not distinguishable" in text_of(response)
    assert len(response.context["rows"]) == 13, "the twelve best and the baseline"
    folded = page(admin_client, **requests, panel="runs").context["rows"]
    assert {row["run"] for row in (*response.context["rows"], *folded)} == set(second.runs.all())


def test_the_widest_departure_is_named_with_each_panel(admin_client, db):
    values = noisy([0.5, 0.49], 80, spread=0.02)
    values[1, 60:] -= 0.12
    benchmark = make_compared(make_queries(80, category=["words"] * 60 + ["numbers"] * 20), values)
    text = text_of(page(admin_client, benchmark=benchmark.pk))
    gap = values[1] - values[0]
    assert (
        f"compared with the reference, top 20 is worse by {figure(-gap[60:].mean(), 3)} in “category: numbers” and "
        f"worse by {figure(-gap[:60].mean(), 3)} elsewhere Loading"
    ) in text
    assert "top 10 has the best mean by each of" in text


def test_calls_of_a_model_stand_for_its_price(admin_client, benchmark):
    text = text_of(page(admin_client, benchmark=benchmark.pk))
    assert "model calls" not in text
    run = benchmark.runs.get(run_order=2)
    run.llm_calls, run.timing = 3 * 40, {**run.timing, "samples": 40}
    run.save()
    response = page(admin_client, benchmark=benchmark.pk)
    assert response.context["figures"]["calls"]["data"][0]["x"] == [3.0, 0.0, 0.0]
    assert "BenchBench does not know the prices of models" in text_of(response)
