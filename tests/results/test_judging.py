"""From a grade edited on a page to values that change: judging, freezing, resolving, re-scoring, by buttons."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from apps.datasets.editing.drafts import find_draft
from apps.datasets.models import Dataset, Judgment
from apps.datasets.versions import hash_version
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.records.models import Benchmark, Evaluation, QueryResult, StageList
from benchbench.site.panels import change_url
from tests.benchmarks.figures import by_query
from tests.drafts import set_judgment
from tests.results.compared import make_finished
from tests.site import HOSTILE, freeze_by_page, freeze_url, messages_of, press, results_url, text_of


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    return make_finished()


def judge_url(result: QueryResult, document_id: int | None = None) -> str:
    labelled = {"result": result.pk, "document": document_id or result.document_ids[0]}
    return f"{reverse('admin:query_judge', args=[result.query_id])}?{urlencode(labelled)}"


def steps_of(response: Any) -> list[str]:
    return [button.label for step in response.context["judging"].steps for button in step.buttons]


def test_edited_judgment_changes_only_the_value_it_affects(admin_client, finished):
    """The whole way, by what the pages offer. Only the query whose judgment changed has another value."""
    run = finished.runs.get(config__search_mode="dense")
    query = finished.dataset_version.queries.order_by("key").first()
    result = run.query_results.get(query=query)
    page = change_url(result)
    before, searched = Evaluation.objects.get(run=run), list(QueryResult.objects.order_by("pk").values())
    stages, operations = StageList.objects.count(), Operation.objects.count()

    displayed = admin_client.get(page)
    links = [unescape(link) for link in re.findall(r'href="([^"]+/judge/[^"]+)"', displayed.content.decode())]
    assert f"{judge_url(result)}&{urlencode({'next': page})}" in links, "each place has its link"
    assert steps_of(displayed) == []
    complete, fragment = (
        admin_client.get(links[0], headers=sent).content.decode() for sent in ({}, {"HX-Request": "true"})
    )
    assert "<html" in complete
    assert "<html" not in fragment, "it opens in the page of the ranking"
    for form in (complete, fragment):
        assert "csrfmiddlewaretoken" in form
        assert query.text in form
        assert '<button class="bb-key bb-key-grade" name="grade" value="0">' in form
    response = admin_client.post(judge_url(result), {"grade": "0", "note": "About pears.", "next": page}, follow=True)
    assert response.redirect_chain == [(page, 302)]
    assert "Draft of version 2 of questions, with 1 change: 1 judgment changed." in text_of(response)
    assert "in the draft: 0" in text_of(response)
    assert steps_of(response) == ["Freeze, resolve, re-score …", "Discard draft"]
    assert f'href="{freeze_url(finished.mapping.dataset)}?next={page.replace("/", "%2F")}"' in response.content.decode()

    dataset, mapping = finished.mapping.dataset, finished.mapping
    frozen = freeze_by_page(admin_client, dataset, next=page)
    assert "questions v2 is frozen" in messages_of(frozen)
    assert steps_of(frozen) == ["Resolve and re-score"]
    assert steps_of(press(admin_client, mapping, "resolve_selected", next=page)) == ["Re-score on v2"]
    rescored = press(admin_client, finished, "rescore_selected", next=page)
    assert "Measured 2 runs on questions v2 from stored rankings." in messages_of(rescored)
    assert rescored.redirect_chain[-1][0] == f"{results_url(finished)}?version=2"
    assert steps_of(admin_client.get(page)) == ["Values on v2"]
    assert steps_of(admin_client.get(page, {"version": "2"})) == [], "they are shown"

    after = Evaluation.objects.get(run=run, dataset_version__number=2)
    old, new = by_query(before), by_query(after)
    assert [key for key in old if old[key] != new[key]] == [query.pk]
    assert list(QueryResult.objects.order_by("pk").values()) == searched
    assert (StageList.objects.count(), Operation.objects.count()) == (stages, operations)
    assert hash_version(finished.dataset_version) == finished.dataset_version.content_hash


def test_run_and_query_pages_follow_the_version(admin_client, finished):
    run = finished.runs.get(config__search_mode="dense")
    query = finished.dataset_version.queries.order_by("key").first()
    result = run.query_results.get(query=query)
    admin_client.post(judge_url(result), {"grade": "0"})
    freeze_by_page(admin_client, finished.mapping.dataset)
    press(admin_client, finished.mapping, "resolve_selected")
    assert "values on" not in text_of(admin_client.get(change_url(run)))
    press(admin_client, finished, "rescore_selected")
    values = {one.dataset_version.number: one for one in Evaluation.objects.filter(run=run)}

    board = admin_client.get(results_url(finished), {"version": "2"}).content.decode()
    assert f'href="{change_url(run)}?version=2"' in board
    assert f'href="{change_url(run)}?version' not in admin_client.get(results_url(finished)).content.decode()
    for number in (1, 2):
        page = admin_client.get(change_url(run), {"version": str(number)})
        assert page.context["evaluation"] == values[number]
        means = [(name, mean) for name, mean, _ in page.context["means"]]
        assert means == [(name, values[number].means[name]) for name, _ in means]
        ranking = admin_client.get(change_url(result), {"version": str(number)})
        assert dict(ranking.context["values"])["nDCG@10"] == by_query(values[number])[query.pk]
        assert (ranking.context["hits"][0][0].grade == 0) == (number == 2)
    page = admin_client.get(change_url(run), {"version": "2", "by": "RR"}).content.decode()
    assert f'href="{change_url(result)}?version=2"' in page
    assert f"{reverse('admin:run_coverage', args=[run.pk])}?version=2" in page
    assert '<input type="hidden" name="version" value="2">' in page
    assert f'href="{change_url(run)}?version=2"' in admin_client.get(f"{change_url(result)}?version=2").content.decode()
    for nonsense in ("7", "x", "-1"):
        refused = admin_client.get(change_url(run), {"version": nonsense})
        assert refused.status_code == 404
        message = f"has no values on version {nonsense} of its dataset; versions with values: 1, 2."
        assert message in refused.content.decode()
        assert admin_client.get(change_url(result), {"version": nonsense}).status_code == 404


def test_a_missing_document_is_judged_where_it_is_missed(admin_client, ranking):
    admin_client.post(judge_url(ranking, ranking.document_ids[2]), {"grade": "2", "note": " "})
    judged = Judgment.objects.get(until=None, since=2)
    assert (judged.doc_ref, judged.grade, judged.source, judged.judge) == ({"document_id": "d3"}, 2, "human", "admin")
    assert judged.judged_by == User.objects.get(username="admin")
    page = text_of(admin_client.get(change_url(ranking)))
    assert "in the draft: 2" in page
    admin_client.post(judge_url(ranking), {"remove": "1"})
    page = text_of(admin_client.get(change_url(ranking)))
    assert "2 changes: 1 judgment added, 1 judgment removed" in page


def test_a_query_lists_its_judgments_and_takes_others(admin_client, ranking):
    query = ranking.query
    page = admin_client.get(change_url(query))
    assert "gone" in text_of(page)
    assert "draft" not in text_of(page)
    judgment = query.judgments.get(doc_ref={"uri": "gone"})
    url = reverse("admin:query_judge", args=[query.pk])
    form = admin_client.get(url, {"judgment": judgment.pk})
    assert form.context["form"].initial["grade"] == 1
    assert "Remove the judgment" in text_of(form)
    admin_client.post(f"{url}?judgment={judgment.pk}", {"remove": "1"})
    labelled = urlencode({"key": "uri", "reference": " lib:9 ", "without_document": "on"})
    response = admin_client.post(f"{url}?{labelled}", {"grade": "3", "note": "New."}, follow=True)
    assert response.redirect_chain == [(change_url(query), 302)]
    assert query.judgments.get(until=None, since=2).doc_ref == {"uri": " lib:9 "}, "to the letter"
    page = text_of(response)
    assert "Draft of version 2 of questions, with 2 changes: 1 judgment added, 1 judgment removed." in page
    assert "removed in the draft" in page
    assert "Draft of version 2" in text_of(admin_client.get(change_url(query.dataset)))
    assert admin_client.get(url, {"judgment": judgment.pk}).status_code == 404, "removed since"


def test_unknown_document_is_judged_only_after_confirmation(admin_client, ranking):
    url = reverse("admin:query_judge", args=[ranking.query.pk])
    nowhere = f"{url}?{urlencode({'key': 'uri', 'reference': 'lib:9'})}"
    for response in (admin_client.get(nowhere), admin_client.post(nowhere, {"grade": "3"})):
        assert response.context["form"].errors["reference"] == [
            "No document of \"library\" has the uri 'lib:9': correct it, or state the judgment without a document."
        ]
    assert find_draft(ranking.query.dataset) is None
    assert "No document that you may see has this reference" in text_of(
        admin_client.get(f"{nowhere}&without_document=on")
    )
    admin_client.post(f"{url}?key=document_id&reference=d3", {"grade": "1"})
    assert Judgment.objects.get(until=None, since=2).doc_ref == {"document_id": "d3"}


def test_a_reference_shows_its_document_and_scale(admin_client, ranking):
    query = ranking.query
    url = reverse("admin:query_judge", args=[query.pk])
    assert "Document by" in text_of(admin_client.get(url))
    document = ranking.run.benchmark.mapping.collection.documents.get(external_id="d3")
    page = admin_client.get(f"{url}?key=document_id&reference=d3").content.decode()
    for words in (query.text, document.title, '<button class="bb-key bb-key-grade" name="grade" value="0">'):
        assert words in page
    first, second = query.judgments.order_by("pk")
    assert "the next of 1 more" in text_of(admin_client.get(f"{url}?judgment={first.pk}"))
    answer = admin_client.post(f"{url}?judgment={first.pk}", {"grade": "2", "go_on": "1"})
    assert answer["Location"] == f"{url}?judgment={second.pk}&go_on=1"
    ((key, value),) = first.doc_ref.items()
    same = admin_client.get(f"{url}?{urlencode({'key': key, 'reference': value})}")
    assert same.context["judgment"].grade == 2, "what is judged already is changed, under whichever reference"


def test_invalid_judgment_shows_the_error_at_its_field(admin_client, ranking):
    url = reverse("admin:query_judge", args=[ranking.query.pk])
    response = admin_client.post(f"{url}?key=uri&reference=lib:9&without_document=on", {"grade": "40000"})
    assert "32767" in str(response.context["form"].errors["grade"])
    assert "grade" in admin_client.post(judge_url(ranking), {"grade": ""}).context["form"].errors
    assert find_draft(ranking.query.dataset) is None


def test_a_draft_is_discarded_after_a_question(admin_client, ranking):
    dataset = ranking.query.dataset
    frozen = dataset.versions.get()
    set_judgment(dataset, "q1", {"document_id": "d1"}, 0)
    url = reverse("admin:datasets_datasetversion_delete", args=[find_draft(dataset).pk])
    assert url in admin_client.get(change_url(ranking)).content.decode()
    assert "1 change: 1 judgment changed" in text_of(admin_client.get(url))
    assert "Discarded questions v2 (draft)" in messages_of(admin_client.post(url, {"post": "yes"}, follow=True))
    assert [one.grade for one in frozen.judgments.order_by("id")] == [3, 1]
    assert find_draft(dataset) is None
    refused = admin_client.post(reverse("admin:datasets_datasetversion_delete", args=[frozen.pk]), {"post": "yes"})
    assert refused.status_code == 403, "a frozen version stays"


def test_user_without_change_permission_can_only_read(client, make_staff, ranking):
    client.force_login(make_staff("reader", may=("view",)))
    dataset = ranking.query.dataset
    set_judgment(dataset, "q1", {"document_id": "d1"}, 0)
    page = client.get(change_url(ranking))
    assert "Draft of version 2" in text_of(page)
    assert steps_of(page) == []
    for displayed in (page, client.get(change_url(ranking.query)), client.get(change_url(dataset))):
        assert "/judge/" not in displayed.content.decode()
    for url in (judge_url(ranking), reverse("admin:query_judge", args=[ranking.query.pk])):
        assert client.post(url, {"grade": "1", "key": "uri", "reference": "x"}).status_code == 403
    assert client.get(freeze_url(dataset)).status_code == 403
    assert client.post(freeze_url(dataset), {"digest": "x"}).status_code == 403
    assert (
        client.post(reverse("admin:datasets_datasetversion_delete", args=[find_draft(dataset).pk])).status_code == 403
    )
    assert find_draft(dataset).judgments.get(doc_ref={"document_id": "d1"}).grade == 0


def test_datasets_of_other_owners_cannot_be_judged(client, make_staff, ranking):
    grace = make_staff("grace")
    client.force_login(make_staff("ada"))
    Dataset.objects.update(owner=grace)
    page = client.get(change_url(ranking))
    assert page.status_code == 200, "the benchmark is nobody's"
    assert "/judge/" not in page.content.decode()
    assert client.post(judge_url(ranking), {"grade": "1"}).status_code == 404
    assert client.get(reverse("admin:query_judge", args=[ranking.query.pk])).status_code == 404
    assert client.get(freeze_url(ranking.query.dataset)).status_code == 404
    Dataset.objects.update(owner=None)
    Benchmark.objects.update(owner=grace)
    assert client.post(judge_url(ranking), {"grade": "1"}).status_code == 404
    assert find_draft(ranking.query.dataset) is None


def test_it_goes_on_to_no_other_site(admin_client, ranking):
    response = admin_client.post(judge_url(ranking), {"grade": "1", "next": "https://elsewhere.example/"})
    assert response["Location"] == change_url(ranking)


def test_a_note_is_no_markup(admin_client, ranking):
    admin_client.post(judge_url(ranking), {"grade": "1", "note": HOSTILE})
    for page in (change_url(ranking.query), judge_url(ranking)):
        assert "<script>alert" not in admin_client.get(page).content.decode()


def test_a_query_that_the_draft_ended_is_not_judged(admin_client, ranking):
    type(ranking.query).objects.update(until=2)
    assert "/judge/" not in admin_client.get(change_url(ranking)).content.decode()
    assert admin_client.post(judge_url(ranking), {"grade": "1"}).status_code == 403


def test_page_links_only_to_visible_objects(client, make_staff, ranking):
    client.force_login(make_staff("ada"))
    set_judgment(ranking.query.dataset, "q1", {"document_id": "d1"}, 0)
    freeze_by_page(client, ranking.query.dataset)
    assert "Not yet updated to it: 1 mapping" in text_of(client.get(change_url(ranking.query.dataset)))
    Mapping.objects.update(owner=make_staff("grace"))
    assert "Not yet updated to it: 1 mapping" not in text_of(client.get(change_url(ranking.query.dataset)))


def test_one_hit_after_the_other_is_judged(admin_client, ranking):
    page = change_url(ranking)
    first, *remaining = ranking.document_ids
    text = text_of(admin_client.get(f"{judge_url(ranking)}&{urlencode({'next': page})}"))
    assert f"the next of {len([pk for pk in remaining if pk != first])} unjudged here" in text
    answer = admin_client.post(judge_url(ranking), {"grade": "1", "next": page, "go_on": "1"})
    assert answer["Location"].startswith(judge_url(ranking, remaining[0]) if remaining else page)
