"""Opening a round: its pool, its options, what is refused, and the form."""

from collections import Counter
from itertools import groupby

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.urls import reverse

from apps.judging.judges import RoundError
from apps.judging.models import Round, Slot
from apps.judging.opening import RoundOptions, open_round
from apps.judging.scales import read_scale
from apps.mappings.models import Mapping
from apps.records.models import Benchmark, Run
from benchbench.access import visible
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.judging.orders import SHARE
from benchbench.site.panels import change_url
from tests.factories import make_benchmark
from tests.judging.rounds import names_of, open_for, signed_in
from tests.pages import one_line

PAIR = ("query", "document")
POOL_AT_2 = {"q1 d2", "q1 d3", "q2 d3", "q2 d6"}  # without what is judged: q1 d1, q2 d2


def items_of(opened: Round) -> list[str]:
    return names_of(list(opened.items.select_related("query", "document").order_by("place")))


def test_items_are_the_unjudged_results_once_each(benchmark, ada):
    opened = open_for(benchmark, [ada], depth=2)
    assert sorted(items_of(opened)) == sorted(POOL_AT_2)
    assert (opened.item_count, opened.pool_size, opened.dataset_version.number) == (4, 4, 1)
    complete = open_for(benchmark, [ada])
    assert (complete.depth, complete.measure, complete.item_count) == (10, "nDCG@10", 10)
    assert len(set(items_of(complete))) == 10


def test_the_order_of_depth_takes_the_best_ranks_first(benchmark, ada):
    opened = open_for(benchmark, [ada], depth=3)
    first, second, *_ = items_of(opened)
    assert {first, second} == {"q1 d3", "q2 d6"}, "rank 1 of the second run"
    assert {(item.planned_probability, item.in_planned_sample) for item in opened.items.all()} == {(0.0, False)}, (
        "no sample was asked for"
    )


def test_random_round_draws_its_budget_with_one_probability(benchmark, ada):
    opened = open_for(benchmark, [ada], order="random", budget=4)
    assert {(item.planned_probability, item.in_planned_sample) for item in opened.items.all()} == {(0.4, True)}
    again = open_for(benchmark, [ada], order="random", budget=4)
    assert items_of(opened) == items_of(again), "the seed decides"


def test_an_order_of_queries_takes_each_in_whole(simulated, ada):
    firsts = set()
    for seed in (1, 2, 3):
        opened = open_for(simulated, [ada], order="queries", seed=seed, budget=200)
        queries = list(opened.items.order_by("place").values_list("query__key", flat=True))
        turns = [key for key, _ in groupby(queries)]
        assert len(turns) == len(set(turns)), "each stands in one piece"
        pools = Counter(open_for(simulated, [ada]).items.values_list("query__key", flat=True))
        assert all(queries.count(key) == pools[key] for key in turns[:-1]), "a budget ends it within the last"
        firsts.add(turns[0])
    assert len(firsts) > 1, "the seed decides"


def test_query_order_keeps_the_share_of_uniform_pairs(simulated, ada):
    sampled = [
        set(open_for(simulated, [ada], seed=5, **options).items.filter(in_planned_sample=True).values_list(*PAIR))
        for options in ({"order": "queries", "uniform_share": 0.25, "budget": 120}, {"order": "random", "budget": 30})
    ]
    assert len(sampled[0]) == 30
    assert sampled[0] == sampled[1]


def test_a_share_of_every_order_is_uniform(benchmark, ada):
    opened = open_for(benchmark, [ada], uniform_share=0.5, budget=8)
    assert opened.items.filter(in_planned_sample=True).count() == 4


def test_a_share_of_the_items_wants_several_judges(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace], overlap=0.3)
    assert sorted(opened.items.values_list("wanted", flat=True)) == [1] * 7 + [2] * 3
    assert Slot.objects.filter(round=opened).count() == 13


def test_the_scale_is_that_of_the_dataset_unless_stated(benchmark, ada):
    assert [one["name"] for one in open_for(benchmark, [ada]).scale] == ["Not relevant", "Partly relevant", "Relevant"]
    declared = [{"grade": 1, "name": "Yes"}, {"grade": 0, "name": "No", "description": "Of another fruit."}]
    assert open_for(benchmark, [ada], scale=declared).scale == [
        {"grade": 0, "name": "No", "description": "Of another fruit."},
        {"grade": 1, "name": "Yes", "description": ""},
    ]


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ([{"grade": 0, "name": "No"}], "at least one grade above"),
        ([{"grade": 1, "name": "a"}, {"grade": 2, "name": "b"}], "needs 0"),
        ([{"grade": 0, "name": "a"}, {"grade": 0, "name": "b"}], "twice"),
        ([{"grade": 0, "name": "a"}, {"grade": 1, "name": "A"}], "twice"),
        ([{"grade": 10, "name": "a"}], "from 0 to 9"),
        ([{"grade": True, "name": "a"}], "from 0 to 9"),
        ([{"grade": 1, "name": " "}], "a name"),
        ([{"grade": 1, "name": "a", "colour": "red"}], "unknown key 'colour'"),
    ],
)
def test_a_scale_that_cannot_be_is_refused(scale, message):
    with pytest.raises(BenchbenchError, match=message):
        read_scale(scale)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"name": " "}, "name"),
        ({"order": "backwards"}, "order"),
        ({"measure": "nonsense@5"}, "measure"),
        ({"measure": "nDCG@1.5"}, "measure"),
        ({"measure": "P@0"}, "measure"),
        ({"depth": 5000}, "depth"),
        ({"budget": 0}, "budget"),
        ({"uniform_share": 1.5}, "uniform_share"),
        ({"overlap": float("nan")}, "overlap"),
        ({"overlap": 0.5}, "overlap"),
        ({"overlap_judges": 1}, "overlap_judges"),
    ],
)
def test_options_that_cannot_be_are_refused(benchmark, ada, options, field):
    with pytest.raises(RoundError) as refused:
        open_for(benchmark, [ada], **options)
    assert refused.value.field == field
    assert not refused.value.message.startswith(field), "the sentence says what it is, not the field alone"
    assert not Round.objects.exists()


def test_runs_that_no_round_compares_are_refused(benchmark, ada, grace):
    options, runs = RoundOptions("fruit"), list(benchmark.runs.all())
    for chosen, message in (([], "at least one run"), ([runs[0], runs[0]], "named twice")):
        with pytest.raises(RoundError, match=message):
            open_round(chosen, options, judges=[ada])
    with pytest.raises(RoundError, match="name at least one"):
        open_round(runs, options, judges=[])
    failed = make_benchmark(benchmark.mapping, [None], name="failed").runs.get()
    with pytest.raises(RoundError, match="it is failed"):
        open_round([failed], options, judges=[ada])
    Benchmark.objects.filter(pk=benchmark.pk).update(owner=grace)
    with pytest.raises(RoundError, match="not visible to ada"):
        open_round(list(Run.objects.filter(benchmark=benchmark)), options, judges=[ada], owner=ada)
    Benchmark.objects.update(owner=None)
    ada.is_staff = False
    with pytest.raises(RoundError, match="cannot sign in"):
        open_round(runs, options, judges=[ada])


def test_it_needs_a_resolved_mapping_and_something_to_judge(benchmark, ada):
    with pytest.raises(RoundError, match="are judged in questions v1"):
        open_round([benchmark.runs.get(run_order=1)], RoundOptions("again", order="depth", depth=1), judges=[ada])
    Mapping.objects.update(dataset_version=None)
    with pytest.raises(ConflictError, match="has not been resolved"):
        open_for(Benchmark.objects.get(pk=benchmark.pk), [ada])


def test_only_judges_and_owner_see_the_round(benchmark, ada, grace):
    second = User.objects.create_user("other", is_staff=True)
    opened = open_for(benchmark, [ada], owner=grace)
    assert [visible(Round.objects.all(), user).count() for user in (ada, grace, second)] == [1, 1, 0]
    Round.objects.update(owner=None)
    assert visible(Round.objects.filter(pk=opened.pk), second).count() == 1


FORM = {
    "name": "fruit",
    "order": "decisive",
    "uniform_share": "0.2",
    "overlap": "0",
    "overlap_judges": "2",
    "seed": "42",
}
URL = "/admin/judging/round/add/"


def opening_form(benchmark: Benchmark, **options: object) -> dict[str, object]:
    runs = [str(run.pk) for run in benchmark.runs.all()]
    return FORM | {"mapping": str(benchmark.mapping_id), "runs": runs, "blind": "on"} | options


def test_form_opens_a_round_with_the_given_options(client, benchmark, ada, grace):
    signed_in(client, ada)
    Group.objects.create(name="search").user_set.add(ada, grace)
    scale = "2 Yes: all of it\n0 No\n\n1 Partly"
    options = {"scale": scale, "judges": [ada.pk, grace.pk], "overlap": "0.5", "guidelines": "Read.", "depth": "3"}
    answer = client.post(URL, opening_form(benchmark, **options))
    opened = Round.objects.get()
    assert answer["Location"] == reverse("admin:judging_round_change", args=[opened.pk])
    assert (opened.name, opened.owner, opened.depth, opened.overlap, opened.blind) == ("fruit", ada, 3, 0.5, True)
    assert [entry["name"] for entry in opened.scale] == ["No", "Partly", "Yes"]
    assert opened.scale[2]["description"] == "all of it"
    assert set(opened.judges.all()) == {ada, grace}
    assert opened.runs.count() == 2


def test_preview_counts_items_without_opening_a_round(client, benchmark, ada):
    signed_in(client, ada)
    url = reverse("admin:round_preview")
    answer = one_line(client.post(url, opening_form(benchmark, name="")).content.decode())
    assert "<strong>10 pairs</strong>" in answer
    assert "at most 10 gradings, about 1 min 40 s at 10 s each" in answer
    shared = client.post(url, opening_form(benchmark, overlap="1", judges=[ada.pk])).content.decode()
    assert "needs 2 judges" in shared
    assert "Give" not in client.post(url, opening_form(benchmark, name="")).content.decode()
    assert not Round.objects.exists()


def test_form_shows_errors_at_their_fields(client, benchmark, ada):
    signed_in(client, ada)
    for field, value, sentence in (
        ("scale", "yes", "start the line with its digit"),
        ("scale", "1 Yes", "needs 0"),
        ("measure", "nDGC@10", "nDGC"),
        ("depth", "0", "choose one from 1"),
        ("runs", [], "required"),
    ):
        answer = client.post(URL, opening_form(benchmark, **{field: value}))
        assert sentence in str(answer.context["form"].errors[field]), field
    assert not Round.objects.exists()


def test_runs_that_the_address_names_are_filled_in(client, benchmark, ada):
    signed_in(client, ada)
    first = benchmark.runs.order_by("run_order")[0]
    form = client.get(URL, {"run": str(first.pk)}).context["form"]
    assert form["runs"].value() == [str(first.pk)]
    assert form["uniform_share"].value() == SHARE, "as where nothing is stated"
    assert form["mapping"].value() == str(benchmark.mapping_id)
    form = client.get(URL, {"benchmark": str(benchmark.pk)}).context["form"]
    assert len(form["runs"].value()) == 2
    assert client.get(URL, {"run": "nonsense"}).status_code == 200
    choices = client.get(reverse("admin:round_choices"), {"mapping": str(benchmark.mapping_id)}).content.decode()
    assert first.label in choices


def test_pages_of_results_lead_to_it_with_their_runs(client, benchmark, ada):
    signed_in(client, ada)
    first, second = benchmark.runs.order_by("run_order")
    pages = {
        reverse("admin:benchmarks_run_change", args=[first.pk]): f"{URL}?run={first.pk}",
        change_url(first.query_results.first()): f"{URL}?run={first.pk}",
        f"{reverse('admin:run_compare')}?run={first.pk}&run={second.pk}": f"{URL}?run={first.pk}&amp;run={second.pk}",
        reverse("admin:benchmark_results", args=[benchmark.pk]): f'formaction="{URL}"',
    }
    for page, link in pages.items():
        assert link in client.get(page).content.decode(), page
    ada.user_permissions.remove(Permission.objects.get(codename="add_round"))
    for page in pages:
        assert URL not in client.get(page).content.decode(), page


def test_judges_are_colleagues(client, benchmark, ada, grace):
    signed_in(client, ada)
    assert "grace" not in client.get(URL).content.decode()
    assert client.post(URL, opening_form(benchmark, judges=[grace.pk])).status_code == 200
    assert not Round.objects.exists()
    ada.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert "grace" in client.get(URL).content.decode()
    assert client.post(URL, opening_form(benchmark, judges=[grace.pk])).status_code == 302
