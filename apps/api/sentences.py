"""Sentences for requests that REST framework refuses: what is wrong, where, and what to do.

REST framework's own sentences are for programmers and name nothing. Those of fields stand in tables by its codes, which
the fields of `apps.api.fields` take; `{key}` is where the key stands as the client sent it
("queries[3].text"), which is known only when all of a request has been read.
"""

from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation, TooManyFieldsSent, TooManyFilesSent
from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    MethodNotAllowed,
    NotAuthenticated,
    ParseError,
    PermissionDenied,
    Throttled,
    UnsupportedMediaType,
)

KEY = "{key}"
_KEY = "{{key}}"  # REST framework formats each of these once, which leaves {key}
FIELD = {"required": f"{_KEY} is missing: state it.", "null": f"{_KEY} is null: give it a value."}
TEXT = {
    "invalid": f"{_KEY} must be a string.",
    "blank": f"{_KEY} is empty: write something there.",
    "max_length": f"{_KEY} has more than {{max_length}} characters: shorten it.",
    "min_length": f"{_KEY} has fewer than {{min_length}} characters: lengthen it.",
}
UNSTORABLE = f"{KEY} holds a character that cannot be stored (NUL or half of a surrogate pair): take it out."
UUID = {"invalid": f"{_KEY} must be an id, a UUID such as 5f0d53d6-91fd-4a0c-8c2b-6f9d1c1e2b11."}
NUMBER = {
    "invalid": f"{_KEY} must be a number.",
    "max_value": f"{_KEY} is too large: it may be at most {{max_value}}.",
    "min_value": f"{_KEY} is too small: it must be at least {{min_value}}.",
    "max_string_length": f"{_KEY} has too many digits: state a smaller number.",
    "overflow": f"{_KEY} is too large for a number: state a smaller one.",
}
FLAG = {"invalid": f"{_KEY} must be true or false."}
CHOICE = {"invalid_choice": f'{_KEY} cannot be "{{input}}": choose one of {{choices}}.'}
LIST = {
    "not_a_list": f"{_KEY} must be a list, also for a single value.",
    "empty": f"{_KEY} is an empty list: put something in.",
    "min_length": f"{_KEY} is too short: it must have at least {{min_length}} items.",
    "max_length": f"{_KEY} is too long: it may have at most {{max_length}} items.",
}
OBJECT = {
    "invalid": f"{_KEY} must be an object.",
    "not_a_dict": f"{_KEY} must be an object, names with values.",
    "empty": f"{_KEY} is an empty object: put something in.",
}
JSON = {"invalid": f"{_KEY} must be JSON."}
FILE = {
    "required": f"{_KEY} is missing: send it as a file of the form.",
    "invalid": f"{_KEY} must be a file: send it as a part of the form that has a file name.",
    "no_name": f"{_KEY} has no file name: send one.",
    "empty": f"{_KEY} is an empty file: send one with content.",
    "max_length": f"{_KEY} has a file name of more than {{max_length}} characters: shorten it.",
}
JWT = {
    "bad_authorization_header": "The header Authorization must be the word Bearer, a space, and one token.",
    "token_not_valid": "The token is invalid or has expired: exchange the refresh token, or sign in again.",
    "user_not_found": "The user of the token was deleted: sign in as another.",
    "user_inactive": "The user of the token is not active: ask an administrator.",
    "password_changed": "The password was changed since the token was given: sign in again.",
}


def about(field: str, sentence: str) -> str:
    """Return a sentence with the field that it is about, by the path of its key; "" is the whole request."""
    return sentence.replace(KEY, field or "The body")


def of_refusal(error: APIException, context: dict[str, Any]) -> str | None:
    """Return what to say of an error of REST framework or simplejwt; None where it says so itself."""
    if isinstance(error, Throttled):
        return f"Too many requests: wait {error.wait or 1:.0f} seconds, and send it again."
    if isinstance(error, NotAuthenticated):
        return "You are not signed in: send Authorization: Bearer with a token of /api/v2/auth/token or of the admin."
    if isinstance(error, MethodNotAllowed):
        methods = ", ".join(method for method in context["view"].allowed_methods if method != "HEAD")
        return f"{context['request'].method} is not possible at this address: there is {methods}."
    if isinstance(error, UnsupportedMediaType):
        read = " or ".join(parser.media_type for parser in context["view"].parser_classes)
        content_type = context["request"].content_type[:80] or "no type"
        return f"The type {content_type} is not accepted here: send Content-Type: {read}."
    if isinstance(error, ParseError):
        return "The form cannot be read: send multipart/form-data with the boundary that its header names."
    if isinstance(error, AuthenticationFailed) and isinstance(error.detail, dict):  # simplejwt's
        return JWT.get(str(error.detail.get("code")), JWT["token_not_valid"])
    if isinstance(error, PermissionDenied) and str(error).startswith("CSRF Failed: "):
        reason = str(error).removeprefix("CSRF Failed: ").rstrip(".")
        return f"The session alone is not enough ({reason}): send the header X-CSRFToken, or a token of your own."
    return None


def of_form(error: SuspiciousOperation) -> str:
    """Return what to say of a form that Django refuses."""
    if isinstance(error, RequestDataTooBig):
        return "The form holds too much data next to its file: shorten its values."
    if isinstance(error, TooManyFieldsSent | TooManyFilesSent):
        return "The form has too many parts: send only those that the address knows."
    return "The form cannot be read: send multipart/form-data as programs write it."
