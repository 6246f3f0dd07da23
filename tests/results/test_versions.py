"""Which dataset version's values a benchmark's page shows, and what brings new ones about."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.benchmarks.models import Benchmark, Evaluation
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from apps.results.templatetags.benchbench import signed
from benchbench.reading import strict_yaml
from benchbench.site.panels import change_url
from tests.admin.test_acts import messages_of, press
from tests.benchmarks.conftest import make_library
from tests.benchmarks.test_rescoring import freeze_and_resolve, turn
from tests.created import run_benchmark
from tests.drafts import set_judgment
from tests.factories import make_benchmark
from tests.kept import made_once
from tests.results.test_pages import results_url, text_of


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    return make_finished()


@made_once
def make_finished() -> Benchmark:
    mapping = make_library(documents=20, queries=6)
    matrix = {"search_modes": ["dense", "sparse"], "k_values_for_metrics": [5, 10]}
    return run_benchmark(mapping, name="Which mode?", matrix=matrix)


def test_the_reader_re_scores_and_chooses_whose_values_to_see(admin_client: Client, finished: Benchmark) -> None:
    assert "Re-score" not in text_of(admin_client.get(results_url(finished)))
    turn(finished, queries=3)
    version = freeze_and_resolve(finished.mapping)
    before = text_of(admin_client.get(results_url(finished)))
    assert "Re-score on v2" in before
    assert "values on" not in before

    response = press(admin_client, finished, "rescore_selected", next=results_url(finished))
    assert "Measured 2 runs on questions v2; nothing was searched." in messages_of(response)
    assert response.redirect_chain[-1][0] == f"{results_url(finished)}?version=2"
    own = admin_client.get(results_url(finished))
    assert "values on v1 v2" in text_of(own)
    assert "Re-score" not in text_of(own), "it is done"
    assert "These are values on" not in text_of(own), "its own version is shown until another is chosen"
    other = admin_client.get(results_url(finished), {"version": "2", "k": "5"})
    assert "These are values on questions v2, measured from the rankings for questions v1" in text_of(other)
    values = {one.run_id: one.means for one in Evaluation.objects.filter(dataset_version=version)}
    assert [row["row"].values for row in other.context["rows"]] == sorted(
        values.values(), key=lambda means: -means["nDCG@10"]
    )
    page = other.content.decode()
    assert "live/?k=5&amp;version=2" in page
    assert "version=2&amp;k=10" in page, "the cutoff keeps the version"
    for nonsense in ("7", "x", "-1"):
        refused = admin_client.get(results_url(finished), {"version": nonsense})
        assert refused.status_code == 404
        assert "versions with values: 1, 2." in refused.content.decode()
    cut = admin_client.get(results_url(finished), {"k": "7"})
    assert cut.status_code == 404
    assert "has no values at k = 7; there are k = 5, 10." in cut.content.decode()


def test_a_re_scored_benchmark_shows_what_moved(admin_client: Client, finished: Benchmark) -> None:
    turn(finished, queries=3)
    second = freeze_and_resolve(finished.mapping)
    press(admin_client, finished, "rescore_selected")
    values = {
        (one.run.config["search_mode"], one.dataset_version.number): one.means["nDCG@10"]
        for one in Evaluation.objects.select_related("run", "dataset_version")
    }
    page = admin_client.get(results_url(finished), {"version": "2"})
    moved = page.context["moved"]
    assert (moved.before, moved.version, moved.changes.changed) == (finished.dataset_version, second, 3)
    told = {row.run.config["search_mode"]: row for row in moved.runs}
    for mode, row in told.items():
        assert (row.before, row.now) == (values[mode, 1], values[mode, 2])
        assert row.change == values[mode, 2] - values[mode, 1]
    assert told["dense"].change < 0
    ranks = [sorted(told, key=lambda mode: -values[mode, number]) for number in (1, 2)]
    assert {mode: (row.rank_before, row.rank) for mode, row in told.items()} == {
        mode: tuple(order.index(mode) + 1 for order in ranks) for mode in told
    }
    text = text_of(page)
    assert "differ by 3 changes: 3 judgments changed" in text
    assert signed(told["dense"].change) in text
    assert admin_client.get(results_url(finished)).context["moved"] is None, "its own version was searched"

    set_judgment(finished.mapping.dataset, "q000", {"document_id": "d019"}, 3)
    freeze_and_resolve(finished.mapping)
    response = press(admin_client, finished, "rescore_selected")
    assert response.redirect_chain[-1][0] == f"{results_url(finished)}?version=3"
    assert (response.context["moved"].before, response.context["moved"].changes.total) == (second, 1)


def test_what_cannot_be_re_scored_says_why(admin_client: Client, finished: Benchmark) -> None:
    turn(finished)
    freeze_and_resolve(finished.mapping)
    Mapping.objects.update(dataset_version=finished.dataset_version)
    response = press(admin_client, finished, "rescore_selected", next=results_url(finished))
    assert "is newer: resolve it again" in messages_of(response)
    page = response.content.decode()
    assert f'href="{change_url(finished.mapping)}">' in page[page.index("bb-buttons") :]
    assert "Resolve the mapping for v2" in page
    assert "Re-score on" not in page
    resolve(finished.mapping)
    assert "Re-score on v2" in text_of(admin_client.get(results_url(finished)))
    press(admin_client, finished, "rescore_selected")
    resolve(finished.mapping)
    assert "Re-score on v2" in text_of(admin_client.get(results_url(finished))), "what it was measured on is replaced"
    press(admin_client, finished, "rescore_selected")
    assert "Re-score on v2" not in text_of(admin_client.get(results_url(finished))), "and it is measured on that"


def test_a_manifest_goes_out_and_comes_back(admin_client: Client, finished: Benchmark) -> None:
    page = admin_client.get(results_url(finished)).content.decode()
    url = reverse("admin:benchmark_manifest", args=[finished.pk])
    assert url in page
    response = admin_client.get(url)
    assert response["Content-Disposition"] == 'attachment; filename="which-mode.experiment.yaml"'
    manifest = strict_yaml.parse(response.text, where="experiment.yaml")

    second = upload(admin_client, manifest)
    assert second.status == "running"
    assert "Reproduces" not in text_of(admin_client.get(results_url(second)))
    wait(second.operation)
    shown = admin_client.get(results_url(second))
    assert "Reproduces every figure of “Which mode?”: 22 means in 2 runs" in text_of(shown)
    assert 'data-reproduces="true"' in shown.content.decode()

    manifest["runs"][0]["result"]["means"]["RR"] = 0.125
    third = upload(admin_client, manifest)
    wait(third.operation)
    shown = text_of(admin_client.get(results_url(third)))
    assert "Differs from “Which mode?” in 1 of its 2 runs." in shown
    assert "RR was 0.125, is" in shown


def upload(client: Client, manifest: Any) -> Benchmark:
    file = SimpleUploadedFile("m.yaml", strict_yaml.dump(manifest).encode())
    response = client.post(reverse("admin:benchmark_from_manifest"), {"file": file})
    assert response.status_code == 302, response.context["form"].errors
    return Benchmark.objects.latest("created_at")


@pytest.mark.parametrize(
    ("content", "said"), [(b"{", "cannot be read as YAML"), (b"{}", "This is not an experiment file")]
)
def test_a_file_that_is_no_manifest_is_refused_at_its_field(admin_client: Client, content: bytes, said: str) -> None:
    file = SimpleUploadedFile("m.yaml", content)
    response = admin_client.post(reverse("admin:benchmark_from_manifest"), {"file": file})
    assert said in str(response.context["form"].errors["file"])


def test_there_is_no_manifest_before_the_end(admin_client: Client, mapping: Mapping) -> None:
    benchmark = make_benchmark(mapping, [], status="pending")
    url = reverse("admin:benchmark_manifest", args=[benchmark.pk])
    assert url not in admin_client.get(results_url(benchmark)).content.decode()
    assert "it has an experiment file once it has completed" in messages_of(admin_client.get(url, follow=True))
