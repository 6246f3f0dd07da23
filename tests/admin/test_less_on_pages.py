"""Pages of facts: without what is empty, with the words of choices."""

from django.urls import reverse

from benchbench.site.panels import change_url
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping


def test_pages_leave_out_what_is_empty(admin_client):
    collection = make_collection("library", [{"title": "Pears"}, {"title": "Plums"}])
    page = admin_client.get(change_url(collection)).content.decode()
    assert "External id" in page
    assert ">Uri<" not in page
    collection.documents.filter(title="Pears").update(uri="https://example.org/pears")
    assert ">Uri<" in admin_client.get(change_url(collection)).content.decode()


def test_choices_are_words_on_pages_of_facts(admin_client):
    benchmark = make_benchmark(
        make_mapping(make_dataset({"q1": [({"document_id": "d1"}, 1)]}), make_collection()), [0.5]
    )
    rows = (benchmark, benchmark.runs.get().evaluations.get())
    for row in rows:
        page = admin_client.get(change_url(row)).content.decode()
        assert "count them as not found" in page
        assert "count them as 0" in page
    page = admin_client.get(reverse("admin:benchmarks_evaluation_changelist")).content.decode()
    assert ".5000" in page
    assert "nDCG@" in page


def test_form_that_adds_has_no_button_to_add(admin_client):
    for name, has_button in {"changelist": True, "add": False}.items():
        page = admin_client.get(reverse(f"admin:auth_group_{name}")).content.decode()
        assert ("addlink" in page) is has_button
        assert (">New group</h2>" in page) is not has_button
