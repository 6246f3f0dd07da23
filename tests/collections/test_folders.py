"""Reading a folder of files, and the command import_collection."""

import json
import os
import random
import re
from hashlib import sha256
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from apps.collections.folders import Heading, build_sections, read_files, read_html, scan, yield_headings
from apps.collections.models import Collection
from benchbench.errors import BenchbenchError


def write(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_it_describes_a_file_and_prefixes_its_uri(tmp_path: Path) -> None:
    write(tmp_path, guides__install_dot_md="Read me.\n\n## Installing ##\n\nPress the button.\n")
    (record,) = read_files(scan(tmp_path))
    content = (tmp_path / "guides/install.md").read_bytes()
    assert record.external_id == "guides/install.md"
    assert record.uri == f"file://{tmp_path}/guides/install.md"
    assert record.file_name == "install.md"
    assert record.content_hash == sha256(content).hexdigest()
    assert record.title == "Installing"
    assert record.text == content.decode()
    (record,) = read_files(scan(tmp_path), uri_prefix="https://intranet/")
    assert record.uri == "https://intranet/guides/install.md"


def test_scan_sorts_paths_and_skips_hidden_or_unsupported_files(
    tmp_path: Path,
) -> None:
    write(tmp_path, b_dot_txt="b", B_dot_TXT="B", a__z_dot_rst="z", a__c_dot_HTM="c", a_dot_pdf="p", code_dot_py="1")
    write(tmp_path, _dot_git__x_dot_txt="hidden", _dot_hidden_dot_md="hidden")
    result = scan(tmp_path)
    assert result.files == ("B.TXT", "a/c.HTM", "a/z.rst", "b.txt")
    assert result.skipped == ("a.pdf", "code.py")


def test_it_follows_no_link_that_leaves_the_folder(tmp_path: Path) -> None:
    write(tmp_path, outside__secret_dot_txt="secret", inside__a_dot_txt="a")
    inside = tmp_path / "inside"
    (inside / "leak.txt").symlink_to(tmp_path / "outside/secret.txt")
    (inside / "leaks").symlink_to(tmp_path / "outside")
    (inside / "again.txt").symlink_to(inside / "a.txt")
    assert scan(inside).files == ("a.txt", "again.txt")


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("a.md", "```\n# not this\n```\ntext\n# *This* one #\n# Nor this", "*This* one"),
        ("a.markdown", "#hashtag\n\n#\n\n### Third level", "Third level"),
        ("plain-name.md", "no heading", "plain-name"),
        ("notes.txt", "# not Markdown", "notes"),
        ("a.rst", "Title\n=====\n", "a"),
        ("a.html", "<title> The\n title </title><h1>Heading</h1>", "The title"),
        ("a.htm", "<h1>Heading <em>one</em></h1><h1>two</h1>", "Heading one"),
        ("bare.html", "<p>x", "bare"),
        ("bom.md", b"\xef\xbb\xbf# Marked", "Marked"),
    ],
)
def test_it_finds_the_title(tmp_path: Path, name: str, content: str | bytes, title: str) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (record,) = read_files(scan(tmp_path))
    assert record.title == title


def test_it_reads_html_as_a_reader_sees_it() -> None:
    title, text, _ = read_html(
        "<html><head><title>T &amp; U</title><style>p {}</style><script>var a = '<p>';</script></head>"
        "<body><h1>Fruit</h1><p>Apples  and\n<b>pears</b>&nbsp;&lt;fresh&gt;.<br>Plums.</p><!-- hidden -->"
        "<ul><li>one<li>two</ul><pre>a\n  b</pre></body></html>"
    )
    assert title == "T & U"
    assert text == "Fruit\nApples and pears <fresh>.\nPlums.\none\ntwo\na\n  b"


def test_it_names_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    write(tmp_path, deep__latin_dot_txt="café".encode("latin-1"))
    with pytest.raises(BenchbenchError, match=r"^deep/latin\.txt is not UTF-8: byte 3"):
        list(read_files(scan(tmp_path)))
    Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.txt")).write_text("x")
    with pytest.raises(BenchbenchError, match="is not UTF-8: rename it"):
        list(read_files(scan(tmp_path)))


def test_it_refuses_a_folder_without_documents_and_no_folder(tmp_path: Path) -> None:
    write(tmp_path, a_dot_pdf="x")
    with pytest.raises(BenchbenchError, match=r"holds no document: looked for files that end in \.htm, "):
        read_files(scan(tmp_path))
    with pytest.raises(BenchbenchError, match="is not a folder"):
        scan(tmp_path / "absent")


def test_headings_of_markdown_begin_sections(tmp_path: Path) -> None:
    text = "before\n\n# Über *uns*!\nwe\n```\n# code\n```\n\n## Use ##\r\nit\n#\n# Use\n"
    (tmp_path / "a.md").write_bytes(text.encode())
    (record,) = read_files(scan(tmp_path))
    assert record.text == text
    assert [(one.section_id, one.heading, one.level) for one in record.sections] == [
        ("über-uns", "Über *uns*!", 1),
        ("use", "Use", 2),
        ("use-1", "Use", 1),
    ]
    assert [text[one.start : one.end] for one in record.sections] == [
        "# Über *uns*!\nwe\n```\n# code\n```\n\n",
        "## Use ##\r\nit\n#\n",
        "# Use\n",
    ]


def test_headings_of_html_begin_sections() -> None:
    source = (
        "<title>T</title><p>before</p><h1> About <em>us</em>\n</h1><p>we</p><h2></h2><script><h1>no</h1></script>"
        '<div><h3 id="use">How to <br>use</h3>it</div><p>x<h2>  !</h2>'
    )
    title, text, headings = read_html(source)
    assert (title, text) == ("T", "before\nAbout us\nwe\nHow to\nuse\nit\nx\n!")
    assert [(one.title, one.level, one.id, text[one.start :][:3]) for one in headings] == [
        ("About us", 1, "", "Abo"),
        ("How to use", 3, "use", "How"),
        ("!", 2, "", "!"),
    ]
    assert [one.section_id for one in build_sections(headings, len(text))] == ["about-us", "use", "section"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("# A")
    (tmp_path / "b.txt").write_text("B")
    (tmp_path / "c.pdf").write_text("")
    return tmp_path


@pytest.mark.django_db
def test_it_imports_a_folder_and_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("import_collection", folder, name="letters", uri_prefix="x:")
    out, err = capsys.readouterr()
    assert out == (
        'Collection "letters" holds 2 documents: 2 created, 0 updated, 0 unchanged, 0 removed, 0 duplicates. '
        "Language: English, because none was chosen.\n"
    )
    assert err == "Not read: c.pdf. Save them as .txt, .md or .html to search them.\n"
    assert list(Collection.objects.get().documents.values_list("uri", flat=True)) == ["x:a.md", "x:b.txt"]


@pytest.mark.django_db
def test_command_updates_a_collection_and_reports_json(
    folder: Path, admin_user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("import_collection", folder, name="letters", owner="admin")
    (folder / "b.txt").unlink()
    call_command("import_collection", folder, name="letters", owner="admin", keep_missing=True)
    capsys.readouterr()
    call_command("import_collection", folder, name="letters", owner="admin", json=True)
    collection = Collection.objects.get()
    assert collection.owner == admin_user
    assert json.loads(capsys.readouterr().out) == {
        "collection": str(collection.id),
        "documents": 1,
        "created": 0,
        "updated": 0,
        "unchanged": 1,
        "removed": 1,
        "duplicates": 0,
        "empty": 0,
        "notes": [],
        "warnings": [],
        "language": "",
    }


@pytest.mark.django_db
def test_errors_of_the_command_are_sentences(folder: Path) -> None:
    with pytest.raises(CommandError, match=r"^The user 'nobody' does not exist: create one with"):
        call_command("import_collection", folder, name="letters", owner="nobody")
    with pytest.raises(CommandError, match="absent does not exist"):
        call_command("import_collection", folder / "absent", name="letters")
    assert not Collection.objects.exists()


HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})[ \t]+(?P<title>.*?)(?:[ \t]+#*)?[ \t]*")


@pytest.mark.parametrize("seed", range(20))
def test_headings_are_those_of_the_definition(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(500):
        line = "".join(draw.choices(["#", " ", "\t", "a", "# ", "`"], k=draw.randint(1, 12)))
        match = HEADING.fullmatch(line)
        expected = [(match["title"], len(match["marks"]))] if match and match["title"] else []
        hits = [(heading.title, heading.level) for heading in yield_headings(line)]
        assert hits == expected, line


def test_equal_headings_get_the_free_numbers_in_order() -> None:
    headings = [Heading(title, 1, 0) for title in ("A", "A", "A-1", "A", "A-1", "A-1-1", "A")]
    names = [section.section_id for section in build_sections(headings, 0)]
    assert names == ["a", "a-1", "a-1-1", "a-2", "a-1-2", "a-1-1-1", "a-3"]


def test_a_number_of_no_character_is_replaced(tmp_path: Path) -> None:
    _, text, _ = read_html(f"<p>&#{'9' * 5000}; &#{'0' * 5000}65; &#66;</p>")
    assert text == "\ufffd A B"
