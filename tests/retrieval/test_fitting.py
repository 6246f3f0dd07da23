"""Chunks that fit an encoder: none is longer than it reads, and together they have all of a document's words."""

import math
import re
from html import unescape
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.collections.models import Collection
from apps.operations.working import OperationFailedError, wait
from apps.retrieval.encoders import Encoder, load_encoder
from apps.retrieval.fitting import fit_pieces
from apps.retrieval.indexing import IndexingError, build_index, create_index
from apps.retrieval.models import Index
from apps.retrieval.strategies import STRATEGIES, get_strategy
from apps.retrieval.strategies.base import Piece, StrategyError
from benchbench.ir.planning.strategies import INPUTS
from tests.created import build
from tests.tiny_models import WINDOW, save_encoder
from tests.unread import import_texts

FIT: dict[str, Any] = {"fit_encoder": True}
LONG = "apple tree. " * WINDOW  # three tokens, three windows and a bit
TEXTS = st.text(st.sampled_from("aé漢 \n.\u0301Z1"), max_size=6 * WINDOW) | st.just(LONG)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_encoder(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def encoder(model: str) -> Encoder:
    return load_encoder(model)


@given(texts=st.lists(TEXTS, max_size=3), title=st.sampled_from(["", "Plum ", "  ", "pear " * 20]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_are_read_and_cover_a_text(encoder: Encoder, texts: list[str], title: str) -> None:
    documents = [Piece(f"{title}{text}".strip(), 0, len(text)) for text in texts]
    fitted = fit_pieces([(text, [piece]) for text, piece in zip(texts, documents, strict=True)], encoder)
    assert encoder.count_cut([piece.text for pieces in fitted for piece in pieces]) is None
    for text, document, pieces in zip(texts, documents, fitted, strict=True):
        assert pieces == [document] if encoder.count_cut([document.text]) is None else len(pieces) > 1
        spans = [(piece.start, piece.end) for piece in pieces]
        assert spans == sorted(spans)
        assert "".join("".join(text[first:last].split()) for first, last in spans) == "".join(text.split())
        if len(pieces) > 1:
            prefix = document.text.removesuffix(text.strip())
            assert [piece.text for piece in pieces] == [f"{prefix}{text[first:last].strip()}" for first, last in spans]


def test_parts_are_few_and_end_with_words(encoder: Encoder) -> None:
    (pieces,) = fit_pieces([(LONG, [Piece(LONG.strip(), 0, len(LONG), section=2)])], encoder)
    assert len(pieces) == math.ceil(3 * WINDOW / (WINDOW - 2))
    assert {piece.text.split()[0] for piece in pieces} <= {"apple", "tree."}
    assert {piece.text.split()[-1] for piece in pieces} <= {"apple", "tree."}
    assert {piece.section for piece in pieces} == {2}


def test_blanks_around_a_text_are_no_part(encoder: Encoder) -> None:
    """A part of blanks is left out: what remains may be one part, which is too long."""
    for word in range(1, 300, 7):
        text = " " * 2000 + "x" * word + " apple" * WINDOW
        (pieces,) = fit_pieces([(text, [Piece(text.strip(), 0, len(text))])], encoder)
        assert encoder.count_cut([piece.text for piece in pieces]) is None


def test_a_title_of_half_a_window_keeps_its_text(encoder: Encoder) -> None:
    title = "pear " * (WINDOW // 2 + 4)
    piece = Piece(f"{title}{LONG}".strip(), 0, len(LONG))
    assert fit_pieces([(LONG, [piece])], encoder) == [[piece]]


def test_an_encoder_that_reads_all_divides_nothing() -> None:
    piece = Piece(LONG, 0, len(LONG))
    assert fit_pieces([(LONG, [piece]), ("", [])], load_encoder("keyword:apple")) == [[piece], []]


@pytest.mark.django_db(transaction=True)
def test_an_index_that_fits_has_no_warning(model: str, admin_client: Client) -> None:
    collection = import_texts([LONG, "plum " * 9, LONG + "dog"], ["apple"]).collection
    cut = build(create_index(collection, name="whole", encoder=model))
    page = admin_client.get(reverse("admin:retrieval_index_change", args=[cut.pk])).content.decode()
    assert "2 of 3 chunks are longer" in page
    assert "Build an index that divides documents at the end of the encoder&#x27;s input (fit_encoder)." in page
    href = re.findall(r'href="([^"]*fit_encoder=on[^"]*)"', page)[0]
    form = admin_client.get(unescape(href)).context["form"]
    assert (form["name"].value(), form["encoder"].value(), bool(form["fit_encoder"].value())) == ("whole", model, True)
    assert bool(form["lexical"].value()) is cut.lexical
    fits = build(create_index(collection, name="fits", encoder=model, chunk_parameters=FIT))
    again = build(create_index(collection, name="again", encoder=model, chunk_parameters=FIT))
    assert fits.chunk_set is not None
    assert (fits.chunk_set, "cut" in fits.stats) == (again.chunk_set, False)
    assert fits.chunk_set.chunk_count == 4 + 1 + 4
    page = admin_client.get(reverse("admin:retrieval_index_change", args=[fits.pk])).content.decode()
    assert "whole documents, divided where the encoder stops reading" in page
    assert "fit_encoder=on" not in page
    prompted = build(
        create_index(collection, name="prompt", encoder=model, chunk_parameters=FIT, document_prompt="a " * 30)
    )
    assert prompted.chunk_set is not None
    assert prompted.chunk_set.chunk_count > fits.chunk_set.chunk_count  # the prompt takes half of what is read
    assert "cut" not in prompted.stats


@pytest.mark.django_db(transaction=True)
def test_windows_are_divided_within_their_limits(model: str) -> None:
    collection = import_texts([LONG], ["apple"]).collection
    windows = {"size": len(LONG) // 2, "overlap": 12}
    index = build(create_index(collection, name="windows", encoder=model, chunk_parameters=windows | FIT))
    assert index.chunk_set is not None
    spans = list(index.chunk_set.chunks.order_by("position").values_list("start", "end"))
    assert len(spans) == 5
    assert spans[2][0] == len(LONG) // 2 - 12
    assert "cut" not in index.stats


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("strategy", ["lod_embed", "raptor_extractive"])
def test_chunks_below_summaries_are_divided(strategy: str, model: str, admin_client: Client) -> None:
    collection = import_texts([LONG, "plum", LONG + "dog"], ["apple"]).collection
    parameters = {"size": 2 * len(LONG), "overlap": 0}
    cut = build(create_index(collection, name="tree", encoder=model, strategy=strategy, chunk_parameters=parameters))
    page = admin_client.get(reverse("admin:retrieval_index_change", args=[cut.pk])).content.decode()
    href = unescape(re.findall(r'href="([^"]*fit_encoder=on[^"]*)"', page)[0])
    offered = {name: field.value() for field in admin_client.get(href).context["form"] if (name := field.name)}
    chosen = cut.chunk_parameters | FIT
    names = {"size", "overlap", *INPUTS} & chosen.keys()
    assert {name: str(offered[name]) for name in names} == {name: str(chosen[name]) for name in names}
    assert (offered["strategy"], offered["encoder"]) == (strategy, model)
    fits = build(create_index(collection, name="tree", encoder=model, strategy=strategy, chunk_parameters=chosen))
    assert fits.chunk_set is not None
    leaves = fits.chunk_set.chunks.filter(level=0)
    assert fits.chunk_set.chunk_count == leaves.count() > 3
    assert not fits.cut_chunks.filter(position__lt=leaves.count()).exists()
    for document in collection.documents.all():
        spans = leaves.filter(document=document).order_by("position").values_list("start", "end")
        covered = "".join(document.text[start:end] for start, end in spans)
        assert "".join(covered.split()) == "".join(document.text.split())
    above = fits.chunk_set.chunks.filter(level=1)
    assert sorted(above.values_list("children__position", flat=True)) == list(range(leaves.count()))
    page = admin_client.get(reverse("admin:retrieval_index_change", args=[fits.pk])).content.decode()
    assert "fit_encoder=on" not in page
    assert ("All of these are summaries" in page) is ("cut" in fits.stats)


@pytest.mark.django_db(transaction=True)
def test_more_chunks_than_allowed_fail_the_index(model: str, settings: Any) -> None:
    settings.BENCHBENCH_MAX_CHUNKS = 3
    collection = import_texts([LONG], ["apple"]).collection
    index = create_index(collection, name="fits", encoder=model, chunk_parameters=FIT)
    with pytest.raises(OperationFailedError, match="divide into more than 3 chunks"):
        wait(build_index(index))
    index.refresh_from_db()
    assert index.chunk_set is None


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("parameters", [{}, {"fit_encoder": False}, FIT, {"size": 200, **FIT}])
def test_false_is_left_out(strategy: str, parameters: dict[str, Any]) -> None:
    complete = get_strategy(strategy).check(parameters)
    assert get_strategy(strategy).check(complete) == complete
    assert complete.get("fit_encoder", False) is parameters.get("fit_encoder", False)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_bad_values_are_refused(strategy: str) -> None:
    with pytest.raises(StrategyError, match="Chunk parameters must be like"):
        get_strategy(strategy).check({"fit_encoder": "yes"})


@pytest.mark.django_db(transaction=True)
def test_form_and_command_offer_it(model: str, admin_client: Client) -> None:
    collection = import_texts([LONG], ["apple"]).collection
    with pytest.raises(IndexingError, match="name one, or leave it out"):
        create_index(collection, name="words", chunk_parameters=FIT)
    address = reverse("admin:retrieval_index_add")
    fields = {
        "collection": collection.pk,
        "name": "form",
        "encoder": "keyword:apple",
        "lexical": "on",
        "strategy": "flat",
    }
    fields |= {"precision": "float32", "fit_encoder": "on"}
    refused = admin_client.post(address, fields | {"encoder": ""})
    assert "Only an encoder has an input that ends: choose one" in refused.content.decode()
    assert admin_client.post(address, fields).status_code == 302
    assert Index.objects.get(name="form").chunk_parameters == FIT
    call_command("build_index", str(collection), "--name", "command", "--encoder", model, "--fit-encoder")
    assert Index.objects.get(name="command").chunk_parameters == FIT
    assert Collection.objects.count() == 1
