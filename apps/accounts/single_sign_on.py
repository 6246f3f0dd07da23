"""Rules of single sign-on: who may enter, and with which account. They know nothing of OpenID Connect."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction

from benchbench.busy import clean_line
from benchbench.errors import BenchbenchError
from benchbench.site.history import note
from benchbench.texts.storable import clean_text

LONGEST_NAME = 150
LONGEST_CLAIM = 10_000


class SignInRefusedError(BenchbenchError):
    """The person is authenticated elsewhere, and may not enter here."""

    code = "sign_in_refused"
    status = 403


@dataclass(frozen=True, slots=True)
class Person:
    """A person that the provider authenticated. `email` is empty unless the provider confirms it."""

    email: str
    groups: frozenset[str]
    first_name: str = ""
    last_name: str = ""


def read_person(id_token: Mapping[str, object], userinfo: Mapping[str, object]) -> Person:
    """Return the person of a verified ID token and of the user info for the same subject.

    Raises SignInRefusedError if their subjects differ. An address outside ASCII counts as unconfirmed, because
    PostgreSQL and Python compare such letters differently.
    """
    if userinfo and userinfo.get("sub") != id_token.get("sub"):
        raise SignInRefusedError("The sign-in service answered about two different people: try again.")
    claims = userinfo if "email" in userinfo else id_token
    email, verified = claims.get("email"), claims.get("email_verified", settings.BENCHBENCH_OIDC_TRUST_EMAIL)
    confirmed = isinstance(email, str) and email.isascii() and verified in (True, "true")
    groups = [source.get(settings.BENCHBENCH_OIDC_GROUPS_CLAIM, []) for source in (id_token, userinfo)]
    names = frozenset(name for listed in groups if isinstance(listed, list) for name in listed if isinstance(name, str))
    first, last = (_read_name(claims.get(name)) for name in ("given_name", "family_name"))
    return Person(str(email).lower() if confirmed else "", names, first, last)


def _read_name(claim: object) -> str:
    return clean_text(clean_line(str(claim or "")[:LONGEST_CLAIM]), LONGEST_NAME)


@transaction.atomic
def admit(person: Person, linked: User | None) -> User:
    """Return the account of a person: `linked` by an earlier sign-in, else by address, else a new one.

    Raises SignInRefusedError, whose message says what to do.
    """
    groups = settings.BENCHBENCH_OIDC_GROUPS
    if groups and person.groups.isdisjoint(groups):
        raise SignInRefusedError("You are in none of the groups that may sign in here: ask for membership in one.")
    user = linked or _find_by_address(person) or _create(person)
    if not (user.is_active and user.is_staff):
        raise SignInRefusedError(f'The account "{user}" is not active staff: ask an administrator to enable it.')
    return user


def _find_by_address(person: Person) -> User | None:
    if not person.email:
        raise SignInRefusedError(
            "The sign-in service does not confirm your e-mail address: confirm it there, and try again."
        )
    users = User.objects.filter(email__iexact=person.email)[:2]
    if len(users) > 1:
        raise SignInRefusedError(
            f"Several accounts have the address {person.email}: ask an administrator to leave it in one of them."
        )
    return users[0] if users else None


def _create(person: Person) -> User:
    """Create the account of a person whose domain is allowed or, where no domains are set, whose group is."""
    domains = settings.BENCHBENCH_OIDC_DOMAINS
    is_allowed = person.email.rpartition("@")[2] in domains if domains else bool(settings.BENCHBENCH_OIDC_GROUPS)
    if not is_allowed or User.objects.filter(username__iexact=person.email).exists():
        raise SignInRefusedError(
            f"No account has the address {person.email}: ask an administrator to enter it in your account."
        )
    if len(person.email) > LONGEST_NAME:
        raise SignInRefusedError(
            f"The address {person.email[:40]}… is too long for a user name: ask an administrator for an account."
        )
    names = {"first_name": person.first_name, "last_name": person.last_name}
    user = User.objects.create_user(person.email, person.email, is_staff=True, **names)  # without a usable password
    user.groups.set(Group.objects.filter(name=settings.BENCHBENCH_OIDC_ROLE))
    note(user, [user], "Created at the first single sign-on.")
    return user
