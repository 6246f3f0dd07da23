"""Index grids: equal indexes are taken, the others made; and the commands that build one index or many."""

import json

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from apps.collections.models import Collection
from apps.operations.launching import QuotaError
from apps.operations.models import Operation
from apps.retrieval.availability import UnavailableError
from apps.retrieval.building import IndexingError
from apps.retrieval.grids import Grid, make_grid, plan_grid, read_strategy
from apps.retrieval.indexing import create_index
from apps.retrieval.models import Index
from apps.retrieval.strategies.base import StrategyError
from tests.factories import plain_encoders
from tests.retrieval.opened import KEYWORDS

pytestmark = pytest.mark.django_db
SIZES = {"size": 40, "overlap": 5}
FLAT, UNCUT, LOD = ("flat", SIZES), ("flat", {}), ("lod_embed", {**SIZES, "doc_top_k": 3})
SECOND_ENCODER = "keyword:apple,fig"


def names(cells):
    return [(cell.name, cell.state) for cell in cells]


def test_grid_plans_each_strategy_and_encoder_under_descriptive_names(fruit):
    assert names(plan_grid(fruit, Grid([FLAT, UNCUT, LOD], plain_encoders([KEYWORDS, SECOND_ENCODER])))) == [
        (f"flat 40/5 · {KEYWORDS}", "new"),
        (f"flat 40/5 · {SECOND_ENCODER}", "new"),
        (f"flat · {KEYWORDS}", "new"),
        (f"flat · {SECOND_ENCODER}", "new"),
        (f"lod_embed 40/5 doc_top_k=3 · {KEYWORDS}", "new"),
        (f"lod_embed 40/5 doc_top_k=3 · {SECOND_ENCODER}", "new"),
    ]
    assert not Index.objects.exists()


def test_equivalent_grid_entries_make_one_index(fruit):
    declared = [("flat", {"size": 40}), ("flat", {"size": 40, "overlap": 0, "title": False})]
    assert len(plan_grid(fruit, Grid(declared, plain_encoders([KEYWORDS, f" {KEYWORDS} "])))) == 1


def test_equal_indexes_are_reused_and_others_created(fruit, built):
    remote = built(fruit, name="mine", chunk_parameters=SIZES)
    begun = create_index(fruit, name="begun", encoder=SECOND_ENCODER, chunk_parameters=SIZES)
    grid = Grid([FLAT, LOD], plain_encoders([KEYWORDS, SECOND_ENCODER]))
    created = make_grid(fruit, grid)
    assert [(piece.index.name, piece.cell.state, piece.operation is None) for piece in created] == [
        ("mine", "ready", True),
        ("begun", "begun", False),
        (f"lod_embed 40/5 doc_top_k=3 · {KEYWORDS}", "new", False),
        (f"lod_embed 40/5 doc_top_k=3 · {SECOND_ENCODER}", "new", False),
    ]
    assert (created[0].index, created[1].index) == (remote, begun)
    assert len({piece.operation for piece in created}) == 4
    again = make_grid(fruit, grid)
    assert [segment.index for segment in again] == [piece.index for piece in created]
    assert [piece.operation for piece in again] == [piece.operation for piece in created], (
        "what builds is not built twice"
    )


def test_an_index_with_words_is_another_than_one_without(fruit, built):
    built(fruit, name="mine", chunk_parameters=SIZES)
    assert [cell.state for cell in plan_grid(fruit, Grid([FLAT], plain_encoders([KEYWORDS]), lexical=False))] == ["new"]


def test_taken_names_get_a_prefix_instead_of_next_version(fruit):
    one, second = (f"{folder}/e5" for folder in ("a", "b"))
    cells = plan_grid(fruit, Grid([FLAT], plain_encoders([one, second])))
    assert [cell.name for cell in cells] == ["flat 40/5 · e5", "flat 40/5 · b_e5"]
    create_index(fruit, name="flat 40/5 · e5", encoder="c/e5")
    assert plan_grid(fruit, Grid([FLAT], plain_encoders([one])))[0].name == "flat 40/5 · a_e5"


def test_documents_that_changed_make_the_next_version(fruit, built):
    before = built(fruit, name=f"flat 40/5 · {KEYWORDS}", chunk_parameters=SIZES)
    Collection.objects.filter(pk=fruit.pk).update(fingerprint="f" * 64)
    (created,) = make_grid(Collection.objects.get(), Grid([FLAT], plain_encoders([KEYWORDS])))
    assert (created.index.name, created.index.version) == (before.name, 2)


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        (Grid([], plain_encoders([KEYWORDS])), IndexingError, "Give at least one strategy"),
        (Grid([FLAT], plain_encoders([])), IndexingError, "Give at least one encoder"),
        (
            Grid([FLAT, LOD], plain_encoders([KEYWORDS, ""])),
            IndexingError,
            "needs an encoder, because lod_embed searches by vectors",
        ),
        (
            Grid([FLAT, ("flat", {"size": 10, "overlap": 9})], plain_encoders([KEYWORDS])),
            Exception,
            "less than half the size",
        ),
        (
            Grid([FLAT, ("tree", {})], plain_encoders(["openai:ada"])),
            UnavailableError,
            "the provider openai .*; the strategy tree is",
        ),
        (Grid([FLAT, ("lod_llm", {})], plain_encoders([KEYWORDS])), UnavailableError, "language model"),
    ],
)
def test_invalid_grid_creates_no_index(fruit, grid, error, message):
    with pytest.raises(error, match=message):
        make_grid(fruit, grid)
    assert not Index.objects.exists()


def test_a_grid_has_a_limit(fruit, settings):
    settings.BENCHMARK_MAX_VALUES_PER_AXIS = 1
    with pytest.raises(IndexingError, match="2 indexes; at most 1 can be built at once"):
        plan_grid(fruit, Grid([FLAT, UNCUT], plain_encoders([KEYWORDS])))


def test_grid_over_the_build_quota_is_rejected_entirely(fruit, settings):
    settings.BENCHMARK_MAX_INDEXING_PER_USER = 1
    ada = User.objects.create_user("ada")
    with pytest.raises(QuotaError, match="ada has 1 indexes being built"):
        make_grid(fruit, Grid([FLAT, UNCUT], plain_encoders([KEYWORDS])), owner=ada)
    assert not Index.objects.exists()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("flat", ("flat", {})),
        (" flat( size = 500, title=true ) ", ("flat", {"size": 500, "title": True})),
        ("raptor(threshold=.5, search=tree)", ("raptor", {"threshold": 0.5, "search": "tree"})),
    ],
)
def test_a_strategy_is_read(text, read):
    assert read_strategy(text) == read


@pytest.mark.parametrize("text", ["", "flat(", "flat(size)", "flat(size=)", "flat(size=1, size=2)", "a b"])
def test_invalid_strategy_text_is_rejected(text):
    with pytest.raises(StrategyError):
        read_strategy(text)


def command(*arguments):
    call_command("build_indexes", "fruit", "--strategy", "flat(size=40, overlap=5)", "--encoder", KEYWORDS, *arguments)


def test_the_command_builds_and_waits(fruit, capsys):
    command("--strategy", "lod_embed", "--dry-run")
    assert capsys.readouterr().out == f"flat 40/5 · {KEYWORDS}: new\nlod_embed 500/50 · {KEYWORDS}: new\n"
    command("--wait")
    assert capsys.readouterr().out == f"flat 40/5 · {KEYWORDS}: ready\n"
    command("--strategy", "lod_embed", "--wait", "--json")
    printed = json.loads(capsys.readouterr().out)["indexes"]
    assert [(row["status"], row["stats"]["num_documents"]) for row in printed] == [("ready", 4)] * 2
    command("--json", "--dry-run")
    (cell,) = json.loads(capsys.readouterr().out)["indexes"]
    assert (cell["state"], cell["index"]) == ("ready", printed[0]["index"])
    assert Operation.objects.count() == 2


def test_command_reports_the_problem(fruit):
    with pytest.raises(CommandError, match=r'"flat\(size" is not a strategy'):
        command("--strategy", "flat(size")


def test_build_index_builds_and_waits(fruit, capsys):
    call_command("build_index", "fruit", "--name", "words", "--encoder", KEYWORDS, "--size", "5", "--wait", "--json")
    printed = json.loads(capsys.readouterr().out)
    index = Index.objects.get()
    assert (printed["index"], printed["status"]) == (str(index.pk), "ready")
    assert printed["stats"]["num_chunks"] == 7
    assert index.chunk_parameters == {"size": 5, "overlap": 0, "title": False}


def test_build_index_takes_a_strategy_with_its_parameters(fruit, capsys):
    declared = ["--strategy", "lod_embed", "--encoder", KEYWORDS, "--size", "5", "--overlap", "0", "--doc-top-k", "2"]
    call_command("build_index", "fruit", "--name", "lod", *declared)
    call_command("build_index", "fruit", "--name", "flat", "--size", "5", "--by-section", "--no-vectors")
    lod, flat = Index.objects.order_by("-name")
    assert lod.chunk_parameters == {"size": 5, "overlap": 0, "doc_top_k": 2, "section_top_k": 10}
    assert flat.chunk_parameters == {"size": 5, "overlap": 0, "title": False, "sections": True}


def test_build_index_without_waiting_only_queues_the_work(fruit, capsys):
    call_command("build_index", str(fruit.pk), "--name", "words", "--no-vectors")
    assert 'The index "words" is queued' in capsys.readouterr().out
    assert Operation.objects.get().status == "pending"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vegetables", "--name", "a"], "The collection 'vegetables' was not found; choose one of fruit"),
        (["fruit", "--name", "a", "--no-lexical", "--no-vectors"], "needs an encoder or BM25"),
        (["fruit", "--name", "a", "--overlap", "5"], "need --size"),
        (["fruit", "--name", "a", "--no-vectors", "--encoder", KEYWORDS], "leave out --encoder"),
        (["fruit", "--name", "a", "--size", "10", "--overlap", "5"], "less than half the size"),
        (["fruit", "--name", "a", "--doc-top-k", "5"], "need --strategy lod_embed"),
        (
            ["fruit", "--name", "a", "--strategy", "lod_embed", "--no-vectors"],
            "needs an encoder, because lod_embed searches by vectors",
        ),
        (["fruit", "--name", "a", "--encoder", "nobody/nothing", "--wait"], "is not on this machine"),
    ],
)
def test_build_index_rejections_are_command_errors(fruit, arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("build_index", *arguments)


def test_a_huge_grid_is_refused_without_combining_its_lists(fruit):
    with pytest.raises(IndexingError, match="have 10,000,000,000 combinations; at most 1,000 are read"):
        plan_grid(fruit, Grid([FLAT] * 100_000, plain_encoders([KEYWORDS] * 100_000)))
