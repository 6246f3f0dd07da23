import json

import pytest
from django.core.management import CommandError, call_command

from apps.operations.models import Operation
from apps.retrieval.models import Index
from tests.retrieval.conftest import KEYWORDS

pytestmark = pytest.mark.django_db


def test_it_builds_and_waits(fruit, capsys):
    call_command("build_index", "fruit", "--name", "words", "--encoder", KEYWORDS, "--size", "5", "--wait", "--json")
    printed = json.loads(capsys.readouterr().out)
    index = Index.objects.get()
    assert (printed["index"], printed["status"]) == (str(index.pk), "ready")
    assert printed["stats"]["num_chunks"] == 7
    assert index.chunk_parameters == {"size": 5, "overlap": 0, "title": False}


def test_it_takes_a_strategy_with_its_parameters(fruit, capsys):
    stated = ["--strategy", "lod_embed", "--encoder", KEYWORDS, "--size", "5", "--overlap", "0", "--doc-top-k", "2"]
    call_command("build_index", "fruit", "--name", "lod", *stated)
    call_command("build_index", "fruit", "--name", "flat", "--size", "5", "--by-section")
    lod, flat = Index.objects.order_by("-name")
    assert lod.chunk_parameters == {"size": 5, "overlap": 0, "doc_top_k": 2, "section_top_k": 10}
    assert flat.chunk_parameters == {"size": 5, "overlap": 0, "title": False, "sections": True}


def test_without_waiting_it_leaves_the_work_to_a_worker(fruit, capsys):
    call_command("build_index", str(fruit.pk), "--name", "words")
    assert 'The index "words" is queued' in capsys.readouterr().out
    assert Operation.objects.get().status == "pending"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vegetables", "--name", "a"], "No collection is called 'vegetables'; there is fruit"),
        (["fruit", "--name", "a", "--no-lexical"], "would find nothing"),
        (["fruit", "--name", "a", "--overlap", "5"], "go with --size"),
        (["fruit", "--name", "a", "--size", "10", "--overlap", "5"], "less than half the size"),
        (["fruit", "--name", "a", "--doc-top-k", "5"], "go with --strategy lod_embed"),
        (["fruit", "--name", "a", "--strategy", "lod_embed"], "lod_embed goes by vectors; name an encoder"),
        (["fruit", "--name", "a", "--encoder", "nobody/nothing", "--wait"], "is not on this machine"),
    ],
)
def test_what_is_wrong_is_a_sentence(fruit, arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("build_index", *arguments)
