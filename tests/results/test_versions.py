"""Which dataset version's values a benchmark's page shows, and what brings new ones about."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.datasets.editing.drafts import find_draft
from apps.datasets.editing.judgments import remove_judgment
from apps.datasets.editing.queries import edit_query
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from apps.records.models import Benchmark, Evaluation
from apps.results.templatetags.benchbench import signed
from benchbench.reading import strict_yaml
from benchbench.site.panels import change_url
from tests.drafts import freeze_and_resolve, set_judgment, turn
from tests.factories import make_benchmark
from tests.results.compared import make_finished
from tests.site import HOSTILE, freeze_url, messages_of, press, results_url, text_of


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    return make_finished()


def test_reader_can_rescore_and_choose_the_version_to_view(admin_client, finished):
    assert "Re-score" not in text_of(admin_client.get(results_url(finished)))
    turn(finished, queries=3)
    version = freeze_and_resolve(finished.mapping)
    before = text_of(admin_client.get(results_url(finished)))
    assert "Re-score on v2" in before
    assert "values on" not in before

    response = press(admin_client, finished, "rescore_selected", next=results_url(finished))
    assert "Measured 2 runs on questions v2 from stored rankings." in messages_of(response)
    assert response.redirect_chain[-1][0] == f"{results_url(finished)}?version=2"
    personal = admin_client.get(results_url(finished))
    assert "values on v1 v2" in text_of(personal)
    assert "Re-score" not in text_of(personal), "it is done"
    assert "These are values on" not in text_of(personal), "its own version is shown until another is chosen"
    second = admin_client.get(results_url(finished), {"version": "2", "k": "5"})
    assert "These are values on questions v2, measured from the rankings for questions v1" in text_of(second)
    values = {one.run_id: one.means for one in Evaluation.objects.filter(dataset_version=version)}
    displayed = [row["row"].values for row in second.context["rows"]]
    assert displayed == sorted(values.values(), key=lambda means: -means["nDCG@10"])
    page = second.content.decode()
    assert "live/?k=5&amp;version=2" in page
    assert "version=2&amp;k=10" in page, "the cutoff keeps the version"
    for nonsense in ("7", "x", "-1"):
        refused = admin_client.get(results_url(finished), {"version": nonsense})
        assert refused.status_code == 404
        assert "versions with values: 1, 2." in refused.content.decode()
    cut = admin_client.get(results_url(finished), {"k": "7"})
    assert cut.status_code == 404
    assert "has no values at k = 7; choose one of k = 5, 10." in cut.content.decode()


def test_rescored_benchmark_shows_the_changed_values(admin_client, finished):
    turn(finished, queries=3)
    second = freeze_and_resolve(finished.mapping)
    press(admin_client, finished, "rescore_selected")
    rows = Evaluation.objects.select_related("run", "dataset_version")
    values = {(row.run.config["search_mode"], row.dataset_version.number): row.means["nDCG@10"] for row in rows}
    page = admin_client.get(results_url(finished), {"version": "2"})
    moved = page.context["moved"]
    assert (moved.before, moved.version, moved.changes.changed) == (finished.dataset_version, second, 3)
    answers = {row.run.config["search_mode"]: row for row in moved.runs}
    for mode, row in answers.items():
        assert (row.before, row.now) == (values[mode, 1], values[mode, 2])
        assert row.change == values[mode, 2] - values[mode, 1]
    assert answers["dense"].change < 0
    ranks = [sorted(answers, key=lambda mode: -values[mode, number]) for number in (1, 2)]
    assert {mode: (row.rank_before, row.rank) for mode, row in answers.items()} == {
        mode: tuple(order.index(mode) + 1 for order in ranks) for mode in answers
    }
    text = text_of(page)
    assert "differ by 3 changes: 3 judgments changed" in text
    assert signed(answers["dense"].change) in text
    assert admin_client.get(results_url(finished)).context["moved"] is None, "its own version was searched"

    set_judgment(finished.mapping.dataset, "q000", {"document_id": "d019"}, 3)
    freeze_and_resolve(finished.mapping)
    response = press(admin_client, finished, "rescore_selected")
    assert response.redirect_chain[-1][0] == f"{results_url(finished)}?version=3"
    assert (response.context["moved"].before, response.context["moved"].changes.total) == (second, 1)


def test_impossible_rescoring_is_explained(admin_client, finished):
    turn(finished)
    freeze_and_resolve(finished.mapping)
    Mapping.objects.update(dataset_version=finished.dataset_version)
    response = press(admin_client, finished, "rescore_selected", next=results_url(finished))
    assert "is newer: resolve it again" in messages_of(response)
    page = response.content.decode()
    assert f'href="{change_url(finished.mapping)}"' in page[page.index("bb-buttons") :]
    assert "Resolve the mapping for v2" in page
    assert "Re-score on" not in page
    resolve(finished.mapping)
    assert "Re-score on v2" in text_of(admin_client.get(results_url(finished)))
    press(admin_client, finished, "rescore_selected")
    assert "Re-score on v2" not in text_of(admin_client.get(results_url(finished)))
    resolve(finished.mapping)
    assert "Re-score on v2" not in text_of(admin_client.get(results_url(finished))), "it searched the same documents"
    Benchmark.objects.update(state=None)
    assert "Re-score on v2" in text_of(admin_client.get(results_url(finished))), "unless they were not recorded"


def test_a_manifest_goes_out_and_comes_back(admin_client, finished):
    page = admin_client.get(results_url(finished)).content.decode()
    url = reverse("admin:benchmark_manifest", args=[finished.pk])
    assert url in page
    response = admin_client.get(url)
    assert response["Content-Disposition"] == 'attachment; filename="which-mode.experiment.yaml"'
    manifest = strict_yaml.parse(response.text, location="experiment.yaml")

    second = upload(admin_client, manifest)
    assert second.status == "running"
    assert "Reproduces" not in text_of(admin_client.get(results_url(second)))
    wait(second.operation)
    displayed = admin_client.get(results_url(second))
    assert "Reproduces every figure of “Which mode?”: 22 means in 2 runs" in text_of(displayed)
    assert 'data-reproduces="true"' in displayed.content.decode()

    manifest["runs"][0]["result"]["means"]["RR"] = 0.125
    third = upload(admin_client, manifest)
    wait(third.operation)
    displayed = text_of(admin_client.get(results_url(third)))
    assert "Differs from “Which mode?” in 1 of its 2 runs." in displayed
    assert "RR was 0.125, is" in displayed


def upload(client: Client, manifest: Any) -> Benchmark:
    file = SimpleUploadedFile("m.yaml", strict_yaml.dump(manifest).encode())
    response = client.post(reverse("admin:benchmark_from_manifest"), {"file": file})
    assert response.status_code == 302, response.context["form"].errors
    return Benchmark.objects.latest("created_at")


@pytest.mark.parametrize(
    ("content", "message"), [(b"{", "cannot be read as YAML"), (b"{}", "This is not an experiment file")]
)
def test_invalid_manifest_file_is_rejected_at_its_field(admin_client, content, message):
    file = SimpleUploadedFile("m.yaml", content)
    response = admin_client.post(reverse("admin:benchmark_from_manifest"), {"file": file})
    assert message in str(response.context["form"].errors["file"])


def test_there_is_no_manifest_before_the_end(admin_client, mapping):
    benchmark = make_benchmark(mapping, [], status="pending")
    url = reverse("admin:benchmark_manifest", args=[benchmark.pk])
    assert url not in admin_client.get(results_url(benchmark)).content.decode()
    assert "its experiment file is available once it has completed" in messages_of(admin_client.get(url, follow=True))


def test_freeze_page_previews_the_changes(admin_client, ranking):
    query, dataset = ranking.query, ranking.query.dataset
    page = freeze_url(dataset)
    assert "has no draft to freeze" in messages_of(admin_client.get(page, follow=True))
    set_judgment(dataset, "q1", {"document_id": "d1"}, 0, note=HOSTILE)
    set_judgment(dataset, "q1", {"document_id": "d2"}, 2)
    remove_judgment(dataset, "q1", {"uri": "gone"})
    edit_query(query, {"text": "Worded anew?"})
    response = admin_client.get(page)
    text = text_of(response)
    assert "4 changes: 1 judgment added, 1 judgment changed, 1 judgment removed, 1 query changed" in text
    assert "Judgments added 1" in text
    assert "q1 d1 3 → 0" in text
    assert "q1 gone 1" in text
    assert "q1 What is q1? Worded anew?" in text
    assert "<script>alert" not in response.content.decode()
    seen = response.context["difference"].digest

    set_judgment(dataset, "q1", {"document_id": "d3"}, 1)
    for message in (seen, ""):
        late = admin_client.post(page, {"digest": message})
        assert "was edited after you viewed it" in text_of(late)
        assert "Judgments added 2" in text_of(late), "what it holds now"
        assert find_draft(dataset) is not None
    seen = late.context["difference"].digest
    fields = {"digest": seen, "label": "2026-11", "note": "Second look.", "next": change_url(query)}
    answer = admin_client.post(page, fields)
    assert answer["Location"] == change_url(query)
    version = dataset.versions.get(number=2)
    assert (version.label, version.note, find_draft(dataset)) == ("2026-11", "Second look.", None)
    set_judgment(dataset, "q1", {"document_id": "d3"}, 2)
    taken = {"digest": admin_client.get(page).context["difference"].digest, "label": "2026-11"}
    assert "choose another label" in str(admin_client.post(page, taken).context["form"].errors["label"])


def test_its_page_asks_little(admin_client, ranking, django_assert_max_num_queries):
    dataset = ranking.query.dataset
    for number in range(60):
        set_judgment(dataset, "q1", {"document_id": f"n{number}"}, 1)
    with django_assert_max_num_queries(25):
        text = text_of(admin_client.get(freeze_url(dataset)))
    assert "The first 50 of 60." in text
