"""Columns of people's tables of documents: shown before they are imported, chosen by selects, kept on the page."""

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from apps.collections.models import Collection, Document
from benchbench.site.panels import change_url
from tests.files.samples import write_file

ADD, PREVIEW = "admin:collections_collection_add", "admin:collection_preview"
FAQ = "Frage,Antworttext,Nr\nWhen?,In <May>.,7\nWhere?,At home.,8\n"
SHOP = "sku,product_name,description,price\n1,Pear,A green fruit.,2\n"


def send(client: Client, page: str, content: str | bytes, *, file_name: str = "a.csv", **fields: Any) -> Any:
    raw = content.encode() if isinstance(content, str) else content
    fields = {"name": "faq", "file": SimpleUploadedFile(file_name, raw)} | fields
    return client.post(reverse(page), fields, follow=True)


def preview(client: Client, content: str | bytes, **fields: Any) -> str:
    response = send(client, PREVIEW, content, **fields)
    assert response.status_code == 200
    assert not Collection.objects.exists()
    return str(response.content.decode())


def list_read(page: str) -> list[str]:
    """Return what each column of a preview is shown to be read as."""
    return re.findall(r"selected>([^<]*)</option>", page)


def test_preview_shows_what_columns_are_read_as(client_of_ada: Client) -> None:
    page = preview(client_of_ada, SHOP)
    assert "<strong>1 document</strong>" in page
    assert "the text is its column “description”" in page
    assert list_read(page) == ["id of the document", "title", "text", "metadata, not searched"]
    assert "A green fruit." in page
    assert "bb-note-bad" not in page
    nameless = preview(client_of_ada, SHOP, name="")
    assert "A green fruit." in nameless, "a name may follow"
    Collection.objects.create(name="faq")
    assert "<p" not in client_of_ada.post(reverse(PREVIEW)).content.decode()


def test_unknown_columns_become_selects(client_of_ada: Client) -> None:
    page = preview(client_of_ada, FAQ)
    assert "a.csv, line 2 has no column of the documents&#x27; ids: it has Frage, Antworttext, Nr" in page
    assert list_read(page) == ["metadata, not searched"] * 3
    assert "In &lt;May&gt;." in page, "the first cell of a column"
    chosen = ["title=Frage", "text=Antworttext", "id=Nr"]
    page = preview(client_of_ada, FAQ, column=chosen)
    assert list_read(page) == ["title", "text", "id of the document"]
    assert "In &lt;May&gt;." in page
    response = send(client_of_ada, ADD, FAQ, column=chosen)
    assert "Imported 2 documents." in response.content.decode()
    assert list(Document.objects.values_list("external_id", "title", "text").order_by("external_id")) == [
        ("7", "When?", "In <May>."),
        ("8", "Where?", "At home."),
    ]


def test_chosen_column_replaces_the_guess(client_of_ada: Client) -> None:
    page = preview(client_of_ada, SHOP, column=["text=product_name", "", "=price"])
    assert list_read(page) == ["id of the document", "text", "metadata, not searched", "not read"]
    values = re.findall(r'value="([^"]*)" selected', page)
    assert values == ["", "text=product_name", "", "=price"], "guesses follow the choices"
    send(client_of_ada, ADD, SHOP, column=values)
    document = Document.objects.get()
    assert (document.text, document.metadata) == ("Pear", {"description": "A green fruit."})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"column": ["id=Nr", "text=Nr2"]}, "a.csv, line 2 has no column 'Nr2': it has Frage, Antworttext, Nr."),
        ({"column": ["id=Nr", "text=Frage", "text=Antworttext"]}, "The text is chosen for two columns, 'Frage' and"),
        ({"columns": "id=Nr\nbody=Frage"}, "'body' is not a field of documents: choose one of id, text,"),
        ({"columns": "Nr"}, '"Nr" is not field=column'),
        ({"columns": "id=Nr\ntitle=Nr"}, "The column 'Nr' is chosen for 'id' and 'title': choose one."),
    ],
)
def test_bad_choices_are_refused_at_their_field(client_of_ada: Client, fields: Any, sentence: str) -> None:
    response = send(client_of_ada, ADD, FAQ, **fields)
    assert sentence in " ".join(response.context["form"].errors["columns"])
    page = preview(client_of_ada, FAQ, **fields)
    assert sentence in page.replace("&#x27;", "'").replace("&quot;", '"')
    assert not Collection.objects.exists()


def test_what_was_read_stays_on_the_page(client_of_ada: Client) -> None:
    table = "sku,product_name,description,price\n1,Pear,<p>A green fruit.</p>,2\n"
    page = send(client_of_ada, ADD, table).content.decode()
    note, warning = "the text is its column “description”", "1 text with HTML, whose tags are searched like words"
    levels = {
        str(message): message.level_tag for message in send(client_of_ada, ADD, table, name="b").context["messages"]
    }
    assert not any(note in text for text in levels), "the page has it"
    assert {tag for text, tag in levels.items() if warning in text} == {"warning"}
    assert page.count(note) == 1
    page = client_of_ada.get(change_url(Collection.objects.get(name="faq"))).content.decode()
    assert note in page
    assert warning not in page


def test_commands_choose_columns(db: None, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_file(tmp_path / "faq.csv", FAQ)
    with pytest.raises(
        CommandError, match=r"no column of the documents' ids.*\(--column id=COLUMN --column text=COLUMN"
    ):
        call_command("import_collection", str(path), name="faq")
    call_command("import_collection", str(path), "--column", "id=Nr", "--column", "text=Antworttext", name="faq")
    assert Document.objects.get(external_id="8").metadata == {"Frage": "Where?"}
    ignored = ["--column", "id=Nr", "--column", "text=Antworttext", "--ignore-column", "Frage"]
    call_command("import_collection", str(path), *ignored, name="faq")
    assert Document.objects.get(external_id="8").metadata == {}
    assert "Not read: Frage." in capsys.readouterr().err


ODD: dict[str, tuple[str, str | bytes, list[str], str]] = {
    "no name of a column": ("a.csv", ",Frage,Was\n0,When?,x\n", ["id=Frage", "text=Was", "="], ""),
    "columns with HTML": ("a.csv", "<b>id</b>,<script>\n1,x\n", ["id=<b>id</b>", "text=<script>"], ""),
    "a sign of equality": ("a.csv", "a=b,c\n1,x\n", ["id=a=b", "text=c"], ""),
    "quotes and semicolons": ("a.csv", '"a;b";"c ""d"""\n1;"x; y"\n', ["id=a;b", 'text=c "d"'], ""),
    "white space in a key": ("a.jsonl", '{" a ": "1", "b": "x"}\n', ["id= a ", "text=b"], ""),
    "UTF-16": ("a.csv", "Schlüssel;Wörter\n1;x\n".encode("utf-16"), ["id=Schlüssel", "text=Wörter"], ""),
    "bare pairs, text first": ("collection.tsv", "A green fruit of summer\t7\n", ["id=column 2", "text=column 1"], ""),
    "keys that differ": ("a.jsonl", '{"id": 1, "a": "x"}\n{"id": 2, "b": "y"}\n', ["text=a", "text=b"], ""),
    "300 columns": (
        "a.csv",
        ",".join(f"c{n}" for n in range(300)) + "\n" + ",".join("x" * 300) + "\n",
        ["id=c0"],
        "no column of the documents' texts",
    ),
    "a column twice": ("a.csv", "a,a,text\n1,2,x\n", ["id=a"], "has the column 'a' more than once: "),
    "another file since": ("a.csv", "id,text\n1,x\n", ["text=Antworttext"], "has no column 'Antworttext'"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_columns_can_be_chosen(client_of_ada: Client, name: str) -> None:
    file_name, content, chosen, refusal = ODD[name]
    page = preview(client_of_ada, content, file_name=file_name)
    assert "<script>" not in page
    assert page.count("<select") <= 100
    response = send(client_of_ada, ADD, content, file_name=file_name, column=chosen)
    if refusal:
        assert refusal in str(response.context["form"].errors.as_data())
        assert not Collection.objects.exists()
    else:
        assert Document.objects.exists(), response.context["form"].errors
