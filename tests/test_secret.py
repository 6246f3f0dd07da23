"""Secrets in the spellings in which servers repeat them, and texts that only look like one."""

import base64
import html
import json
import quopri
from urllib.parse import quote, quote_plus

import pytest

from benchbench.texts.secret import Secret
from tests.growth import measure_pace, measure_seconds

SECRETS = ["s3cr+t/Key==9", 'pa"ss\\word&<17>', "Ünïcode-key-42", "correct horse battery staple", "sk-proj-Ab9_Cd8-Ef7"]
BASIC = base64.b64encode(b"elastic:changeme-please").decode()


def escape(pattern):
    return lambda text: "".join(pattern.format(ord(character)) for character in text)


def within(encode, before):
    """The secret in the middle of a longer text that is encoded as a whole."""
    return lambda text: encode(b"x" * before + text.encode() + b"; more of it").decode()


SPELLINGS = {
    "itself": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "json": json.dumps,
    "json without ASCII": lambda text: json.dumps(text, ensure_ascii=False).replace("/", "\\/"),
    "every character by \\u": escape("\\u{:04x}"),
    "every character by \\u in capitals": escape("\\u{:04X}"),
    "every character by \\u{}": escape("\\u{{{:x}}}"),
    "some characters by \\u": lambda text: text.replace("=", "\\u003d").replace("+", "\\u002B").replace("e", "\\u0065"),
    "every character by \\U": escape("\\U{:08x}"),
    "every character by U+": escape("U+{:04X} "),
    "every character by \\x{}": escape("\\x{{{:x}}}"),
    "every character by \\ with six digits": escape("\\{:06x}"),
    "every character in octal": escape("\\{:03o}"),
    "every character in octal of four digits": escape("\\{:04o}"),
    "every character by \\x": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode("latin-1")),
    "percent": lambda text: quote(text, safe=""),
    "percent in small letters": lambda text: quote(text, safe="").lower(),
    "every character by percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "percent eight times": lambda text: text.replace("e", f"%{'25' * 7}65").replace("o", f"%{'25' * 7}6f"),
    "percent for forms": quote_plus,
    "entities": html.escape,
    "decimal entities": escape("&#{:d};"),
    "padded entities": escape("&#{:07d};"),
    "hexadecimal entities": escape("&#x{:X};"),
    "entities of entities": lambda text: "".join(f"&{'amp;' * 6}#{ord(each)};" for each in text),
    "entities in json": lambda text: json.dumps(html.escape(text)),
    "percent in entities": lambda text: html.escape(quote(text)),
    "base64": within(base64.b64encode, 0),
    "base64 after one byte": within(base64.b64encode, 1),
    "base64 after two bytes": within(base64.b64encode, 2),
    "base64 for addresses": within(base64.urlsafe_b64encode, 4),
    "base64 in lines": within(base64.encodebytes, 60),
    "base64 of base64": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "hexadecimal of UTF-16": lambda text: text.encode("utf-16-be").hex(),
    "base32": within(base64.b32encode, 3),
    "base64 in percent": lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal in capitals": lambda text: text.encode().hex(":").upper(),
    "numbers of bytes": lambda text: json.dumps(list(text.encode())),
    "hexadecimal numbers of bytes": lambda text: ", ".join(map(hex, text.encode())),
    "octal numbers of bytes": lambda text: " ".join(f"{byte:o}" for byte in text.encode()),
    "binary numbers of bytes": lambda text: " ".join(f"{byte:08b}" for byte in text.encode()),
    "quoted printable": lambda text: quopri.encodestring(text.encode(), quotetabs=True).decode(),
    "with blanks": " ".join,
    "with soft hyphens": "\u00ad".join,
    "full width": lambda text: "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in text),
    "with marks": lambda text: f"{text[:4]}<em>{text[4:]}</em>",
    "with a comment": lambda text: f"{text[:4]}<!-- key -->{text[4:]}",
    "in parts of CDATA": lambda text: f"<![CDATA[{text[:4]}]]><![CDATA[{text[4:]}]]>",
    "with escaped marks": lambda text: json.dumps(f"{text[:4]}<em class='a'>{text[4:]}</em>"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_secret_is_found_in_every_spelling(spelling):
    for secret in SECRETS:
        text = f"The key {SPELLINGS[spelling](secret)} is wrong"
        assert Secret(secret).is_in(text.encode()), secret
        assert Secret(secret).hide(text, 1000) == "(a message that repeats the secret)"
    for piece in ("elastic:changeme-please", "changeme-please", BASIC):
        for secret in (BASIC, f"Basic {BASIC}"):
            assert Secret(secret).is_in(SPELLINGS[spelling](piece)), "the password of a basic header"


def test_key_is_found_without_the_scheme_of_its_header():
    assert Secret("Bearer abcdef123456").is_in("the token ABCDEF%31%32%33456")


@pytest.mark.parametrize("secret", SECRETS)
def test_other_texts_hold_no_secret(secret):
    hits = [
        {"id": f"d{number}", "title": f"Boots & shoes, {number}%20 “red” \\u00e9", "score": 0.1}
        for number in range(500)
    ]
    text = json.dumps({"hits": hits, "vector": [0.123456, 0.654321] * 50})
    assert not Secret(secret).is_in(text.encode())
    assert Secret(secret).hide("Not found: 404", 100) == "Not found: 404"


def test_no_secret_is_found_nowhere():
    assert not Secret("").is_in(b"")
    assert not Secret("").is_in(b"any text")
    assert Secret("").hide("any text", 4) == "any…"


def test_short_secret_may_be_part_of_an_answer_only():
    assert not Secret("admin").is_in(b'{"title": "admin"}')
    assert "repeats" in Secret("admin").hide("wrong user admin", 100)
    assert "repeats" in Secret("a=1").hide("wrong key a=1", 100)


def test_long_answer_is_searched_in_time():
    body = (b'{"title": "Boots \\u00e9 & 100%25", "text": "=3D \\"quoted\\"' + "é".encode() + b'"}, ') * 80_000
    secret = Secret("s3cr+t/Key==9")
    assert not secret.is_in(body[:5_000_000])
    assert measure_seconds(lambda size: secret.is_in(body[:size]), 5_000_000) < 5 * measure_pace()
