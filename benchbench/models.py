"""Abstract bases of the tables: public ids, timestamps, ownership, tags."""

import uuid
from collections.abc import Iterable
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Func, JSONField, Model, Q, QuerySet, Value

from benchbench.access import AnyUser
from benchbench.errors import ConflictError
from benchbench.reading.ids import UUID_TEXT
from benchbench.texts.words import fold_spelling, normalize

TAG_LENGTH = 50  # characters
MAX_TAGS = 20
ARCHIVED = "archived"  # the tag that takes a row out of lists and choices alone
PERMISSIONS = ("add", "change", "delete", "view", "view_all")  # of an owned model, see `benchbench.access.visible`


def add_key(field: str, key: str, value: str) -> Func:
    """Return an expression that adds a key to the JSON object `field`, so that concurrent UPDATEs keep both keys."""
    more = Value({key: value}, JSONField())
    return Func(F(field), more, template="%(expressions)s", arg_joiner=" || ", output_field=JSONField())


class PublicModel(models.Model):
    """A row with a public id: its primary key is a UUID.

    The bin keeps deleted rows of a model with an `owned_by`: the path to the row whose owner may restore them.
    """

    owned_by: ClassVar[str | None] = None

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class NamedModel(models.Model):
    """A row whose `name` no other current row of its scope has, not even in other case or Unicode form.

    `name_scope` names the fields that rows with distinct names share. Equal names are left to the database, and stored
    rows keep the names that they have.
    """

    name_scope: ClassVar[tuple[str, ...]]

    class Meta:
        abstract = True

    def save(self, **options: Any) -> None:
        fields = options.get("update_fields")
        name: str = self.name  # type: ignore[attr-defined]
        if fields is None or "name" in fields:
            rows: Any = type(self)._default_manager
            stored = rows.filter(pk=self.pk).values_list("name", flat=True)
            if self._state.adding or name not in stored:
                scope = {field: getattr(self, field) for field in self.name_scope}
                self.require_distinct(name, row=self.pk, **scope)
        super().save(**options)

    @classmethod
    def list_rivals(cls, **scope: object) -> models.QuerySet[Model]:
        """Return the rows of a scope whose names count."""
        return cls._default_manager.filter(**scope)

    @classmethod
    def require_distinct(cls, name: str, *, row: Model | None = None, **scope: object) -> None:
        """Raise ConflictError if another `row` of the scope has a name that differs only in case or Unicode form."""
        folded = fold_spelling(name)
        names = cls.list_rivals(**scope).exclude(name=name).exclude(pk=row).values_list("name", flat=True)
        twin = next((rival for rival in names.distinct() if fold_spelling(rival) == folded), None)
        if twin is not None:
            noun = cls._meta.verbose_name
            quoted = f' "{twin}"' if {"owner", "user"}.intersection(cls.name_scope) else ""  # their own
            raise ConflictError(
                f'The name "{name}" differs only in case or Unicode form from that of another {noun}{quoted}: choose '
                "another one.",
                field="name",
            )


class OwnedModel(PublicModel):
    """A root of the object tree. `benchbench.access.visible` decides who may see it.

    Without an owner (a command without --owner made it) it belongs to all staff. `made_by` names the command that
    makes such rows.
    """

    made_by: ClassVar[str]
    owned_by = ""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The user who can see and change it. Empty: all staff can.",
    )
    team = models.ForeignKey(
        "auth.Group",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Members of this group can see it too.",
    )

    class Meta:
        abstract = True
        default_permissions = PERMISSIONS

    @classmethod
    def seen_by(cls, user: AnyUser, prefix: str = "") -> Q:
        """Return the filter of the rows that staff without `view_all` see; `prefix` leads to them (`"benchmark__"`)."""
        return (
            Q(**{f"{prefix}owner": user})
            | Q(**{f"{prefix}owner__isnull": True})
            | Q(**{f"{prefix}team__in": user.groups.values("pk")})
        )


def spell_tag(text: str) -> str:
    """Return a tag in its one spelling. Raises ValidationError for one that does not print."""
    tag = normalize(text.strip(), "NFC")
    if not (0 < len(tag) <= TAG_LENGTH and tag.isprintable()):
        raise ValidationError(f"{text[:TAG_LENGTH]!r} is not a tag: give 1 to {TAG_LENGTH} printable characters.")
    return ARCHIVED if tag.casefold() == ARCHIVED else tag


class TaggedModel(models.Model):
    """A row with tags."""

    tags = ArrayField(
        models.CharField(max_length=TAG_LENGTH),
        default=list,
        db_default=[],  # for processes of the version before, while a site is upgraded
        blank=True,
        size=MAX_TAGS,
        help_text="Words to filter by, such as nightly.",
    )

    class Meta:
        abstract = True

    def clean(self) -> None:
        super().clean()
        try:
            self.tags = list(dict.fromkeys(map(spell_tag, self.tags)))
        except ValidationError as error:
            raise ValidationError({"tags": error.messages}) from None


def leave_out_archived(rows: QuerySet[Model], *, path: str = "tags", but: Iterable[object] = ()) -> QuerySet[Any]:
    """Return the rows without those that are archived, except those with the ids `but`, of a form.

    `path` leads to their tags (`"benchmark__tags"`).
    """
    chosen = [text for text in map(str, but) if UUID_TEXT.fullmatch(text)]
    return rows.exclude(Q(**{f"{path}__contains": [ARCHIVED]}) & ~Q(pk__in=chosen))
