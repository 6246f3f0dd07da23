"""Accounts: who may change users makes no one more than they are, and guesses few passwords."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q
from django.test import Client
from django.urls import reverse

from apps.accounts.roles import list_role_permissions, make_roles
from apps.records.models import Run
from benchbench.access import ROLES, list_colleagues, list_teams
from benchbench.site.panels import build_list_url, change_url

PASSWORD = "correct horse 7"


def permissions(*codenames: str) -> Any:
    return Permission.objects.filter(codename__in=codenames)


@pytest.fixture
def manager(db: None) -> User:
    """Staff who may change users, and view runs."""
    user = User.objects.create_user("manager", is_staff=True)
    user.user_permissions.set(permissions("add_user", "change_user", "delete_user", "view_user", "view_run"))
    user.groups.add(Group.objects.create(name="mine"))
    return user


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada", is_staff=True)


@pytest.fixture
def client(manager: User) -> Client:
    client = Client()
    client.force_login(manager)
    return client


def change(client: Client, user: User, **more: Any) -> int:
    """Send the form of an account as a browser would, with something else in it; return the status."""
    fields: dict[str, Any] = {"username": user.username, "is_staff": "on", "is_active": "on"}
    for name in ("groups", "user_permissions"):
        fields[name] = [row.pk for row in getattr(user, name).all()]
    times = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    return client.post(change_url(user), fields | times | more).status_code


def test_authorised_manager_can_change_an_account(client: Client, ada: User) -> None:
    assert change(client, ada, first_name="Ada", groups=[Group.objects.get(name="mine").pk]) == 302
    ada.refresh_from_db()
    assert (ada.first_name, ada.groups.get().name) == ("Ada", "mine")


def test_only_superusers_can_create_superusers(client: Client, ada: User, manager: User) -> None:
    for user in (ada, manager):
        change(client, user, is_superuser="on")
    form = {"username": "eve", "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    client.post(reverse("admin:auth_user_add"), form | {"is_superuser": "on"})
    assert User.objects.filter(username="eve").exists()
    assert not User.objects.filter(is_superuser=True).exists()


@pytest.mark.parametrize("whom", ["ada", "manager"])
def test_users_cannot_grant_permissions_they_lack(client: Client, ada: User, manager: User, whom: str) -> None:
    user = User.objects.get(username=whom)
    before = set(user.user_permissions.all()), set(user.groups.all())
    remaining = Group.objects.create(name="others")
    mighty = Group.objects.create(name="mighty")
    mighty.permissions.set(permissions("delete_run"))
    supplied = permissions("delete_run").get()
    assert change(client, user, user_permissions=[supplied.pk]) == 200
    for group in (remaining, mighty):
        assert change(client, user, groups=[group.pk]) == 200
    page = client.get(change_url(user)).content.decode()
    assert all(name not in page for name in ("others", "mighty", "Can delete run"))
    assert (set(user.user_permissions.all()), set(user.groups.all())) == before


@pytest.mark.parametrize("more", ["superuser", "permission", "group", "inactive superuser"])
def test_accounts_with_more_permissions_cannot_be_changed(client: Client, ada: User, more: str) -> None:
    ada.is_superuser, ada.is_active = "superuser" in more, "inactive" not in more
    ada.set_password("her own")
    ada.save()
    if more == "permission":
        ada.user_permissions.set(permissions("delete_run"))
    if more == "group":
        ada.groups.add(Group.objects.create(name="others"))
    form = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    assert client.post(reverse("admin:auth_user_password_change", args=[ada.pk]), form).status_code == 403
    assert change(client, ada, first_name="Eve") == 403
    assert client.post(reverse("admin:auth_user_delete", args=[ada.pk]), {"post": "yes"}).status_code == 403
    many = {"action": "delete_selected", "_selected_action": [ada.pk], "post": "yes"}
    client.post(build_list_url(User), many)
    ada.refresh_from_db()
    assert (ada.check_password("her own"), ada.first_name) == (True, "")


def test_manager_can_set_the_password_of_lesser_accounts(client: Client, ada: User) -> None:
    form = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    assert client.post(reverse("admin:auth_user_password_change", args=[ada.pk]), form).status_code == 302
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)


def test_groups_are_changed_by_superusers_alone(client: Client, manager: User) -> None:
    manager.user_permissions.add(*Permission.objects.filter(content_type__model="group"))
    remaining = Group.objects.create(name="others")
    personal = Group.objects.get(name="mine")
    assert client.post(reverse("admin:auth_group_add"), {"name": "new"}).status_code == 403
    assert (
        client.post(
            change_url(personal), {"name": "mine", "permissions": [permissions("delete_run").get().pk]}
        ).status_code
        == 403
    )
    assert client.post(reverse("admin:auth_group_delete", args=[personal.pk]), {"post": "yes"}).status_code == 403
    page = client.get(build_list_url(Group)).content.decode()
    assert ("mine" in page, "others" in page) == (True, False)
    assert client.get(change_url(remaining)).status_code in (302, 404)
    assert not personal.permissions.exists()


def test_deletion_of_a_group_is_told_in_numbers(admin_client: Client, roles: None) -> None:
    role = Group.objects.get(name="editor")
    role.user_set.add(User.objects.create_user("ben"))
    page = admin_client.get(reverse("admin:auth_group_delete", args=[role.pk])).content.decode()
    assert "Its 1 member loses" in page
    assert f"{role.permissions.count()} permissions" in page
    assert "relationship" not in page
    admin_client.post(reverse("admin:auth_group_delete", args=[role.pk]), {"post": "yes"})
    assert not Group.objects.filter(name="editor").exists()


def test_manager_with_full_view_can_assign_any_harmless_group(client: Client, manager: User, ada: User) -> None:
    manager.user_permissions.add(*Permission.objects.filter(Q(codename__startswith="view_all")))
    team = Group.objects.create(name="others")
    mighty = Group.objects.create(name="mighty")
    mighty.permissions.set(permissions("delete_run"))
    assert change(client, ada, groups=[mighty.pk]) == 200
    assert change(client, ada, groups=[team.pk]) == 302
    assert ada.groups.get() == team


def test_a_superuser_changes_everything(manager: User, ada: User) -> None:
    User.objects.filter(pk=manager.pk).update(is_superuser=True)
    client = Client()
    client.force_login(User.objects.get(pk=manager.pk))
    assert change(client, ada, is_superuser="on", user_permissions=[permissions("delete_run").get().pk]) == 302
    ada.refresh_from_db()
    assert ada.is_superuser


def test_an_admin_gives_roles_up_to_its_own(ada: User) -> None:
    """A role gives no team: who has one shares nothing by that, and has no colleague by that."""
    Group.objects.filter(name__in=ROLES).delete()
    make_roles(apps)
    root, editor = (User.objects.create_user(name, is_staff=True) for name in ("root", "editor"))
    root.groups.add(Group.objects.get(name="admin"))
    editor.groups.add(Group.objects.get(name="editor"))
    client = Client()
    client.force_login(root)
    for role in ROLES:
        assert change(client, ada, groups=[Group.objects.get(name=role).pk]) == 302
        assert [group.name for group in ada.groups.all()] == [role]
    assert set(list_colleagues(User.objects.get(username="editor"))) == {editor}
    assert not list_teams(User.objects.get(username="editor")).exists()


def test_roles_have_the_documented_permissions(db: None) -> None:
    """Of every model that exists: a new one wants a migration that calls `make_roles` for it."""
    Group.objects.filter(name__in=ROLES).delete()
    make_roles(apps)
    answers = {
        group.name: {f"{row.content_type.app_label}.{row.codename}" for row in group.permissions.all()}
        for group in Group.objects.filter(name__in=ROLES)
    }
    assert answers == {role: list_role_permissions(role) for role in ROLES}
    assert all(name.split(".")[1].startswith("view_") for name in answers["viewer"])
    assert not any("view_all" in name for role in ("viewer", "judge", "editor") for name in answers[role])
    assert answers["viewer"] < answers["judge"] < answers["editor"] < answers["admin"]
    assert answers["judge"] - answers["viewer"] == {"judging.add_grade"}


def test_a_site_begins_with_the_roles(groups_of_migrations: dict[str, set[str]]) -> None:
    assert groups_of_migrations == {role: list_role_permissions(role) for role in ROLES}


def test_existing_group_named_like_a_role_gains_no_permissions(db: None) -> None:
    Group.objects.filter(name="admin").delete()
    Group.objects.create(name="admin")
    make_roles(apps)
    assert not Group.objects.get(name="admin").permissions.exists()


@pytest.fixture
def rates(db: None, settings: Any, open_window: None) -> dict[str, tuple[int, int]]:
    User.objects.create_user("ada", password=PASSWORD, is_staff=True)
    settings.BENCHBENCH_API_RATES = dict(settings.BENCHBENCH_API_RATES)
    return settings.BENCHBENCH_API_RATES  # type: ignore[no-any-return]


def sign_in(name: str, password: str = "guess", *, address: int = 1) -> str:
    """Return "in", or why not."""
    fields = {"username": name, "password": password}
    page = Client().post(reverse("admin:login"), fields, REMOTE_ADDR=f"203.0.113.{address}")
    if page.status_code == 302:
        return "in"
    return str(page.context["form"].non_field_errors()[0]).partition(" ")[0]


def test_sign_in_attempts_are_limited_per_name_and_address(rates: Any) -> None:
    rates["name"] = (2, 3600)
    assert [sign_in("ada", PASSWORD) for _ in range(3)] == ["in"] * 3  # a right password does not count
    assert [sign_in(name) for name in ("ada", "Ada", "ada")] == ["Please", "Please", "Too"]
    assert sign_in("ada", PASSWORD) == "Too"  # no more than anybody learns whether this one is right
    assert sign_in("ada", PASSWORD, address=2) == "in"


def test_an_address_tries_few_names(rates: Any) -> None:
    rates["auth"] = (2, 3600)
    assert [sign_in("ada", PASSWORD) for _ in range(3)] == ["in"] * 3
    assert [sign_in(name) for name in ("bob", "max", "eve")] == ["Please", "Please", "Too"]
    assert sign_in("bob", address=2) == "Please"


def test_sign_in_without_redis_is_refused_with_a_reason(rates: Any, settings: Any) -> None:
    settings.CACHES = {"default": settings.CACHES["default"] | {"LOCATION": "redis://127.0.0.1:9"}}
    page = Client().post(reverse("admin:login"), {"username": "ada", "password": PASSWORD})
    assert "Signing in needs Redis, which does not answer" in str(page.context["form"].non_field_errors())


def test_login_says_that_a_session_ended(manager: User) -> None:
    words = "Your session ended: log in to go on."
    client = Client()
    assert words not in client.get(reverse("admin:index"), follow=True).text, "a first visit"
    client.force_login(manager)
    client.session.flush()
    assert words not in client.get(reverse("admin:jsi18n"), headers={"Sec-Fetch-Mode": "no-cors"}, follow=True).text
    client.force_login(manager)
    client.session.flush()
    assert words in client.get(build_list_url(Run), follow=True).text
    client.force_login(manager)
    assert words not in client.get(build_list_url(Run), follow=True).text, "it is said once"
