"""Texts of commands that are longer than a column, or name options that do not exist."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class

from apps.collections.importing import create_collection
from apps.collections.models import Collection
from tests.commands import output_of
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.files.samples import write_file

LONG = "é" * 5000
OURS = [name for name, app in sorted(get_commands().items()) if str(app).startswith("apps.")]
ENDLESS = ("demo", "worker")  # whose texts are queues and no names
NO_TEXT = ("backup", "restore", "prune")


def list_texts(name: str) -> list[str]:
    """Return the options and arguments of a command that take any text, as they are given."""
    actions = load_command_class(get_commands()[name], name).create_parser("manage.py", name)._actions
    free = [action for action in actions if action.type in (None, str) and not action.choices and action.nargs != 0]
    ours = [action for action in free if action.dest not in ("help", "version", "settings", "pythonpath", "owner")]
    return [action.option_strings[-1] if action.option_strings else action.dest for action in ours]


def build_arguments(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return arguments with which each command would do its work."""
    write_file(folder / "corpus/corpus.jsonl", '{"_id": "d1", "text": "apple"}\n')
    write_file(folder / "corpus/queries.jsonl", '{"_id": "q1", "text": "apple"}\n')
    write_file(folder / "corpus/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    write_file(folder / "a.csv", "query_key,query_text,document_id,grade\nq1,apple,d1,1\n")
    write_file(folder / "a.run", "q1 Q0 d1 1 1 t\n")
    corpus = str(folder / "corpus")
    return {
        "build_index": ("library", "--name", "words", "--no-vectors"),
        "build_indexes": ("library", "--strategy", "flat"),
        "compare": ("nightly:1", "nightly:2"),
        "export_dataset": ("questions", "--format", "beir", "--output", str(folder / "out")),
        "export_results": ("nightly", "--format", "csv", "--output", str(folder / "out.csv")),
        "gate": ("nightly", "--rules", str(write_file(folder / "rules.yaml", "floors: {mrr: 0}\n"))),
        "import_beir": (corpus, "--name", "beir", "--no-vectors"),
        "import_collection": (corpus, "--name", "fruit"),
        "import_dataset": (str(folder / "a.csv"),),
        "import_run": (str(folder / "a.run"), "--dataset", "questions"),
        "rescore": ("nightly",),
        "resolve_mapping": ("library",),
        "preview_benchmark": ("library",),
        "preview_experiment": (str(folder / "none.yaml"),),
        "reproduce": (str(folder / "none.yaml"),),
        "run_benchmark": ("library",),
        "run_experiment": (str(folder / "none.yaml"),),
        "serve": ("127.0.0.1:8000",),
        "try_engine": ("shop", "apple"),
    }


@pytest.fixture
def folder(tmp_path: Path, transactional_db: None) -> Path:
    (tmp_path / "corpus/qrels").mkdir(parents=True)
    dataset, collection = (
        make_dataset({"q1": [({"document_id": "d1"}, 1)]}),
        make_collection("library", [{"title": "apple"}]),
    )
    make_benchmark(make_mapping(dataset, collection), [0.5, 0.6], name="nightly")
    return tmp_path


CASES = [(name, option) for name in OURS if name not in (*ENDLESS, *NO_TEXT) for option in list_texts(name)]


@pytest.mark.parametrize(("name", "option"), CASES)
def test_a_long_text_ends_in_a_sentence(folder, name, option):
    arguments = list(build_arguments(folder)[name])
    if not option.startswith("-"):
        index = list_positions(name).index(option)
        arguments[index] = LONG
    elif option in arguments:
        arguments[arguments.index(option) + 1] = LONG
    else:
        arguments += [option, LONG]
    with contextlib.suppress(CommandError):  # any other error is a traceback
        call_command(name, *arguments)


PATHS = ("import_dataset", "import_collection", "import_beir", "import_run", "backup", "restore")


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("path", ["x" * 300, f"{'x/' * 3000}y"])
def test_a_path_that_cannot_be_ends_in_a_sentence(folder, name, path):
    with pytest.raises(CommandError):
        call_command(name, path, *build_arguments(folder).get(name, ("",))[1:])


def list_positions(name: str) -> list[str]:
    actions = load_command_class(get_commands()[name], name).create_parser("manage.py", name)._actions
    return [action.dest for action in actions if not action.option_strings]


WRITERS: dict[str, Callable[[Path, Path], Any]] = {
    "backup": lambda folder, path: call_command("backup", str(path)),
    "export_results": lambda folder, path: call_command(
        "export_results", "nightly", format="csv", output=path, verbosity=0
    ),
    "export_dataset": lambda folder, path: call_command(
        "export_dataset", "questions", format="benchbench-json", output=path
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_remedies_for_existing_files_exist(folder, name):
    path = folder / "there"
    path.write_text("")
    with pytest.raises(CommandError, match="exists already") as refused:
        WRITERS[name](folder, path)
    options = re.findall(r"--[a-z-]+", str(refused.value))
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    assert options == ["--force"]
    assert {*options} <= {string for action in parser._actions for string in action.option_strings}


def test_indexes_are_encoded_by_the_default_model(transactional_db, settings):
    settings.BENCHBENCH_DEFAULT_MODEL = "keyword:apple,pear"
    collection = make_collection("library", [{"title": "apple"}])
    output_of("build_index", "library", "--name", "words", "--wait", "--no-vectors")
    output_of("build_index", "library", "--name", "vectors", "--wait")
    encoders = collection.indexes.order_by("created_at").values_list("encoder", flat=True)
    assert list(encoders) == ["", "keyword:apple,pear"]


def test_names_are_checked_where_they_are_made(db):
    with pytest.raises(Exception, match="at most 200 characters"):
        create_collection("x" * 201)
    assert not Collection.objects.exists()
