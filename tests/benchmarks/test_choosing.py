"""Names choose among what the asker sees, and a matrix without modes has all that its indexes can search."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError

from apps.execution.defining.choosing import add_modes
from apps.execution.defining.creating import CloneError, clone
from apps.execution.defining.previewing import preview
from apps.experiments.experiments import plan_experiment, prepare_experiment
from apps.experiments.manifests import ManifestError, build_manifest
from apps.experiments.reproducing import reproduce
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark
from apps.retrieval.indexing import build_index, create_failed_index, create_index, get_or_create_index
from apps.retrieval.models import Index, Ingredients
from benchbench.ir.planning.matrix import MatrixError
from tests.benchmarks.laboratory import write
from tests.commands import json_of
from tests.created import create_benchmark, run_benchmark
from tests.library import ENCODER, make_library

WORDS = ["sparse"]


@pytest.fixture
def alice(transactional_db: None) -> User:
    return User.objects.create_user("alice", is_staff=True)


@pytest.fixture
def bob(transactional_db: None) -> User:
    return User.objects.create_user("bob", is_staff=True)


@pytest.fixture
def library(bob: User) -> Mapping:
    """A mapping and the index "keywords", which everybody sees, and Bob's own index "trial", which is the newest."""
    mapping = make_library(documents=6, queries=2)
    wait(build_index(create_index(mapping.collection, name="trial", encoder="", owner=bob)))
    return mapping


@pytest.fixture
def trial(library: Mapping) -> Index:
    return library.collection.indexes.get(name="trial")


def searched(benchmark: Benchmark) -> set[str]:
    return set(benchmark.runs.values_list("index__name", flat=True))


def newest(mapping: Mapping, owner: User | None = None) -> str:
    (name,) = searched(create_benchmark(mapping, name="b", matrix={"search_modes": WORDS}, owner=owner))
    return name


def test_the_newest_is_the_newest_that_the_owner_sees(library, alice, bob):
    assert (newest(library, alice), newest(library, bob)) == ("keywords", "trial")
    assert preview(library, {"search_modes": WORDS}, owner=alice).indexes == ["keywords"]
    assert add_modes(library, {}, owner=alice)["search_modes"] == ["dense", "sparse", "hybrid"]
    assert add_modes(library, {}, owner=bob)["search_modes"] == WORDS


@pytest.mark.parametrize("act", [create_benchmark, preview])
def test_a_name_the_owner_does_not_see_is_missing(library, alice, act):
    more = {"name": "hers"} if act is create_benchmark else {}

    def refusal(labelled: str) -> str:
        with pytest.raises(MatrixError) as raised:
            act(library, matrix={"indexes": [labelled], "search_modes": WORDS}, owner=alice, **more)
        return raised.value.message.replace(labelled, "…")

    assert (
        refusal("trial")
        == refusal("nothing")
        == "indexes: 'library' has no ready index named '…'; choose one of keywords."
    )
    library.collection.indexes.filter(name="keywords").delete()
    assert refusal("trial") == refusal("nothing") == "The collection 'library' has no ready index: build one first."


def test_teams_choose_shared_indexes_and_overseers_all(library, trial, alice):
    team = Group.objects.create(name="search")
    alice.groups.add(team)
    assert newest(library, alice) == "keywords"
    Index.objects.filter(pk=trial.pk).update(team=team)
    assert newest(library, alice) == "trial"
    Index.objects.filter(pk=trial.pk).update(team=None)
    assert newest(library, alice) == "keywords"
    alice.user_permissions.add(Permission.objects.get(codename="view_all_index"))
    assert newest(library, User.objects.get(pk=alice.pk)) == "trial"


def test_default_owner_is_the_mapping_owner_or_all_staff(library, bob):
    assert newest(library) == "keywords"
    bob.is_active = False  # who left: his pipelines go on
    library.owner = bob
    assert newest(library) == "trial"
    library.owner = None
    library.collection.indexes.filter(name="keywords").update(status=Index.Status.FAILED)
    with pytest.raises(MatrixError, match=r"no ready index that the whole staff can see\. .*: give --owner"):
        newest(library)


def test_clones_and_manifests_use_indexes_visible_to_new_owner(library, alice, bob):
    his = run_benchmark(library, name="his", matrix={"indexes": ["trial"], "search_modes": WORDS}, owner=bob)
    with pytest.raises(CloneError, match=r"no ready index named 'trial'; choose one of keywords\.$"):
        clone(his, owner=alice)
    assert searched(clone(his, owner=bob)) == {"trial"}
    with pytest.raises(ManifestError, match='has no index like "trial"'):
        reproduce(build_manifest(his), owner=alice)
    assert searched(reproduce(build_manifest(his), owner=bob)) == {"trial"}
    Mapping.objects.filter(pk=library.pk).update(owner=bob)
    bob.is_active = False  # who left: his pipelines go on
    assert searched(reproduce(build_manifest(his), owner=bob)) == {"trial"}
    his.matrix = {"search_modes": WORDS}
    assert searched(clone(his, owner=alice)) == {"keywords"}


def test_command_finds_indexes_visible_to_its_owner(library, alice, bob):
    plan = ("preview_benchmark", "library", "--modes", "sparse")
    assert json_of(*plan, "--owner", "alice")["indexes"] == ["keywords"]
    assert json_of(*plan, "--owner", "bob")["indexes"] == ["trial"]
    assert json_of(*plan)["indexes"] == ["keywords"]
    for row in (library, library.collection, library.dataset):
        row.owner = bob
        row.save()
    assert json_of(*plan)["indexes"] == ["trial"]
    for requested, refused in (
        (plan, "The mapping 'library' was not found for alice; create one with"),
        (("build_index", "library", "--name", "hers"), "The collection 'library' was not found for alice"),
        (("import_run", "x.run", "--dataset", "questions"), "The dataset 'questions' was not found for alice"),
    ):
        with pytest.raises(CommandError, match=refused):
            json_of(*requested, "--owner", "alice")


def test_equal_index_is_reused_when_visible_to_the_owner(library, alice, bob):
    requests = (library.collection, Ingredients("flat", {}, "keyword:apple"))
    his = get_or_create_index(*requests, name="apples", owner=bob)
    assert get_or_create_index(*requests, name="apples", owner=bob) == his
    hers = get_or_create_index(*requests, name="apples", owner=alice)
    assert hers != his
    assert create_failed_index(*requests, name="apples", reason="Gone.", owner=alice) == hers
    assert get_or_create_index(*requests, name="apples") not in (hers, his)
    his.refresh_from_db()
    assert his.status == Index.Status.PENDING


def test_another_users_mapping_is_neither_used_nor_in_conflict(folder, alice, bob):
    planned = plan_experiment(write(folder))
    hers, his = (prepare_experiment(planned, owner=user).benchmark for user in (alice, bob))
    assert hers.mapping != his.mapping
    Mapping.objects.filter(pk=hers.mapping_id).update(owner=bob, name="his now")
    again = prepare_experiment(planned, owner=alice).benchmark
    assert again.mapping.owner == alice
    assert again.mapping.collection == hers.mapping.collection


ALL = ["dense", "sparse", "hybrid"]


@pytest.fixture
def three_indexes(db: None) -> Mapping:
    """A mapping with "keywords", of both sides; "words", without vectors; "vectors", without BM25."""
    mapping = make_library(documents=6, queries=2)
    for name, options in (("words", {"encoder": ""}), ("vectors", {"encoder": ENCODER, "lexical": False})):
        wait(build_index(create_index(mapping.collection, name=name, **options)))
    return mapping


@pytest.mark.parametrize(
    ("matrix", "modes"),
    [
        ({"indexes": ["keywords"]}, ALL),
        ({"indexes": ["words"]}, ["sparse"]),
        ({"indexes": ["vectors"]}, ["dense"]),
        ({"indexes": ["keywords", "words"]}, ["sparse"]),
        ({"indexes": ["vectors"], "lexical": ["fts"]}, ALL),
        ({"indexes": ["words"], "search_modes": ["dense"]}, ["dense"]),  # refused when the benchmark is made
        ({"indexes": ["gone"]}, None),
        ({"indexes": [["keywords"]]}, None),
        ({"indexes": 7}, None),
    ],
)
def test_default_modes_are_supported_by_all_indexes(three_indexes, matrix, modes):
    assert add_modes(three_indexes, matrix) == ({**matrix, "search_modes": modes} if modes else matrix)


def test_newest_index_is_the_latest_ready_current_one(three_indexes):
    assert add_modes(three_indexes, {})["search_modes"] == ["dense"]  # vectors
    Index.objects.filter(name="vectors").update(status=Index.Status.FAILED)
    assert add_modes(three_indexes, {})["search_modes"] == ["sparse"]  # words
    stale = Index.objects.get(name="words").chunk_set
    stale.pk, stale.fingerprint, stale.collection_fingerprint = uuid4(), "another", "of other documents"
    stale.save(force_insert=True)
    Index.objects.filter(name="words").update(chunk_set=stale)
    assert add_modes(three_indexes, {})["search_modes"] == ALL  # keywords


def test_indexes_without_a_common_mode_are_reported(three_indexes):
    with pytest.raises(MatrixError, match="the indexes vectors and words have no mode in common") as raised:
        add_modes(three_indexes, {"indexes": ["words", "vectors"]})
    assert raised.value.field == "search_modes"
