"""Collections and their documents on the wire."""

from rest_framework import serializers

from apps.api.fields import AnyObject, FilePart, Flag, ListOf, Moment, StrictSerializer, Text, Whole
from apps.api.paging import Page, PageQuery
from apps.collections.models import Collection
from apps.collections.records import LIMITS, SECTION_ID_LENGTH, URI_BYTES
from benchbench.names import MAX_LENGTH

MOST_DOCUMENTS = 1000
MOST_CHARACTERS = 2**31 - 1
FILE = (
    "A BEIR corpus (.jsonl, .jsonl.gz), or a .zip: of a folder of Markdown, HTML and text files, of sectioned "
    "documents, or of a corpus."
)
PREFIX = "The uri of each file of a zip is this prefix followed by its path. Default: the path is the uri."


class NewCollection(StrictSerializer):
    """An empty collection."""

    name = Text(max_length=MAX_LENGTH)
    description = Text(required=False, default="", allow_blank=True, max_length=10_000)


class CollectionUpload(NewCollection):
    """A file of documents, and what to call them."""

    file = FilePart(help_text=FILE)
    uri_prefix = Text(required=False, default="", allow_blank=True, max_length=URI_BYTES, help_text=PREFIX)


class CollectionChange(StrictSerializer):
    """The fields to change; the others stay."""

    name = Text(required=False, max_length=MAX_LENGTH)
    description = Text(required=False, allow_blank=True, max_length=10_000)


class CollectionFacts(serializers.Serializer):
    """A collection in the API."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField(help_text="May be empty.")
    kind = serializers.ChoiceField(
        Collection.Kind.choices, help_text="`external` holds only the ids that external runs name."
    )
    owner_id = serializers.IntegerField(allow_null=True, help_text="null: it belongs to the whole staff.")
    document_count = serializers.IntegerField(min_value=0)
    fingerprint = serializers.CharField(help_text="Changes with its documents. Empty: it never had documents.")
    created_at = Moment()
    updated_at = Moment()


class CollectionPage(Page):
    """A page of collections."""

    collections = CollectionFacts(many=True)


class SectionStated(StrictSerializer):
    """A part of a document's text that judgments may point at."""

    section_id = Text(max_length=SECTION_ID_LENGTH, trim_whitespace=False, help_text="Local to the document.")
    heading = Text(required=False, default="", allow_blank=True, trim_whitespace=False)
    level = Whole(required=False, default=1, min_value=1, max_value=100)
    start = Whole(min_value=0, max_value=MOST_CHARACTERS, help_text="First character in the document's text.")
    end = Whole(min_value=0, max_value=MOST_CHARACTERS, help_text="One past the last character.")


class DocumentStated(StrictSerializer):
    """A document as its source states it."""

    external_id = Text(max_length=LIMITS["external_id"], trim_whitespace=False, help_text="One in the collection.")
    text = Text(allow_blank=True, trim_whitespace=False)
    title = Text(required=False, default="", allow_blank=True, trim_whitespace=False)
    uri = Text(required=False, default="", allow_blank=True, trim_whitespace=False, max_length=URI_BYTES)
    file_name = Text(
        required=False, default="", allow_blank=True, trim_whitespace=False, max_length=LIMITS["file_name"]
    )
    content_hash = Text(
        required=False,
        default="",
        allow_blank=True,
        max_length=LIMITS["content_hash"],
        help_text="SHA-256 of the file's bytes. Default: that of title, newline, text.",
    )
    metadata = AnyObject(required=False, default=dict, help_text="What filters of queries may ask for.")
    sections = SectionStated(many=True, required=False, default=list, help_text="In the document's order, depth first.")


class DocumentRecords(StrictSerializer):
    """Documents to be in a collection: new ones are added, known ones brought to this state."""

    documents = ListOf(child=DocumentStated(), min_length=1, max_length=MOST_DOCUMENTS)
    remove_missing = Flag(required=False, default=False, help_text="Remove the documents that are not stated here.")


class DocumentsUpload(StrictSerializer):
    """The same as a file, for any number of documents."""

    file = FilePart(help_text=FILE)
    uri_prefix = Text(required=False, default="", allow_blank=True, max_length=URI_BYTES, help_text=PREFIX)
    remove_missing = Flag(required=False, default=False, help_text="Remove the documents that the file lacks.")


class ImportFacts(serializers.Serializer):
    """What an import did."""

    created = serializers.IntegerField(min_value=0)
    updated = serializers.IntegerField(min_value=0, help_text="Also documents that were removed and have come back.")
    unchanged = serializers.IntegerField(min_value=0)
    removed = serializers.IntegerField(min_value=0)
    duplicates = serializers.IntegerField(min_value=0, help_text="Stated more than once, equal each time.")
    empty = serializers.IntegerField(min_value=0, help_text="Stated without a text: no search finds them by words.")
    document_count = serializers.IntegerField(min_value=0, help_text="Documents in the collection now.")


class DocumentQuery(PageQuery):
    """Which documents."""

    external_id = Text(required=False, trim_whitespace=False, max_length=LIMITS["external_id"])


class DocumentSummary(serializers.Serializer):
    """A document in a list."""

    id = serializers.UUIDField(source="uuid")
    external_id = serializers.CharField()
    uri = serializers.CharField(help_text="May be empty.")
    content_hash = serializers.CharField()
    file_name = serializers.CharField(help_text="May be empty.")
    title = serializers.CharField(help_text="May be empty.")
    created_at = Moment()
    updated_at = Moment()


class DocumentPage(Page):
    """A page of documents, by `external_id`, without those that were removed."""

    documents = DocumentSummary(many=True)


class SectionFacts(serializers.Serializer):
    """A part of a document's text."""

    section_id = serializers.CharField()
    heading = serializers.CharField(help_text="May be empty.")
    level = serializers.IntegerField(min_value=0)
    start = serializers.IntegerField(min_value=0, help_text="First character in the document's text.")
    end = serializers.IntegerField(min_value=0, help_text="One past the last character.")


class DocumentFacts(DocumentSummary):
    """A whole document."""

    text = serializers.CharField(help_text="May be empty.")
    metadata = serializers.DictField()
    removed_at = Moment(allow_null=True, help_text="When it was removed: rankings may still name it.")
    sections = SectionFacts(many=True)
