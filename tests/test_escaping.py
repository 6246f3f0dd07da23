"""Text that reaches a page: only constants are HTML, and data enters it escaped."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from apps.results.charts import figure
from tests.checkout import CHECKOUT

MODULES = sorted(
    path
    for room in ("apps", "benchbench")
    for path in (CHECKOUT / room).rglob("*.py")
    if "migrations" not in path.parts
)
TEMPLATES = sorted((CHECKOUT / "templates").rglob("*.*"))
SCRIPTS = sorted((CHECKOUT / "static" / "benchbench").glob("*.js"))
TAG = re.compile(r"</?(?:a|b|code|div|em|i|img|li|p|script|small|span|strong|table|td|th|tr|ul)[ >/]|&[a-z]+;")
# Texts that are taken for HTML, by module: why that is right.
TRUSTED = {
    "apps/judging/views/judge_page.py": "Markdown, whose HTML the renderer escapes",
    "apps/judging/views/rounds.py": "Markdown, whose HTML the renderer escapes",
    "apps/accounts/admin/users.py": "a constant of Django",
    "benchbench/site/escaping.py": "Markdown or LaTeX, for documents",
}


@cache
def read(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def calls(tree: ast.AST, *names: str) -> list[ast.Call]:
    """Return the calls of functions with one of these names."""
    hits = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in hits if name_of(call.func) in names]


def name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def relative_path(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def test_only_known_modules_declare_text_to_be_html():
    declared = Counter(
        relative_path(path) for path in MODULES for _ in calls(read(path), "mark_safe", "SafeString", "SafeText")
    )
    assert declared == dict.fromkeys(TRUSTED, 1)


def test_html_of_python_is_constant():
    wrong = [
        f"{relative_path(path)}:{call.lineno}"
        for path in MODULES
        for call in calls(read(path), "format_html", "format_html_join")
        if not isinstance(call.args[name_of(call.func) == "format_html_join"], ast.Constant)
    ]
    assert wrong == []


# Of figures, whose texts `charts.figure` escapes.
BREAKS = re.compile(r"<br>|</?extra>")


def is_built(node: ast.AST) -> bool:
    """Return whether an expression puts data into a text: an f-string, `+`, `%` or `format`."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(piece, ast.FormattedValue) for piece in node.values)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod)
    return isinstance(node, ast.Call) and name_of(node.func) in ("format", "join")


def markup_in(node: ast.AST) -> list[str]:
    """Return the constants with tags in an expression, those of calls in it left out."""
    inner = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.Call)]
    texts = [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
    return [text for text in texts if TAG.search(BREAKS.sub("", text))] + [
        text for child in inner for text in markup_in(child)
    ]


def test_no_text_with_data_has_markup_of_its_own():
    """So a label, help text or description with data in it is plain, and templates escape it."""
    wrong = [
        f"{relative_path(path)}:{node.lineno}: {markup[0]}"
        for path in MODULES
        for node in ast.walk(read(path))
        if is_built(node) and (markup := markup_in(node))
    ]
    assert wrong == []


def test_plain_texts_for_forms_have_no_markup():
    """Of HTML that is not marked as such, readers would see the letters."""
    wrong = [
        f"{relative_path(path)}:{keyword.value.lineno}"
        for path in MODULES
        for node in ast.walk(read(path))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg in ("help_text", "label", "description", "intro", "verbose_name", "title")
        and not isinstance(keyword.value, ast.Call)
        and markup_in(keyword.value)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("f'<b>{name}</b>'", True),
        ("'<b>' + name", True),
        ("'<b>%s</b>' % name", True),
        ("'<b>{}</b>'.format(name)", True),
        ("'<br>'.join(names)", False),
        ("f'{name} < 5'", False),
        ("format_html('<b>{}</b>', name)", False),
    ],
)
def test_built_markup_is_detected(expression, expected):
    node = ast.parse(expression, mode="eval").body
    assert bool(is_built(node) and markup_in(node.func if isinstance(node, ast.Call) else node)) == expected


UNESCAPED = re.compile(r"\|\s*safe|autoescape off")
# An attribute that is read as a program or as several attributes: no text may be in it.
PROGRAMS = re.compile(
    r"""\s(?:x-[\w:.-]+|@[\w.:-]+|on\w+|hx-on[\w:.-]*|hx-vals|hx-vars)=["'][^"'>]*\{[{%]|\s[\w-]+=\{\{"""
)


def test_no_template_shows_a_text_as_it_is():
    displayed = {relative_path(path): path.read_text() for path in TEMPLATES}
    assert [name for name, text in displayed.items() if UNESCAPED.search(text)] == ["templates/api/docs.js"]
    assert [f"{name}: {hits[0]}" for name, text in displayed.items() if (hits := PROGRAMS.search(text))] == []


WRITTEN = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc")


def test_scripts_write_html_only_of_our_own_templates():
    written = {relative_path(path): len(WRITTEN.findall(path.read_text())) for path in SCRIPTS}
    swapped = len(re.findall(r'swap: "innerHTML"', (CHECKOUT / "static/benchbench/live.js").read_text()))
    assert {name: count for name, count in written.items() if count} == {
        "static/benchbench/judging.js": 2,  # an item, and the rest of its text, as templates rendered them
        "static/benchbench/live.js": swapped,  # a fragment of a page
    }


def test_texts_of_figures_are_plain_but_for_line_breaks():
    trace = {"text": ["<a href=//x>A & B</a><br>c"], "hovertemplate": "%{text}<extra></extra>", "x": [1, None]}
    drawn = figure(trace | {"customdata": ["?a=1&b=2"]}, x={"title": {"text": "<b>"}}, y={}, height=1, margin=(0,) * 4)
    assert drawn["data"] == [
        {
            "text": ["&lt;a href=//x>A &amp; B&lt;/a><br>c"],
            "hovertemplate": "%{text}<extra></extra>",
            "x": [1, None],
            "customdata": ["?a=1&b=2"],
        }
    ]
    assert drawn["layout"]["xaxis"] == {"title": {"text": "&lt;b>"}}


def test_every_figure_with_texts_is_made_by_charts():
    drawing = [path for path in MODULES if "hovertemplate" in path.read_text() and path.name != "charts.py"]
    assert len(drawing) > 5
    assert [relative_path(path) for path in drawing if not calls(read(path), "figure", "plot_over_time")] == []
