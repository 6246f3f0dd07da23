"""Datasets taken away in the browser, as they are or by the documents of a mapping."""

import io
import zipfile
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.collections.models import Collection
from apps.datasets.formats.registry import WRITERS
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve_now
from benchbench.site.panels import change_url
from tests.datasets.samples import SAMPLES
from tests.drafts import set_judgment
from tests.factories import make_collection, make_dataset

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")]


def test_every_export_link_returns_a_file_or_an_explanation(admin_client: Client) -> None:
    version = import_dataset(SAMPLES["beir"], name="fruit").version
    pages = [admin_client.get(change_url(row)).content.decode() for row in (version, version.dataset)]
    supplied = 0
    for format, writer in WRITERS.items():
        url = reverse("admin:dataset_export", args=[version.pk, format])
        assert all(url in page for page in pages)
        answer = admin_client.get(url)
        if answer.status_code == 200:
            supplied += 1
            assert answer["Content-Disposition"] == f'attachment; filename="fruit-v1.{writer.extension or "zip"}"'
            assert b"".join(answer)
        else:
            page = admin_client.get(answer["Location"]).content.decode()
            assert "choose another format" in page or "cannot hold" in page
    assert supplied == 1


def test_content_omitted_by_an_export_is_reported_afterwards(admin_client: Client) -> None:
    version = import_dataset(SAMPLES["benchbench-json"], name="fruit").version
    set_judgment(version.dataset, "q2", {"uri": "u"}, 1)
    draft = version.dataset.versions.get(number=2)
    assert b"".join(admin_client.get(reverse("admin:dataset_export", args=[draft.pk, "benchbench-json"])))
    page = admin_client.get(change_url(draft)).content.decode()
    assert "fruit-v2.json: BenchBench JSON, schema 1.0 cannot hold source of 1 judgment" in page


def test_mapping_page_exports_the_dataset_by_its_documents(admin_client: Client, make_staff: Any) -> None:
    collection = make_collection(documents=[{"external_id": "a", "text": "red fruit", "uri": "x:a"}])
    judged = {"q1": [({"uri": "x:a"}, 1), ({"uri": "x:gone"}, 1)]}
    mapping = create_mapping(make_dataset(judged), collection)
    url = reverse("admin:mapping_export", args=[mapping.pk, "beir"])
    assert url not in admin_client.get(change_url(mapping)).content.decode(), "not resolved yet"
    assert admin_client.get(url).status_code == 404
    resolve_now(mapping)
    assert url in admin_client.get(change_url(mapping)).content.decode()
    claimed = zipfile.ZipFile(io.BytesIO(b"".join(admin_client.get(url))))
    assert b"red fruit" in claimed.read("corpus.jsonl")
    assert "with generated ids" in admin_client.get(change_url(mapping)).content.decode()
    Mapping.objects.update(owner=make_staff("ada"))
    stranger = Client()
    stranger.force_login(make_staff("bob", may=("view",)))
    assert stranger.get(url).status_code == 404
    Mapping.objects.update(owner=None)
    eve = make_staff("eve")
    for model in (Collection, Dataset):  # documents, or judged queries, of another owner
        assert url in stranger.get(change_url(mapping)).text
        model.objects.update(owner=eve)
        assert url not in stranger.get(change_url(mapping)).text
        assert stranger.get(url).status_code == 403
        model.objects.update(owner=None)
