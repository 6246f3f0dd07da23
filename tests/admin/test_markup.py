"""Texts of users on pages: escaped on each, no matter what a template of another package does with them."""

import contextlib
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.forms import CharField, Form
from django.template import engines
from django.template.loader import get_template
from django.test import Client
from django.utils.html import format_html
from markdown_it import MarkdownIt

from apps.judging.models import RoundItem
from apps.records.models import Benchmark, Run
from apps.results.exporting import export, list_exporters
from benchbench.errors import BenchbenchError
from tests.admin.addresses import paths, rows_of
from tests.marked import MARKUP, Escapes, make_marked_world
from tests.pages import addresses


class Fieldset(list[object]):
    """A fieldset without lines."""

    name = description = MARKUP


@pytest.mark.parametrize("template", ["unfold/helpers/help_text.html", "admin/includes/fieldset.html"])
def test_templates_of_others_escape_what_is_no_html(template: str) -> None:
    displayed = get_template(template).render({"help_text": MARKUP, "fieldset": Fieldset()})
    assert "&lt;img class=pwned" in displayed
    assert Escapes(displayed).found == []


def test_forms_escape_their_texts_and_keep_html() -> None:
    class requested(Form):
        named = CharField(label=MARKUP, help_text=MARKUP, initial=MARKUP)
        told = CharField(help_text=format_html("A <code>{}</code>.", "<b class=pwned>"))

    displayed = str(requested())
    assert Escapes(displayed).found == []
    assert "A <code>&lt;b class=pwned&gt;</code>." in displayed


def test_the_filter_safe_trusts_no_plain_text() -> None:
    displayed = engines["django"].from_string("{{ text|safe }} {{ html|safe }}")
    answer = displayed.render({"text": "<i>", "html": format_html("<b>{}</b>", "<i>")})
    assert answer == "&lt;i&gt; <b>&lt;i&gt;</b>"


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_no_text_acts_on_pages_or_in_files(client: Client) -> None:
    ada = User.objects.create_superuser("ada")
    make_marked_world(ada)
    displayed = [*read_pages(client, ada), *read_fragments(client), *read_files()]
    assert len(displayed) > 200
    hits = {name: Escapes(text).found for name, text in displayed}
    assert {name: tags for name, tags in hits.items() if tags} == {}


def read_pages(client: Client, user: User) -> Iterator[tuple[str, str]]:
    user.refresh_from_db()
    client.force_login(user)
    for name, path in paths(user).items():
        answer = client.get(path, follow=True)
        assert answer.status_code == 200, name
        yield name, answer.content.decode()


def read_fragments(client: Client) -> Iterator[tuple[str, str]]:
    """Yield the parts of pages that are asked for by themselves, and what the palette finds."""
    item = RoundItem.objects.order_by("round_id")[0]
    recognised = {"item_id": item.pk}
    for address in addresses():
        if address.is_full:
            continue
        for row in rows_of(address) if "object_id" in address.parameters else [None]:
            key = item.round_id if address.name == "admin:round_text" else row and row.pk
            answer = client.get(address.url((recognised | {"object_id": key}).__getitem__), {"s": "pwned"})
            assert answer.status_code < 500, address.name  # 404 of a run that has no values
            yield f"{address.name} {key}", answer.content.decode()


def read_files() -> Iterator[tuple[str, str]]:
    """Yield what every exporter writes of every benchmark and run that has ended, Markdown as HTML."""
    reader = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    for subject in (*Benchmark.objects.all(), *Run.objects.all()):
        for exporter in list_exporters(subject):
            if exporter.content_type not in ("text/html", "text/markdown"):
                continue
            with contextlib.suppress(BenchbenchError):
                text = "".join(map(str, export(subject, exporter.name)))
                yield f"{exporter.name} {subject.pk}", text if exporter.extension == "html" else reader.render(text)
