"""The page that freezes a draft: what it shows, what it asks, and what it takes."""

from typing import Any

from django.test import Client

from apps.benchmarks.models import QueryResult
from apps.datasets.editing.drafts import draft_of
from apps.datasets.editing.judgments import remove_judgment
from apps.datasets.editing.queries import edit_query
from benchbench.site.panels import change_url
from tests.admin.test_acts import messages_of
from tests.drafts import set_judgment
from tests.results.test_judging import freeze_url
from tests.results.test_pages import HOSTILE, text_of


def test_freezing_shows_first_what_it_changes(admin_client: Client, ranking: QueryResult) -> None:
    query, dataset = ranking.query, ranking.query.dataset
    page = freeze_url(dataset)
    assert "has no draft to freeze" in messages_of(admin_client.get(page, follow=True))
    set_judgment(dataset, "q1", {"document_id": "d1"}, 0, note=HOSTILE)
    set_judgment(dataset, "q1", {"document_id": "d2"}, 2)
    remove_judgment(dataset, "q1", {"uri": "gone"})
    edit_query(query, {"text": "Worded anew?"})
    shown = admin_client.get(page)
    text = text_of(shown)
    assert "4 changes: 1 judgment added, 1 judgment changed, 1 judgment removed, 1 query changed" in text
    assert "Judgments added 1" in text
    assert "q1 d1 3 → 0" in text
    assert "q1 gone 1" in text
    assert "q1 What is q1? Worded anew?" in text
    assert "<script>alert" not in shown.content.decode()
    seen = shown.context["difference"].digest

    set_judgment(dataset, "q1", {"document_id": "d3"}, 1)
    for told in (seen, ""):
        late = admin_client.post(page, {"seen": told})
        assert "was edited since you looked at it" in text_of(late)
        assert "Judgments added 2" in text_of(late), "what it holds now"
        assert draft_of(dataset) is not None
    seen = late.context["difference"].digest
    answer = admin_client.post(
        page, {"seen": seen, "label": "2026-11", "note": "Second look.", "next": change_url(query)}
    )
    assert answer["Location"] == change_url(query)
    version = dataset.versions.get(number=2)
    assert (version.label, version.note, draft_of(dataset)) == ("2026-11", "Second look.", None)
    set_judgment(dataset, "q1", {"document_id": "d3"}, 2)
    taken = {"seen": admin_client.get(page).context["difference"].digest, "label": "2026-11"}
    assert "choose another label" in str(admin_client.post(page, taken).context["form"].errors["label"])


def test_the_page_of_a_draft_asks_little_however_much_it_changes(
    admin_client: Client, ranking: QueryResult, django_assert_max_num_queries: Any
) -> None:
    dataset = ranking.query.dataset
    for number in range(60):
        set_judgment(dataset, "q1", {"document_id": f"n{number}"}, 1)
    with django_assert_max_num_queries(25):
        text = text_of(admin_client.get(freeze_url(dataset)))
    assert "The first 50 of 60." in text
