"""What holds for the whole checkout, and migrations that old code survives."""

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

from benchbench.environment import SECRETS
from tests.checkout import CHECKOUT, own_models
from tests.pages import UNNAMED, unnamed

HEAVY = "bm25s chromadb ir_datasets ir_measures scipy sentence_transformers torch transformers"

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import django
django.setup()
import apps, benchbench
for package in (apps, benchbench):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.thorough
def test_modules_import_heavy_libraries_lazily():
    """Every command and worker would pay its seconds and its memory; a web process pays for SciPy at its start."""
    single_sign_on = {"ISSUER": "https://sign-in.example", "CLIENT_ID": "benchbench", "CLIENT_SECRET": "secret"}
    env = os.environ | {f"BENCHBENCH_OIDC_{name}": value for name, value in single_sign_on.items()}
    command = [sys.executable, "-c", IMPORT_EVERYTHING]
    process = subprocess.run(command, cwd=CHECKOUT, env=env, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    imported = set(process.stdout.split())
    assert {"apps", "benchbench", "django"} <= imported
    assert not imported & set(HEAVY.split())


def test_a_view_without_a_name_is_known():
    assert set(unnamed()) == set(UNNAMED)


@pytest.mark.django_db
def test_the_migrations_match_the_models():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


SETTING_PATTERNS = {
    ".env.example": r"^#? ?([A-Z_]+)=(.*)$",
    "docs/configuration.md": r"^\| `([A-Z_]+)` \| *`?([^|`]*)`? *\|",
}
OF_COMPOSE = {*(f"{name}_FILE" for name in SECRETS), "SERVICES_ADDRESS"}
EXAMPLES = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY"} | OF_COMPOSE  # what is there is not a default
PRINT_SETTINGS = """
from benchbench import settings
print({name: value for name, value in vars(settings).items() if name.isupper() and name not in ("DATABASES", "UNFOLD")})
"""


def documented_settings(file):
    """Return every variable that a file describes, with the default that it states."""
    return {
        name: value.strip()
        for name, value in re.findall(SETTING_PATTERNS[file], (CHECKOUT / file).read_text(), re.MULTILINE)
    }


@pytest.mark.parametrize("file", SETTING_PATTERNS)
def test_every_setting_is_described_and_nothing_else(file):
    read = set()
    for module in (CHECKOUT / "benchbench").rglob("*.py"):
        read |= set(re.findall(r'(?:env_\w+|environ\.get|environ)[(\[]"([A-Z_]+)"', module.read_text()))
    assert "BENCHBENCH_DATA_DIR" in read
    assert read - {"DJANGO_SETTINGS_MODULE"} == set(documented_settings(file)) - OF_COMPOSE


def test_no_room_reads_the_environment_past_the_settings():
    modules = [path for path in (CHECKOUT / "apps").rglob("*.py") if "environ" in path.read_text()]
    assert [path for path in modules if re.search(r"^import os$|os\.environ\[", path.read_text(), re.MULTILINE)] == []


def test_defaults_are_those_that_are_described():
    defaults = {
        name: value for name, value in documented_settings(".env.example").items() if value and name not in EXAMPLES
    }
    in_docs = {
        name: value
        for name, value in documented_settings("docs/configuration.md").items()
        if value and name not in EXAMPLES
    }
    assert defaults == in_docs
    recognised = set(defaults) | EXAMPLES | {"DJANGO_SETTINGS_MODULE"}
    bare = {name: value for name, value in os.environ.items() if name not in recognised}
    answers = [
        subprocess.run(
            [sys.executable, "-c", PRINT_SETTINGS], cwd=CHECKOUT, env=environment, capture_output=True, text=True
        )
        for environment in (bare, bare | defaults)
    ]
    assert answers[0].returncode == 0, answers[0].stderr
    assert answers[0].stdout == answers[1].stdout


TARGETS = "demo test thorough faults fuzz install run worker lint openapi screenshots perf clean"


def test_make_without_a_target_lists_the_targets():
    listed = subprocess.run(["make"], cwd=CHECKOUT, env=os.environ, capture_output=True, text=True, check=True).stdout
    for target in TARGETS.split():
        assert f"make {target} " in listed


def test_every_fuzzing_module_is_marked_for_make_fuzz():
    modules = {path.relative_to(CHECKOUT): path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py")}
    drawing = re.compile(r"^from tests\.damages import|environ.*BENCHBENCH_FUZZ_", re.MULTILINE)
    fuzzers = {path for path, text in modules.items() if drawing.search(text)}
    assert Path("tests/files/test_fuzzing.py") in fuzzers
    assert {str(path) for path in fuzzers if "mark.fuzz" not in modules[path]} == set()


@functools.cache
def parse(module):
    return ast.parse(module.read_text())


@functools.cache
def folders():
    """Return the modules of every package but those of migrations, `__init__` left out."""
    modules = [module for room in ("apps", "benchbench") for module in (CHECKOUT / room).rglob("*.py")]
    hits = {}
    for module in modules:
        if "migrations" not in module.parts and module.stem != "__init__":
            hits.setdefault(module.parent, []).append(module)
    return hits


def test_folders_modules_and_functions_keep_their_limits():
    too_long = []
    for module in (module for locked in folders().values() for module in locked):
        text = module.read_text()
        if text.count("\n") > 300:
            too_long.append(str(module.relative_to(CHECKOUT)))
        for node in ast.walk(parse(module)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and code_lines(node) > 40:
                too_long.append(f"{module.relative_to(CHECKOUT)}: {node.name}")
    assert too_long == []
    assert {
        str(folder.relative_to(CHECKOUT)): len(claimed) for folder, claimed in folders().items() if len(claimed) > 20
    } == {}


def test_few_values_may_be_anything():
    modules = [module for room in ("apps", "benchbench") for module in (CHECKOUT / room).rglob("*.py")]
    assert sum(len(re.findall(r"\bAny\b", module.read_text())) for module in modules) <= 1500


def code_lines(function):
    """Return the lines of a function's body without those of its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_every_module_docstring_starts_with_a_noun():
    silent = []
    for folder, claimed in folders().items():
        for module in (*claimed, folder / "__init__.py"):
            recognised = module.name in ("apps.py", "__main__.py", "urls.py") or "management" in module.parts
            if module.exists() and not recognised and ast.get_docstring(parse(module)) is None:
                silent.append(str(module.relative_to(CHECKOUT)))
    assert silent == []
    asking = []
    for room in ("apps", "benchbench"):
        for module in (CHECKOUT / room).rglob("*.py"):
            words = (ast.get_docstring(parse(module)) or "Nothing").split()
            if words[0] in ("What", "Who", "How", "Which", "Whether", "Where", "When", "In", "At", "On", "From", "To"):
                asking.append(str(module.relative_to(CHECKOUT)))
    assert asking == []


def test_wheel_has_what_its_modules_import():
    included = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["only-include"]
    packed = {path for name in included for path in [CHECKOUT / name, *(CHECKOUT / name).rglob("*.py")]}
    lacking = set()
    for module in (path for path in packed if path.suffix == ".py"):
        for node in parse(module).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchbench."):
                imported = CHECKOUT / node.module.replace(".", "/")
                if not {imported / "__init__.py", imported.with_suffix(".py")} & packed:
                    lacking.add(f"{module.relative_to(CHECKOUT)} imports {node.module}")
    assert lacking == set()


def find_modules(pattern: str, *folders: str) -> set[str]:
    """Return the files of these folders, by default the rooms, whose text has the pattern."""
    paths = [path for folder in folders or ("apps",) for path in (CHECKOUT / folder).rglob("*.*")]
    sources = [path for path in paths if path.suffix in (".py", ".html")]
    return {str(path.relative_to(CHECKOUT)) for path in sources if re.search(pattern, path.read_text())}


def test_configurations_of_runs_are_read_as_records():
    """Exports list all keys a stored one has; an answer of the API has no record."""
    complete = {"apps/results/exporters/tables.py", "apps/results/exporters/strategy.py"}
    answers = {"apps/demo/management/commands/demo.py"}
    by_key = find_modules(r"\brun\.config(\.get\(|\[)|Configuration\.from_dict\(\S*run\S*\.config")
    assert by_key == complete | answers


def test_times_and_provenance_of_runs_are_read_as_records():
    """Other modules pass the whole JSON on, or read `Run.times` and `Run.lineage`."""
    by_key = find_modules(
        r"\.(timing|provenance)\b(\.(?!(per_query|list_prunings|Timed)\b)\w+|\[|\|stage)|in \w+\.(timing|provenance)\b",
        *("apps", "perf", "templates"),
    )
    assert by_key == set()


def test_batches_are_read_as_records():
    assert find_modules(r"\bbatch\.(payload|result)(\[|\.get\()") == set()


def test_parameters_of_operations_are_read_as_records():
    assert find_modules(r"\boperation\.parameters(\[|\.get\()") == set()


def test_documentation_lines_are_under_160_characters():
    pages = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").glob("*.md")]
    lines = [(page.name, line) for page in pages for line in page.read_text().splitlines()]
    assert [f"{name}: {line[:60]}" for name, line in lines if len(line) >= 160] == []


def test_templates_have_no_inline_handlers():
    """The content security policy refuses them."""
    inline = re.compile(r"<[^>]*\son[a-z]+=")
    pages = [*(CHECKOUT / "templates").rglob("*.html")]
    assert [page.name for page in pages if inline.search(page.read_text())] == []


def test_templates_keep_lines_short_and_sentences_whole():
    """The formatter breaks a line after an `{% endif %}`: a comma after it would then follow a space on the page."""
    lines = [
        (page, line) for page in (CHECKOUT / "templates").rglob("*.html") for line in page.read_text().splitlines()
    ]
    assert [f"{page.name}: {line.strip()[:60]}" for page, line in lines if len(line) > 160] == []
    torn = re.compile(r"\s*(?:{%[^%]*%})?[,;.)]\s")
    assert [f"{page.name}: {line.strip()[:60]}" for page, line in lines if torn.match(line)] == []


def test_helpers_are_imported_from_plain_modules():
    """A test or a conftest.py is nothing to import from: pytest would run it twice, and others could not find it."""
    sources = find_modules(r"(?m)^\s*from (?:tests\.[\w.]*(?:\btest_\w+|\bconftest) import|\.)", "tests", "perf")
    assert sources - {"perf/upgrading.py"} == set(), "which opens an earlier version too"


PRIVATE_PATCHES = (
    r'(?:setattr|delattr|setitem|patch\.object)\(\s*(?:"?[\w.]*\._[a-z]|[\w.()"]+,\s*"_[a-z])',
    r'\bpatch\(\s*"[^"]*\._[a-z]',
    r"(?:^|\n) *(?!self\b|cls\b)\w+(?:\.\w+)*\._[a-z]\w* = ",
)


def test_tests_patch_public_names():
    """A test that replaces a private name holds how something works, not what comes of it."""
    patching = find_modules("|".join(f"(?:{pattern})" for pattern in PRIVATE_PATCHES), "tests", "perf")
    assert patching - {"tests/test_house.py"} == {"tests/conftest.py"}, "which replaces how Django empties tables"


@pytest.mark.parametrize(
    "text",
    [
        'monkeypatch.setattr(exact, "_scan", scan)',
        'monkeypatch.setattr(watchdog._watch, "board", board)',
        'monkeypatch.setattr(\n    "apps.retrieval._scan", scan)',
        'patch("apps.retrieval._scan")',
        'patch.object(exact, "_scan")',
        "lease._checked_at = 0",
    ],
)
def test_patches_of_private_names_are_found(text):
    assert any(re.search(pattern, text) for pattern in PRIVATE_PATCHES)
    assert not any(re.search(pattern, text.replace("_scan", "scan").replace("._", ".")) for pattern in PRIVATE_PATCHES)


# Migrations that do something to look at, and why code that does not know them goes on.
LOOKED_AT = {
    "accounts.0005_views_without_owner": "The code before stores no view without an owner, and shows one of a team.",
    "benchmarks.0011_searched_states": "It fills only the new column, which the code before does not read.",
    "mappings.0004_outcome_labels": "It only words choices, which changes no column.",
    "mappings.0003_searched_states": "The code before stores a judgment once, for every state.",
    "retrieval.0002_chunk_set_index": "It only drops an index, which the constraint on positions makes superfluous.",
    "retrieval.0006_untuned_postings": "Only workers read pieces, and wait; an index they store meanwhile is refused.",
    "retrieval.0010_stored_postings": "It changes no rows, and the code before reads pieces of either kind.",
    "datasets.0002_query_weight": "The code before writes no weight, and the column's default is 1.",
    "datasets.0005_source_words": "It only words a choice, which changes no column.",
    "benchmarks.0004_rate": "It writes no rate, so the constraint always holds.",
    "benchmarks.0007_rate_axis": "It keeps the column, which is null without a rate.",
    "benchmarks.0009_list_statistics": "It changes no rows and no columns.",
    "benchmarks.0010_orderings": "It lengthens a text that the code before only reads and cuts.",
    "benchmarks.0014_identity": "It writes neither policy, and the columns' defaults fit the constraint.",
    "benchmarks.0015_preparations": "It fills only the new table, which the code before does not read.",
    "benchmarks.0005_weighting": 'It writes no weighting, and the column\'s default is "equal".',
}
TAKES_AWAY = (
    migrations.RemoveField,
    migrations.RenameField,
    migrations.DeleteModel,
    migrations.RenameModel,
    migrations.AlterModelTable,
)
GOES_ON = (
    migrations.CreateModel,
    migrations.AddIndex,
    migrations.RemoveIndex,
    migrations.RemoveConstraint,
    migrations.AlterModelOptions,
    migrations.AlterModelManagers,
)


def breaks(operation, migration=""):
    """Say why code that does not know an operation of a migration cannot go on after it; "" where it can."""
    if isinstance(operation, TAKES_AWAY):
        return "takes away what the code before still reads: stop using it in one version, and remove it in the next"
    if isinstance(operation, migrations.AddField):
        field = operation.field
        if not (field.null or field.many_to_many or field.generated or field.db_default is not NOT_PROVIDED):
            return "adds a column that the code before cannot fill: give it db_default, or let it be null"
        return ""
    if isinstance(operation, GOES_ON) or migration in LOOKED_AT:
        return ""
    return f"does {type(operation).__name__}: see what the code before writes and reads, and say so in LOOKED_AT"


def test_no_migration_breaks_the_code_before():
    loader = MigrationLoader(None)
    hits = {
        f"{app}.{name}": reason
        for (app, name), migration in loader.disk_migrations.items()
        if f"apps.{app}" in settings.INSTALLED_APPS and name > "0001_initial"
        for operation in migration.operations
        if (reason := breaks(operation, f"{app}.{name}"))
    }
    assert hits == {}
    recognised = {f"{app}.{name}" for app, name in loader.disk_migrations}
    assert LOOKED_AT.keys() <= recognised


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (migrations.AddField("batch", "place", models.IntegerField(default=0)), "give it db_default"),
        (migrations.AddField("batch", "place", models.IntegerField(db_default=0)), ""),
        (migrations.AddField("batch", "place", models.IntegerField(null=True)), ""),
        (migrations.RenameField("batch", "place", "rank"), "remove it in the next"),
        (migrations.RemoveField("batch", "place"), "remove it in the next"),
        (migrations.AlterModelTable("batch", "batches"), "remove it in the next"),
        (migrations.AddIndex("batch", models.Index(fields=["state"], name="state")), ""),
        (migrations.RemoveConstraint("batch", "state"), ""),
        (migrations.AlterField("batch", "place", models.IntegerField(null=True)), "does AlterField"),
        (migrations.AddConstraint("batch", models.UniqueConstraint(fields=["place"], name="p")), "does AddConstraint"),
        (migrations.AlterUniqueTogether("batch", {("place", "state")}), "does AlterUniqueTogether"),
        (migrations.RunSQL("ALTER TABLE batch DROP place"), "say so in LOOKED_AT"),
        (migrations.RunPython(migrations.RunPython.noop), "does RunPython"),
        (migrations.SeparateDatabaseAndState(), "does SeparateDatabaseAndState"),
    ],
)
def test_breaking_migrations_are_detected(operation, message):
    assert message in breaks(operation)
    assert bool(breaks(operation)) == bool(message)


def test_reviewed_migrations_may_still_not_remove_fields(monkeypatch):
    monkeypatch.setitem(LOOKED_AT, "benchmarks.0002_seen", "selects, and changes nothing")
    assert not breaks(migrations.RunSQL("SELECT 1"), "benchmarks.0002_seen")
    assert breaks(migrations.RunSQL("SELECT 1"), "benchmarks.0003_unseen")
    assert breaks(migrations.RemoveField("batch", "place"), "benchmarks.0002_seen")


def test_default_orderings_read_their_own_table():
    """A relation's name in an ordering joins its table, and those of its own default ordering."""
    joining = {
        f"{model._meta.label}: {name}"
        for model in own_models()
        for name in map(str, model._meta.ordering)
        if "__" in name or name.lstrip("-") in {field.name for field in model._meta.fields if field.is_relation}
    }
    assert joining == set()


def test_orderings_in_code_name_columns():
    relations = {field.name for model in own_models() for field in model._meta.fields if field.is_relation}
    hits = []
    for module in (CHECKOUT / "apps").rglob("*.py"):
        for call in (node for node in ast.walk(parse(module)) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("order_by", "distinct"):
                names = {
                    str(supplied.value).lstrip("-") for supplied in call.args if isinstance(supplied, ast.Constant)
                }
                hits += [f"{module.relative_to(CHECKOUT)}: {name}" for name in names & relations]
    assert hits == []


# Where each text that is not a hash or a choice is kept within its column: at its use case, which names the field.
BOUNDED = {
    "benchmarks.Preparation.question": "names of the code",
    "operations.Operation.queue": "names of the settings",
    "operations.Batch.lease_owner": "leasing.name_process",
    "operations.Batch.backup_owner": "leasing.name_process",
    "collections.Collection.name": "names.check_name",
    "collections.Document.external_id": "collections.records",
    "collections.Document.uri": "collections.records",
    "collections.Document.file_name": "collections.records",
    "collections.Section.section_id": "collections.records",
    "retrieval.ChunkSet.strategy": "names of the registry",
    "retrieval.LexicalIndex.engine": "names of the code",
    "retrieval.Index.name": "names.check_name",
    "retrieval.Index.strategy": "names of the registry",
    "retrieval.Index.encoder": "indexing",
    "retrieval.Index.precision": "indexing.require_parameters",
    "retrieval.Index.encoder_revision": "model_files.read_revision, a commit or a hash",
    "retrieval.Index.vector_source": "a hash",
    "retrieval.Index.llm": "indexing",
    "retrieval.LLMAnswer.provider": "servers.load_servers",
    "retrieval.LLMAnswer.model": "indexing, judging.llm.launching",
    "retrieval.LLMAnswer.revision": "asking.REVISION_LENGTH",
    "retrieval.VectorSpace.encoder": "indexing",
    "retrieval.VectorSpace.revision": "model_files.read_revision",
    "engines.EngineAnswer.engine": "engines.declarations",
    "engines.EngineAnswer.version": "engines.declarations",
    "datasets.Dataset.name": "datasets.records",
    "datasets.Dataset.schema_version": "formats.schema1",
    "datasets.Dataset.source_format": "names of the registry",
    "datasets.DatasetVersion.label": "datasets.records",
    "datasets.Query.key": "datasets.records",
    "datasets.Query.slices": "datasets.records",
    "datasets.Query.category": "datasets.records",
    "datasets.Query.difficulty": "datasets.records",
    "datasets.Query.query_type": "datasets.records",
    "datasets.Query.split": "datasets.records",
    "datasets.Judgment.judge": "datasets.records, judging.closing",
    "mappings.Mapping.name": "names.check_name",
    "mappings.Resolution.key": "names of the code",
    "benchmarks.ListSource.key": "stages.name_stage",
    "benchmarks.PairList.reranker": "reranker names of the matrix",
    "benchmarks.PairList.revision": "model_files.read_revision, after an encoder",
    "benchmarks.RerankerRevision.model": "reranker names of the matrix",
    "benchmarks.RerankerRevision.revision": "model_files.read_revision, after an encoder",
    "collections.FormerDocument.uri": "copied from Document",
    "collections.FormerDocument.file_name": "copied from Document",
    "benchmarks.Benchmark.name": "names.check_name",
    "benchmarks.Benchmark.tags": "creating.BenchmarkOptions.check; selected.TagForm",
    "datasets.Dataset.tags": "selected.TagForm, and the form of a dataset",
    "benchmarks.Benchmark.measures": "measuring.measures.MAX_NAME_LENGTH",
    "benchmarks.BatchValues.measures": "measuring.measures.MAX_NAME_LENGTH",
    "benchmarks.Evaluation.measures": "measuring.measures.MAX_NAME_LENGTH",
    "benchmarks.RoundVerdict.name": "copied from Round",
    "benchmarks.RoundVerdict.measure": "copied from Round",
    "benchmarks.Baseline.name": "gates.baselines.approve",
    "benchmarks.Schedule.name": "forms and the API",
    "benchmarks.Schedule.cron": "forms and the API",
    "benchmarks.Schedule.baseline": "forms and the API",
    "benchmarks.Schedule.notify": "schedules.saving: a declared name",
    "benchmarks.Notice.destination": "Schedule.notify",
    "judging.Round.name": "judging.opening",
    "judging.Round.measure": "measuring.measures.MAX_NAME_LENGTH",
    "judging.Grade.judge_name": "LLMJudge.name, or a user name",
    "judging.LLMJudge.name": "llm.launching.LONGEST_NAME with two cut hashes",
    "judging.LLMJudge.llm": "llm.launching.LONGEST_NAME",
    "judging.LLMJudge.revision": "asking.REVISION_LENGTH",
    "judging.LLMJudge.prompt_version": "a number of the code",
    "accounts.AccessToken.name": "accounts.tokens",
    "accounts.Deletion.kind": "labels of models",
    "accounts.Deletion.name": "cut",
    "accounts.Deletion.tables": "names of tables",
    "accounts.Deletion.renamed": "names of tables",
    "accounts.AccessToken.hint": "cut",
    "accounts.SavedView.listed": "the label of a model",
    "accounts.SavedView.name": "accounts.saving",
    "accounts.SavedView.query": "accounts.saving",
    "api.StoredAnswer.path": "cut",
    "api.StoredAnswer.key": "idempotency.KEY",
}


def test_every_bounded_text_is_checked_before_it_is_stored():
    bounded = {
        f"{model._meta.label}.{field.name}"
        for model in own_models()
        for field in model._meta.local_fields
        for text in [getattr(field, "base_field", field)]
        if isinstance(text, models.CharField) and not field.choices and text.max_length != 64
    }
    assert bounded == BOUNDED.keys()


def test_drawn_values_have_the_names_of_parameters():
    """A rename of one of the two breaks a test that the default suite does not run."""
    wrong = []
    for path in sorted((CHECKOUT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            parameters = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
            drawn = [one for one in node.decorator_list if isinstance(one, ast.Call)]
            keys = [key.arg for one in drawn if ast.unparse(one.func) in ("rule", "given") for key in one.keywords]
            wrong += [f"{path.name}: {node.name}: {key}" for key in keys if key not in parameters]
    assert wrong == []
