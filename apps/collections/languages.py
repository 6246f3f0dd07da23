"""The language of a collection: chosen, or guessed from its documents until an index exists."""

from django.db.models import F, TextField, Value
from django.db.models.functions import Concat, Left

from apps.collections.models import Collection, list_live
from benchbench.database.failures import read_again
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.texts.guessing import CHARACTERS, guess_language
from benchbench.texts.languages import NAMES, find_language

SAMPLE = 500
LANGUAGE_FIELDS = ("language", "language_agreeing", "language_sampled")


class LanguageError(BenchbenchError):
    """The language is unknown."""

    code = "invalid_collection"


def read_language(text: str) -> str:
    """Return the name of a language from its name or code; "" for an empty text. Raises LanguageError."""
    if not text.strip():
        return ""
    if language := find_language(text):
        return language
    raise LanguageError(
        f"{text[:40]!r} is not a language that BenchBench knows: give its English name or its code, such as german or "
        f"de, or one of {', '.join(NAMES)}.",
        field="language",
    )


def set_language(collection: Collection, text: str) -> None:
    """Give a collection a language by name or code; an empty one is guessed from its documents.

    In a transaction. Raises LanguageError, and ConflictError while an index exists, whose words another language would
    change.
    """
    language = read_language(text)
    locked = read_again(Collection.objects.select_for_update(no_key=True), collection.pk)
    if language and language == locked.language:
        return
    if locked.indexes.exists():
        raise ConflictError(
            f'The language of "{locked}" cannot change while it has indexes: delete them first.', field="language"
        )
    collection.language, collection.language_agreeing, collection.language_sampled = language, None, None
    if not language:
        _guess(collection)
    collection.save(update_fields=[*LANGUAGE_FIELDS, "updated_at"])


def update_guess(collection: Collection) -> None:
    """Guess the language of a locked collection without indexes again, unless it was chosen. Does not save it."""
    is_chosen = collection.language and collection.language_sampled is None
    if not is_chosen and not collection.indexes.exists():
        _guess(collection)


def _guess(collection: Collection) -> None:
    """Set the language that most of SAMPLE documents are in; their hashes draw them."""
    text = Left(Concat(F("title"), Value(" "), F("text"), output_field=TextField()), CHARACTERS)
    drawn = list_live(collection).order_by("content_hash", "external_id").values_list(text, flat=True)
    if guess := guess_language(drawn[:SAMPLE]):
        collection.language = guess.language
        collection.language_agreeing, collection.language_sampled = guess.agreeing, guess.sampled
