"""Forms of pages as a browser would send them."""

from html.parser import HTMLParser
from typing import Any

from django.test import Client


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, list[str]] = {}
        self.chosen = self.text = ""
        self.is_post = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        supplied = dict(attrs)
        if tag == "form":
            self.is_post = supplied.get("method", "").lower() == "post" and not supplied.get("action", "").endswith(
                "logout/"
            )
        name, kind = supplied.get("name", ""), supplied.get("type", "text")
        if not self.is_post or "disabled" in supplied:
            return
        if tag == "input" and name and kind not in ("submit", "file"):
            if kind not in ("checkbox", "radio") or "checked" in supplied:
                self.values.setdefault(name, []).append(
                    supplied.get("value", "on" if kind in ("checkbox", "radio") else "")
                )
        elif tag == "select":
            self.chosen = name
        elif tag == "option" and "selected" in supplied and self.chosen:
            self.values.setdefault(self.chosen, []).append(supplied.get("value", ""))
        elif tag == "textarea":
            self.text = name
            self.values[name] = [""]

    def handle_endtag(self, tag: str) -> None:
        self.text = "" if tag == "textarea" else self.text
        self.chosen = "" if tag == "select" else self.chosen

    def handle_data(self, data: str) -> None:
        if self.text:
            self.values[self.text][0] += data.removeprefix("\r\n").removeprefix("\n")


def open_form(client: Client, address: str) -> dict[str, list[str]]:
    """Return what the forms of a page would send as they are shown, without buttons; lines end as browsers end them."""
    fields = _Fields()
    fields.feed(client.get(address, follow=True).content.decode())
    fields.close()
    hidden = ("action", "csrfmiddlewaretoken")
    return {name: [*map(end_lines, values)] for name, values in fields.values.items() if name not in hidden}


def end_lines(value: str) -> str:
    return "\r\n".join(value.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
