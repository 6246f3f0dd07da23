"""Fields that search rows, with submitted texts that cannot be keys: the form is shown again with its error."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.retrieval.models import Index
from benchbench.site.panels import change_url
from tests.admin.form_parser import open_form
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_schedule

NO_KEYS = ("x", "0x10", "9" * 5000, "9" * 30, "1e9", "00000000-0000", "[]")
SEARCHING = [model for model, of_model in admin.site._registry.items() if of_model.autocomplete_fields]


@pytest.mark.parametrize("model", SEARCHING)
def test_a_row_refuses_invalid_keys(model: Any, admin_client: Client) -> None:
    collection = make_collection(documents=[{}])
    Index.objects.create(collection=collection, name="words", encoder="")
    make_schedule(make_benchmark(make_mapping(make_dataset({"q": [("d1", 1)]}), collection)))
    row = model.objects.get()
    type(row).objects.update(owner=User.objects.get(username="admin"))
    form = open_form(admin_client, change_url(row))
    for value in NO_KEYS if model is SEARCHING[0] else NO_KEYS[:1]:
        response = admin_client.post(change_url(row), form | {"owner": [value]})
        assert (response.status_code, list(response.context["adminform"].errors)) == (200, ["owner"])


@pytest.mark.parametrize("page", ["admin:retrieval_index_add", "admin:mappings_mapping_add"])
def test_a_page_refuses_invalid_keys(page: str, admin_client: Client) -> None:
    for value in NO_KEYS:
        response = admin_client.post(reverse(page), {"collection": value, "dataset": value})
        assert response.status_code == 200
        assert "collection" in response.context["form"].errors
