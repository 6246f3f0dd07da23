"""Forms of indexes warn of an encoder without its family's prompts before anything is built, and offer them."""

import html
import json
import re
from dataclasses import replace

import pytest
from django.urls import reverse

from apps.retrieval.building import IndexingError
from apps.retrieval.forms import IndexForm
from apps.retrieval.grids import ENCODER_EXAMPLE, read_encoder, write_encoder
from benchbench.ir.encoding import DEFAULT

E5, QWEN, BGE, MINILM = "intfloat/e5-base-v2", "Qwen/Qwen3-Embedding-0.6B", "BAAI/bge-small-en-v1.5", "all-MiniLM-L6-v2"


def read_offer(text: str) -> object:
    """Return what the button of a page fills in; None without it."""
    filled = re.search(r'data-fill="([^"]*)"', text)
    return json.loads(html.unescape(filled[1])) if filled else None


@pytest.mark.parametrize("page", ["retrieval_index_add", "new_evaluation"])
def test_forms_ask_about_the_encoder_as_it_is_typed(admin_client, page):
    text = admin_client.get(reverse(f"admin:{page}")).text
    assert f'hx-get="{reverse("admin:index_prompts")}"' in text
    assert "input delay:400ms from:#id_encoder" in text
    assert {"query_prompt", "document_prompt"} <= {*re.findall(r'name="(\w+)"', text)}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ({"encoder": E5}, {"query_prompt": "query: ", "document_prompt": "passage: "}),
        ({"encoder": E5, "query_prompt": "query: "}, {"document_prompt": "passage: "}),
        ({"encoder": E5, "query_prompt": "q", "document_prompt": "d"}, None),
        ({"encoder": BGE}, {"query_prompt": "Represent this sentence for searching relevant passages: "}),
        ({"encoder": MINILM}, None),
        ({}, None),
    ],
)
def test_usual_prompts_are_offered_before_building(admin_client, typed, offered):
    text = admin_client.get(reverse("admin:index_prompts"), typed).text
    assert read_offer(text) == offered
    assert ("was trained with prompts" in html.unescape(text)) == bool(offered)


def test_prompts_keep_their_lines_through_browsers(admin_client, admin_user):
    prompt = read_offer(admin_client.get(reverse("admin:index_prompts"), {"encoder": QWEN}).text)["query_prompt"]
    assert "\n" in prompt
    typed = {"encoder": QWEN, "query_prompt": prompt.replace("\n", "\r\n")}
    assert read_offer(admin_client.get(reverse("admin:index_prompts"), typed).text) is None
    form = IndexForm({"name": "a", **typed}, user=admin_user)
    assert form.errors.keys() == {"collection"}
    assert form.encoder_parameters == replace(DEFAULT, query_prompt=prompt)


def test_form_of_several_indexes_offers_prompts_by_line(admin_client):
    lines = f"{MINILM}\n{E5}\n{BGE}(precision=bfloat16)"
    answer = admin_client.post(reverse("admin:index_grid_preview"), {"strategies": "flat", "encoders": lines})
    offered = read_offer(answer.text)["encoders"].splitlines()
    assert offered[:2] == [MINILM, f'{E5}(query_prompt="query: ", document_prompt="passage: ")']
    assert read_encoder(offered[2])[1].precision == "bfloat16"
    assert answer.text.count("was trained with prompts") == 2
    fields = {"strategies": "flat", "encoders": "\n".join(offered)}
    assert read_offer(admin_client.post(reverse("admin:index_grid_preview"), fields).text) is None
    assert ENCODER_EXAMPLE in html.unescape(admin_client.get(reverse("admin:index_grid")).text)


def test_encoders_are_read_as_they_are_written():
    name, parameters = read_encoder(ENCODER_EXAMPLE)
    assert (name, parameters.query_prompt, parameters.precision) == (E5, "query: ", "mixed")
    for prompt in ("", "a, b) =|\n", '"'):
        changed = replace(parameters, query_prompt=prompt)
        assert read_encoder(write_encoder(name, changed)) == (name, changed)
    assert read_encoder(" /models/e5 (old) ") == ("/models/e5 (old)", DEFAULT)


@pytest.mark.parametrize("options", ['query_prompt="q", prompt=x', 'query_prompt="\\q"', "precision="])
def test_wrong_options_of_encoders_are_refused(options):
    with pytest.raises(IndexingError, match=r"option|escape") as raised:
        read_encoder(f"{E5}({options})")
    assert raised.value.field == "encoders"
