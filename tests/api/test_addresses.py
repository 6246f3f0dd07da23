"""What holds for every address of the API: how it is nested, what it lists, and its schema with examples."""

import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.api import urls
from apps.api.openapi import EXAMPLES
from apps.collections.models import Collection
from apps.datasets.models import Dataset, Judgment, Query
from apps.judging.models import Grade, Round
from apps.mappings.models import Mapping, Resolution
from apps.operations.models import Operation
from apps.records.models import Benchmark, Schedule
from apps.retrieval.models import Index
from tests.api.addresses import POSTS_THAT_READ, addresses
from tests.api.callers import MOST_QUERIES, ROOT, Caller, Callers
from tests.api.recording import CHECKED_IN, Walk
from tests.api.story import MODEL, STAND_IN, walk_everything
from tests.api.worlds import measured, world
from tests.benchmarks.gated import pinned
from tests.factories import (
    add_judgment,
    add_version,
    make_benchmark,
    make_collection,
    make_mapping,
    make_round,
    make_schedule,
)

OPEN = {"sign_in", "refresh", "sign_out", "schema"}  # the first three are for anyone who has no token yet
MAKE_NOTHING = {*POSTS_THAT_READ, "next_items"}  # the last renews what is held: an old answer would be out of date
WORKED_OUT = "/runs/{run_id}/triage/documents"  # has rows only where something was searched: see test_comparison.py
ROWS = 3


def test_every_address_is_in_the_matrix_or_known_open() -> None:
    labelled = {str(pattern.name) for pattern in urls.urlpatterns if pattern.name}
    assert labelled == {address.name for address in addresses()} | OPEN
    assert [pattern for pattern in urls.urlpatterns if not pattern.name] == [urls.urlpatterns[-1]], "a catch-all"


def test_nested_resource_is_not_found_under_another_parent(callers: Callers) -> None:
    one, second = (world(callers.owner.user, name) for name in ("one", "other"))
    tried = set()
    nested = [at for at in addresses() if len(at.parameters) > 1 and "number" not in at.parameters]
    for address in nested:  # a version has its number in every dataset
        for cut in range(1, len(address.parameters)):
            mixed = one | {name: second[name] for name in address.parameters[cut:]}
            for method in address.acts:
                answer = callers.owner.ask(method, address.path(mixed.__getitem__), {} if method != "GET" else None)
                assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), (address, method, cut)
                tried.add((address.name, method))
    assert len(tried) >= 20


def test_every_creating_post_accepts_an_idempotency_key() -> None:
    without = set()
    for pattern in urls.urlpatterns:
        post = getattr(pattern.callback, "actions", {}).get("post", "")
        if post and not getattr(getattr(pattern.callback.cls, post), "idempotent", False):
            without.add(post)
    assert without == (OPEN - {"schema"}) | MAKE_NOTHING


def test_lists_exclude_rows_of_other_owners(callers: Callers) -> None:
    crowded(callers.owner.user)
    roots = [path for path, _ in lists() if "{" not in path and "comparison" not in path]
    assert set(roots) == {
        "/benchmark-datasets",
        "/benchmarks",
        "/collections",
        "/judging-rounds",
        "/operations",
        "/schedules",
    }
    for path in roots:
        totals = [getattr(callers, name).get(path).json()["total"] for name in ("owner", "reader", "overseer", "other")]
        assert totals[0] >= ROWS, path
        assert totals == [totals[0]] * 3 + [0], path


def test_list_query_count_is_independent_of_size_and_filters(callers: Callers) -> None:
    values = crowded(callers.owner.user)
    first, second = values["run"]
    callers.owner.get("/collections")  # the first request of a token notes that it was used
    for path, filters in lists():
        needed = {"run": first, "baseline": second} if path.startswith("/comparison") else {}
        for narrowed in ({}, *filters):
            declared = needed | {name: values.get(name, value) for name, value in narrowed.items()}
            few, _ = measure_list(callers, path.format(**values), declared | {"per_page": 1})
            many, total = measure_list(callers, path.format(**values), declared | {"per_page": 100})
            assert many <= MOST_QUERIES, (path, declared, many)
            assert few == many or total <= 1, (path, declared, few, many)
            assert narrowed or path == WORKED_OUT or total >= ROWS, f"{path}: make {ROWS} of them in `crowded`."


def measure_list(callers: Callers, path: str, query: dict[str, Any]) -> tuple[int, int]:
    """Return how many queries a list took, and how many rows it has in all."""
    cache.clear()
    with CaptureQueriesContext(connection) as captured:
        answer = callers.owner.get(path, **query)
    assert answer.status_code == 200, (path, query, answer.content)
    return len(captured), answer.json()["total"]


def lists() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the path of each list of the schema, and each of its filters with a value: the first that may be chosen."""
    complete = yaml.load(CHECKED_IN.read_text(), yaml.CSafeLoader)
    for path, methods in complete["paths"].items():
        declared = {one["name"]: one for one in methods.get("get", {}).get("parameters", []) if one["in"] == "query"}
        if "per_page" in declared:
            filters = [
                one for name, one in declared.items() if name not in ("page", "per_page") and not one.get("required")
            ]
            yield path.removeprefix(ROOT), [{one["name"]: value} for one in filters for value in choices(one["schema"])]


def choices(schema: dict[str, Any]) -> list[Any]:
    """Return the values of a filter that are tried; of one that may be anything, a placeholder for a world's value."""
    if "enum" in schema:
        return schema["enum"]
    return ["true", "false"] if schema.get("type") == "boolean" else [""]


def crowded(owner: User) -> dict[str, Any]:
    """Return a world of the owner's, by parameter, in which every list has at least three rows."""
    User.objects.create_user("ada", is_staff=True, is_superuser=True)  # who approves baselines
    values, _ = measured()
    mapping = Mapping.objects.get(pk=values["mapping_id"])
    dataset, collection = mapping.dataset, mapping.collection
    query = Query.objects.get(pk=values["query_id"])
    benchmark = Benchmark.objects.get(pk=values["benchmark_id"])
    for number in range(ROWS):
        add_judgment(query, {"document_id": f"d2{number}"}, 1, since=2)
        lost = make_mapping(dataset, make_collection(f"shelf {number}"), name=f"on shelf {number}")
        index = Index.objects.create(collection=collection, name=f"index {number}", encoder="keyword:a")
        Operation.objects.create(kind="index", subject_id=index.pk)
        Dataset.objects.create(name=f"dataset {number}")
        make_benchmark(mapping, [0.5, None], name=f"benchmark {number}")
        pinned(benchmark.runs.get(run_order=1), f"of {number}")
        add_version(dataset)
        schedule = make_schedule(benchmark, repeats=ROWS)
        judged = make_round(benchmark.runs.get(run_order=1), judges=[owner], items=ROWS)
    for item in judged.items.all():
        row = {"judge": owner, "judge_name": owner.username, "graded_at": timezone.now()}
        Grade.objects.create(item=item, grade=1, **row)
    for model in (Collection, Dataset, Mapping, Benchmark, Index, Round, Schedule):
        model.objects.update(owner=owner)
    for judgment in Judgment.objects.filter(query__dataset=dataset, since=1)[:ROWS]:
        Resolution.objects.create(mapping=lost, judgment=judgment, outcome="ambiguous", key="document_id")
    filters = {
        "query_key": query.key,
        "external_id": "d1",
        "version": 1,
        "measure": "ndcg@10",
        "slice": "relevant documents: 1",
    }
    newest = {"mapping_id": str(lost.pk), "round_id": str(judged.pk), "schedule_id": str(schedule.pk)}
    return values | filters | newest | {"state": "open"}


MEDIA_TYPES = ("application/json", "multipart/form-data")


def test_schema_is_valid_and_matches_the_committed_file(tmp_path: Path) -> None:
    file = tmp_path / "openapi.yaml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True, stdout=io.StringIO())
    assert file.read_text() == CHECKED_IN.read_text(), (
        "The API changed: run `make openapi` and commit docs/openapi.yaml."
    )


def test_everything_has_an_example_and_every_example_is_one() -> None:
    import jsonschema  # which takes seconds

    complete = yaml.load(CHECKED_IN.read_text(), yaml.CSafeLoader)
    displayed = [("errors", answer) for answer in complete["components"]["responses"].values()]
    places = []
    for operation in (operation for path in complete["paths"].values() for operation in path.values()):
        name = operation["operationId"]
        displayed += [(name, operation.get("requestBody", {}))]
        displayed += [(name, answer) for status, answer in operation["responses"].items() if status < "300"]
        places += [(name, one) for one in operation.get("parameters", ()) if one.get("required") or "example" in one]
    for name, body in displayed:
        places += [(name, one) for media_type, one in body.get("content", {}).items() if media_type in MEDIA_TYPES]
    assert not [name for name, spot in places if "example" not in spot]
    for _, position in places:
        schema = position["schema"] | {"components": complete["components"]}
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        validator.validate(position["example"])


def test_it_is_served_to_staff(callers: Callers) -> None:
    answer = callers.reader.get("/schema")
    assert answer.status_code == 200
    assert answer.content.decode().startswith("openapi: 3.1.0")
    assert [caller.get("/schema").status_code for caller in (callers.anonymous, callers.visitor)] == [401, 403]


def test_the_page_to_try_it_needs_no_other_site(callers: Callers) -> None:
    client = Client()
    assert client.get("/api/docs/").status_code == 302
    client.force_login(callers.owner.user)
    page = client.get("/api/docs/").content.decode()
    assert "/static/drf_spectacular_sidecar/" in page
    assert "https://" not in page
    assert 'href="/admin/"' in page, "a way back"


def test_the_page_to_try_it_acts_in_its_session(callers: Callers) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(callers.owner.user)
    script = re.search(r'src="(/api/docs/[^"]+)"', client.get("/api/docs/").content.decode())
    assert script is not None
    header = re.search(r'request\.headers\["X-CSRFTOKEN"\] = "(\w+)"', client.get(script[1]).content.decode())
    assert header is not None
    answers = [
        client.post("/api/v2/benchmarks", {}, content_type="application/json", headers=headers)
        for headers in ({}, {"X-CSRFToken": header[1]})
    ]
    assert [answer.status_code for answer in answers] == [403, 400], "let in, with a body that lacks everything"


RECORD = "BENCHBENCH_RECORD_EXAMPLES"  # `make openapi` sets it: then they are written again


@pytest.mark.thorough
def test_examples_match_recorded_requests_and_responses(db: None) -> None:
    """Every operation is done once: none is without an example, and none has one that would be refused.

    Sentences and numbers of answers may be those of an older walk; keys and types may not.
    """
    walk = Walk(ada(), CHECKED_IN, words={STAND_IN: MODEL})
    walk_everything(walk)
    walked = walk.examples | {"errors": dict(sorted(walk.errors.items()))}
    if RECORD in os.environ:
        write(walked)
    stored = {file.stem: json.loads(file.read_text()) for file in EXAMPLES.glob("*.json")}
    drifted = sorted(name for name in stored | walked if lasting(stored.get(name)) != lasting(walked.get(name)))
    assert not drifted, f"{drifted}: run `make openapi` and commit what it writes; tests/api/story.py asks them."


def ada() -> Caller:
    """Return the caller of the story, in a database where numbers begin as they do each time."""
    with connection.cursor() as cursor:
        for table in ("auth_user", "datasets_query", "datasets_judgment", "judging_rounditem"):
            cursor.execute(f"ALTER SEQUENCE {table}_id_seq RESTART WITH 7")
    return Caller(User.objects.create_superuser("ada", password="correct horse battery staple"))


def write(walked: dict[str, Any]) -> None:
    for file in EXAMPLES.glob("*.json"):
        file.unlink()
    for name, example in walked.items():
        (EXAMPLES / f"{name}.json").write_text(json.dumps(example, indent=1, ensure_ascii=False) + "\n")


def lasting(example: Any) -> Any:
    """Return what was asked, and the shape of what was answered."""
    if example is None or "answered" not in example:
        return shape(example)
    return example | {"answered": shape(example["answered"])}


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def test_every_group_says_what_it_is_for() -> None:
    complete = yaml.load(CHECKED_IN.read_text(), yaml.CSafeLoader)
    used = {name for path in complete["paths"].values() for operation in path.values() for name in operation["tags"]}
    groups = {group["name"]: group["description"] for group in complete["tags"]}
    assert used == set(groups)
    assert all(re.fullmatch(r"[A-Z].{30,}\.", sentence) for sentence in groups.values()), groups


def test_page_of_the_api_begins_with_first_steps(admin_client: Client) -> None:
    page = admin_client.get("/api/docs/").text
    assert "http://testserver/api/v2/benchmark-datasets" in page
    assert (
        page.index("First steps")
        < page.index(reverse("admin:accounts_accesstoken_add"))
        < page.index('id="swagger-ui"')
    )
