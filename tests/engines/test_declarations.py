"""Declarations of engines: what a file may say, and how each error names its place."""

import os
import re

import pytest

from apps.engines.apps import check_declarations
from apps.engines.declarations import list_engines, load_engine, load_notice_address
from apps.engines.errors import EngineError
from apps.engines.review import review_file
from apps.engines.sending import build_request
from apps.engines.storing import Question, Search
from benchbench.texts.secret import Secret
from tests.engines.questions import shop

URL = "https://search.example/find"
BOOST = {"boost": {"default": 1, "minimum": 0, "maximum": 10}, "mode": {"default": "any", "choices": ["any", "all"]}}
QUERY = {"q": "{query}", "size": "{size}", "b": "{boost}", "m": "{mode}"}


def request(engine, text="red shoes", *, parameters=None, secret="", number=0, **options):
    parameters = engine.complete(parameters or {})
    return build_request(Search(engine, parameters, 10), Question(text, **options), 10, number, Secret(secret))


# What could be where the name of a variable belongs; all hold a part of the key.
TYPED = r"""
sk-live-4f9a | 4f9a8b7c6d5e | Bearer 4f9a | 4f9a+b/c== | "4f9a\u003d" | !4f9a | !!4f9a | !!int 4f9a | *4f9a | &x *4f9a
%4f9a | [4f9a] | {4f9a: 1} | {k: 4f9a} | '4f9a | {4f9a} | 4f9aключ | AKIA4F9A | sk_4f9a | @4f9a | `4f9a | 4f9a: 4f9a
'{4f9a}' | 4f9aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
"""
TYPED = [*map(str.strip, re.split("[|\n]", TYPED.strip())), "|\n      4f9a 4f9a"]


class TestFile:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"url": None}, "engines.shop is missing the key url"),
            ({"colour": 1}, "engines.shop has the unknown key 'colour'"),
            ({"url": "ftp://x.example"}, "engines.shop.url must begin with http:// or https:// and a fixed host"),
            ({"url": "https://{query}/"}, "engines.shop.url must begin with http"),
            ({"url": "https://me:key@x.example/"}, "engines.shop.url must have neither a user nor a fragment"),
            ({"query": {"q": "{query}", "x": "{colour}"}}, "engines.shop.query has the unknown placeholder {colour}"),
            ({"query": {"q": "{query}", "x": "{secret}"}}, "engines.shop.query has the unknown placeholder {secret}"),
            ({"query": {"q": "boots"}}, "engines.shop.query must contain {query}"),
            ({"query": {"q": "{vector}"}}, "engines.shop.encoder and a template with {vector} need each other"),
            ({"body": {"q": "{query}"}}, "engines.shop.method must be POST"),
            ({"headers": {"K": "{secret}"}}, "engines.shop.secret and a header with {secret} need each other"),
            ({"secret": "KEY"}, "engines.shop.secret and a header with {secret} need each other"),
            ({"parameters": BOOST}, "engines.shop.parameters.boost is not used in any template"),
            (
                {"parameters": {"boost": {"default": [1]}}},
                "engines.shop.parameters.boost.default must be a text, a number",
            ),
            (
                {"parameters": {"boost": {"default": 1, "maximum": 0}}, "query": {"q": "{query}{boost}"}},
                "engines.shop.parameters.boost.default must be at most 0",
            ),
            ({"answer": {"hits": "hits", "id": "a[b"}}, "engines.shop.answer.id must be a JMESPath expression, not "),
            ({"answer": {"hits": "hits"}}, "engines.shop.answer is missing the key id"),
            ({"document": {"by": "name"}}, "engines.shop.document.by must be"),
            ({"timeouts": {"total": 0}}, "engines.shop.timeouts.total must be a number above 0, not 0"),
            ({"preset": "altavista"}, "engines.shop.preset must be one of chroma, datasette"),
            ({"preset": "typesense"}, "engines.shop.variables is missing the key address (The address of the server"),
            ({"variables": {"size": 3, "x": 1}}, "engines.shop.variables.x is not used"),
            ({"variables": {"colour": 3}}, "engines.shop.variables.colour is not used"),
        ],
    )
    def test_a_wrong_key_is_named_with_its_path(self, declare, changes, message):
        entry = {key: value for key, value in {**shop(URL), **changes}.items() if value is not None}
        declare({"shop": entry, "right": shop(URL)})
        with pytest.raises(EngineError) as refused:
            load_engine("shop")
        assert refused.value.message.startswith(f"engines.yaml, {message}")
        assert refused.value.message.endswith("The engine shop is refused until line 1 of engines.yaml is corrected.")
        assert [engine.alias for engine in list_engines()] == ["right"]
        [check] = check_declarations()
        assert (check.id, check.msg) == ("benchbench.W004", refused.value.message)

    def test_a_wrong_entry_is_refused_alone(self, settings, tmp_path):
        path = tmp_path / "engines.yaml"
        settings.BENCHBENCH_ENGINES = str(path)
        path.write_text(
            "engines:\n  right: {preset: json, variables: {address: 'https://a.example/find'}}\n  empty:\n  Shop: {}\n"
            f"  lost:\n    preset: json\n    colour: red\nnotices:\n  team: {{url: '{URL}'}}\n  gone:\n    url: 3\n"
        )
        assert (load_engine("right").host, load_notice_address("team").url) == ("a.example", URL)
        for load, alias, line in (
            (load_engine, "empty", 3),
            (load_engine, "Shop", 4),
            (load_engine, "lost", 5),
            (load_notice_address, "gone", 11),
        ):
            with pytest.raises(EngineError, match=f"{alias} is refused until line {line} of engines.yaml is corrected"):
                load(alias)
        assert [check.id for check in check_declarations()] == ["benchbench.W004"] * 4

    @pytest.mark.parametrize(
        ("entry", "line", "problem"),
        [
            ("{url: a,\n    url: b}", 5, "engines.lost.url occurs twice, the second time in line 5"),
            ("{url: a,\n    headers: {K: *fixed}}", 5, "engines.lost.headers.K is an alias: write out its value"),
            ("*lost", 4, "engines.lost is an alias"),
            ("&x {url: [*x]}", 4, r"engines.lost.url\[0\] is an alias"),
            ("!!set {url: a}", 4, "engines.lost has a tag"),
            ("{url: a,\n    version: !secret b}", 5, "engines.lost.version has a tag"),
            ("{? [url]\n    : a}", 4, "engines.lost has a key that is not a text"),
            ('{url: "\\0"}', 4, "engines.lost holds a character that cannot be stored"),
        ],
    )
    def test_odd_yaml_within_an_entry_is_refused_alone(self, settings, tmp_path, entry, line, problem):
        path = tmp_path / "engines.yaml"
        settings.BENCHBENCH_ENGINES = str(path)
        right = "{preset: json, variables: &fixed {address: 'https://a.example/find'}}"
        path.write_text(f"notices: {{team: {{url: '{URL}'}}}}\nengines:\n  right: {right}\n  lost: {entry}\n")
        assert (load_engine("right").host, load_notice_address("team").url) == ("a.example", URL)
        refused = rf"{problem}.*\. The engine lost is refused until line {line} of engines\.yaml is corrected"
        with pytest.raises(EngineError, match=refused):
            load_engine("lost")
        assert [(each.name, each.line) for each in review_file().wrong] == [("engines.lost", line)]

    @pytest.mark.parametrize(
        "text", ["engines: [", "- shop", "engines: [shop]", "servers: {}", "engines: {a, a}", "engines: !x {}"]
    )
    def test_no_entry_of_an_unreadable_file_is_used(self, settings, tmp_path, text):
        path = tmp_path / "engines.yaml"
        path.write_text(f"notices: {{team: {{url: '{URL}'}}}}\n{text}" if text[0] != "-" else text)
        settings.BENCHBENCH_ENGINES = str(path)
        with pytest.raises(EngineError, match=r"engines\.yaml"):
            load_notice_address("team")
        assert list_engines() == []
        [check] = check_declarations()
        assert check.id == "benchbench.W004"

    def test_a_secret_is_not_sent_in_plain_text(self, declare):
        entry = shop("http://x.example/", secret="KEY", headers={"K": "{secret}"})
        declare({"shop": entry | {"private": False}})
        with pytest.raises(EngineError, match=r"its secret .* sent in plain text.*private: true"):
            load_engine("shop")
        declare({"shop": entry})
        assert load_engine("shop").private

    def test_a_changed_file_is_read_again(self, declare, settings):
        settings.BENCHBENCH_ENGINES = ""
        assert list_engines() == []
        with pytest.raises(EngineError, match="The engine shop is not declared in BENCHBENCH_ENGINES: "):
            load_engine("shop")
        for version in ("1", "2"):
            declare({"shop": shop(URL, version=version)})
            assert load_engine("shop").version == version
        with pytest.raises(EngineError, match="choose one of shop"):
            load_engine("store")

    def test_missing_secret_is_a_warning_with_its_key(self, declare, monkeypatch):
        notices = {"team": {"url": URL, "secret": "TEAM_HOOK", "headers": {"X": "{secret}"}}}
        declare({"shop": shop(URL)}, notices)
        [check] = check_declarations()
        assert check.msg.startswith("The receiver team needs the environment variable that its key secret names")
        monkeypatch.setitem(os.environ, "TEAM_HOOK", "value")
        assert check_declarations() == []
        assert load_notice_address("team").read_secret().reveal() == "value"

    @pytest.mark.parametrize("section", ["engines", "notices"])
    @pytest.mark.parametrize("typed", TYPED)
    def test_key_typed_for_its_name_is_never_shown(self, settings, tmp_path, section, typed):
        lines = [f"{section}:", "  shop:", f"    url: {URL}", f"    secret: {typed}", "    headers: {K: '{secret}'}"]
        if section == "engines":
            lines += ["    query: {q: '{query}'}", "    answer: {id: id}"]
        path = tmp_path / "engines.yaml"
        path.write_text("\n".join(lines))
        settings.BENCHBENCH_ENGINES = str(path)
        [check] = check_declarations()
        assert "4f9a" not in f"{check.msg} {check.hint}".lower()

    def test_a_preset_without_a_secret_sends_no_key(self, declare):
        variables = {"address": "https://x.example", "collection": "c", "query_by": "title", "title": "title"}
        declare({"shop": {"preset": "typesense", "variables": variables, "page_size": 5}})
        engine = load_engine("shop")
        assert (engine.headers, engine.page_size, engine.answer.title) == ({}, 5, "document.title")
        assert engine.url == "https://x.example/collections/c/documents/search"


class TestParameters:
    @pytest.fixture
    def engine(self, declare):
        declare({"shop": shop(URL, parameters=BOOST, query=QUERY)})
        return load_engine("shop")

    def test_values_complete_the_defaults(self, engine):
        assert engine.complete({}) == {"boost": 1, "mode": "any"}
        assert engine.complete({"boost": 2.5}) == {"boost": 2.5, "mode": "any"}

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"bost": 2}, "The engine shop has no parameter bost: choose one of boost, mode."),
            ({"boost": 11}, "boost of the engine shop must be at most 10, not 11."),
            ({"boost": "2"}, 'boost of the engine shop must be a number, not "2".'),
            ({"boost": True}, "boost of the engine shop must be a number, not true."),
            ({"boost": float("nan")}, "boost of the engine shop must be a number, not NaN."),
            ({"mode": "none"}, 'mode of the engine shop must be one of any, all, not "none".'),
            ({"mode": 1.1}, "mode of the engine shop must be a text in quotes, not 1.1."),  # perhaps written as 1.10
            ({"boost": [1]}, "boost of the engine shop must be a number, not [1]."),
        ],
    )
    def test_a_wrong_value_is_a_sentence(self, engine, parameters, message):
        with pytest.raises(EngineError) as refused:
            engine.complete(parameters)
        assert refused.value.message == message


class TestTemplates:
    def test_fields_of_an_address_are_encoded(self, declare):
        declare(
            {"shop": shop(f"{URL}?fixed=1", parameters=BOOST, query=QUERY | {"f": ["a", "{query}"], "n": "{filters}"})}
        )
        url = request(load_engine("shop"), "a&b=c {size}").url
        assert url == f"{URL}?fixed=1&q=a%26b%3Dc%20%7Bsize%7D&size=10&b=1&m=any&f=a&f=a%26b%3Dc%20%7Bsize%7D&n=%7B%7D"

    def test_values_of_a_body_keep_their_types(self, declare):
        body = {
            "q": "{query}",
            "n": "{size}",
            "from": "{offset}",
            "v": "{vector}",
            "f": "{filters}",
            "t": "top {size} {x y}",
        }
        engine = shop(URL, method="POST", query={}, body=body | {"words": "{any_word(query)}"}, encoder="keyword:a")
        declare({"shop": engine})
        sent = request(load_engine("shop"), 'red "SHOES" -x', number=2, filters={"a": 1}, vector=[0.5])
        assert sent.headers["Content-Type"] == "application/json"
        assert sent.data.decode() == (
            '{"q": "red \\"SHOES\\" -x", "n": 10, "from": 20, "v": [0.5], "f": {"a": 1}, "t": "top 10 {x y}", '
            '"words": "\\"red\\" OR \\"SHOES\\" OR \\"x\\""}'
        )

    def test_a_form_is_encoded(self, declare):
        declare({"shop": shop(URL, method="POST", query={}, form={"q": "{query}", "page": "{page}{page0}"})})
        sent = request(load_engine("shop"), "a b", number=1)
        assert (sent.headers["Content-Type"], sent.data) == ("application/x-www-form-urlencoded", b"q=a%20b&page=21")

    def test_a_value_cannot_leave_its_segment(self, declare):
        declare({"shop": shop("https://x.example/c/{shelf}/q", parameters={"shelf": {"default": "a"}})})
        engine = load_engine("shop")
        path = request(engine, parameters={"shelf": "../b?c#d/@e"}).url.partition("?")[0]
        assert path == "https://x.example/c/..%2Fb%3Fc%23d%2F%40e/q"
        with pytest.raises(EngineError, match=r"'\.\.' cannot be part of an address"):
            request(engine, parameters={"shelf": ".."})

    def test_a_parameter_is_not_a_template(self, declare):
        """A user's value must not take the place of another, least of all of the secret."""
        declare({"shop": shop(URL, secret="KEY", headers={"K": "{secret} {m}"}, parameters={"m": {"default": "a"}})})
        sent = request(load_engine("shop"), "{secret}", parameters={"m": "{secret}"}, secret="hidden")
        assert sent.headers["K"] == "hidden {secret}"
        assert "hidden" not in sent.url
