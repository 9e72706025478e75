"""A link sets a password once, for one user, for a day; and logs nobody in."""

from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.flows import password_links
from accounts.flows.password_links import make_link, read_link, set_password_by_link
from accounts.flows.users import deactivate_user
from accounts.models import AuthEvent, Organisation, PinFailures, User
from core.errors import NotFoundError
from core.http.redaction import redact
from tests.admin.pages import logged_in, text_of
from tests.admin.password_mails import NEW, open_link, set_password, use
from tests.concurrency import at_once
from tests.factories import fail_admin_logins

PAGE = "/admin/password/link/"
GONE = "This link is no longer valid"


@pytest.fixture
def bob(bob: User) -> User:
    bob.set_password("an old password")
    bob.save()
    return bob


def opened(link: str) -> str:
    return f"{PAGE}?link={link}"


def is_unchanged(user: User) -> bool:
    return User.objects.get(pk=user.pk).check_password("an old password")


def test_the_link_leaves_the_url_for_the_session(bob: User) -> None:
    client = Client()
    taken = client.get(opened(make_link(bob)))
    page = client.get(PAGE)

    assert (taken.status_code, taken["Location"]) == (302, PAGE)
    assert taken["Referrer-Policy"] == "no-referrer"
    assert "no-store" in taken["Cache-Control"]
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    assert "mhl_" not in text_of(page)


def test_opening_a_link_changes_nothing(bob: User) -> None:
    open_link(opened(make_link(bob)))

    assert is_unchanged(bob)


def test_the_new_password_is_set_and_recorded(bob: User, acme: Organisation) -> None:
    response = use(opened(make_link(bob)))

    event = AuthEvent.objects.get()
    bob.refresh_from_db()
    assert response["Location"] == reverse("admin:login")
    assert bob.check_password(NEW)
    assert (event.kind, event.reason) == ("password.set", "password-set-by-link")
    assert (event.user, event.organisation) == (bob, acme)


def test_a_password_link_does_not_log_in(bob: User) -> None:
    client = open_link(opened(make_link(bob)))
    set_password(client)

    page = client.get("/admin/", follow=True)
    assert page.redirect_chain[-1][0].startswith(reverse("admin:login"))
    assert "Your new password is set." in text_of(page)


def test_open_logins_of_the_user_end(bob: User) -> None:
    bobs = logged_in(bob)
    assert bobs.get("/admin/").status_code == 200
    use(opened(make_link(User.objects.get(pk=bob.pk))))

    assert bobs.get("/admin/").status_code == 302


def test_another_users_login_in_the_same_browser_ends_too(bob: User, as_root: Client) -> None:
    open_link(opened(make_link(bob)), as_root)
    set_password(as_root)

    assert as_root.get("/admin/").status_code == 302
    assert User.objects.get(email="root@example.com").check_password("a password of root")


def test_a_link_works_once(bob: User) -> None:
    link = opened(make_link(bob))
    first, second = use(link), use(link, "another password 2")

    assert (first.status_code, second.status_code) == (302, 410)
    assert GONE in text_of(second)
    assert User.objects.get(pk=bob.pk).check_password(NEW)


def test_of_two_browsers_that_opened_it_one_succeeds(bob: User) -> None:
    clients = [open_link(opened(make_link(bob))) for _ in range(2)]

    assert [set_password(client).status_code for client in clients] == [302, 410]


@pytest.mark.django_db(transaction=True)
def test_of_many_uses_at_once_one_succeeds(bob: User) -> None:
    link = make_link(bob)

    def set_to(number: int) -> str:
        try:
            set_password_by_link(link, f"hash {number}")
        except NotFoundError:
            return "refused"
        return "set"

    assert sorted(at_once(8, set_to)) == ["refused"] * 7 + ["set"]


def test_a_link_ends_after_a_day(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    link = make_link(bob)
    age = {"days": 0}
    tokens = password_links.PasswordResetTokenGenerator
    real = tokens._num_seconds
    monkeypatch.setattr(
        tokens, "_num_seconds", lambda self, at: real(self, at) + age["days"] * 86_400 - 5
    )
    before = read_link(link)
    age["days"] = 1
    monkeypatch.setattr(tokens, "_num_seconds", lambda self, at: real(self, at) + 86_401)

    assert before is not None
    assert use(opened(link)).status_code == 410
    assert is_unchanged(bob)


def test_an_altered_link_is_refused(bob: User, charlie: User, acme: Organisation) -> None:
    link = make_link(bob)
    none = "0" * 32
    altered = [
        link.replace(bob.pk.hex, charlie.pk.hex),
        link.replace(none, acme.pk.hex),
        link[:-1] + ("0" if link[-1] != "0" else "1"),
        link[:68] + "z" + link[69:],
        link[:-1],
        link + "0",
        "",
        "mhl_",
        "\0",
        "é" * 5000,
    ]

    answers = {use(opened(each)).status_code for each in altered}

    assert answers == {410}
    assert is_unchanged(bob)


def test_a_link_of_one_organisation_is_none_of_another(
    bob: User, acme: Organisation, globex: Organisation
) -> None:
    bob.memberships.create(organisation=globex, role="administrator")
    link = make_link(bob, acme)

    assert read_link(link) is not None
    assert read_link(link.replace(acme.pk.hex, globex.pk.hex)) is None
    assert read_link(link.replace(acme.pk.hex, "0" * 32)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"email": "bob2@example.com"},
        {"password": "!"},
        {"last_login": timezone.now()},
        {"is_active": False},
        {"is_staff": False},
        {"is_superuser": True},
        {"sessions_valid_after": timezone.now()},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_change_of_the_user_ends_their_links(bob: User, change: dict[str, Any]) -> None:
    client = open_link(opened(make_link(bob)))
    User.objects.filter(pk=bob.pk).update(**change)
    before = User.objects.values().get(pk=bob.pk)

    answer = set_password(client)

    assert answer.status_code == 410
    assert GONE in text_of(answer)
    assert User.objects.values().get(pk=bob.pk) == before


def test_a_link_from_before_a_deactivation_stays_invalid(bob: User, acme: Organisation) -> None:
    link = make_link(bob)
    deactivate_user(acme, bob)
    User.objects.filter(pk=bob.pk).update(is_active=True)

    assert read_link(link) is None


def test_a_link_of_staff_ends_with_their_last_organisation(bob: User, acme: Organisation) -> None:
    link = make_link(bob)
    acme.is_active = False
    acme.save()

    assert use(opened(link)).status_code == 410
    assert is_unchanged(bob)


@pytest.mark.parametrize(
    ("password", "again", "text"),
    [
        ("a new password 1", "a new password 2", "match"),
        ("short", "short", "too short"),
        ("12345678901234", "12345678901234", "entirely numeric"),
        ("bob@example.com", "bob@example.com", "too similar"),
    ],
)
def test_a_bad_password_is_refused_and_the_link_stays_valid(
    bob: User, password: str, again: str, text: str
) -> None:
    client = open_link(opened(make_link(bob)))

    answer = set_password(client, password, again)

    assert text in text_of(answer)
    assert f'value="{password}"' not in text_of(answer).replace('value="bob@', "")
    assert is_unchanged(bob)
    assert set_password(client).status_code == 302


def test_without_a_link_the_page_says_so(db: None) -> None:
    answers = [Client().get(PAGE), set_password(Client())]

    assert [answer.status_code for answer in answers] == [410, 410]
    assert GONE in text_of(answers[0])


def test_a_link_that_is_not_valid_leaves_no_session(bob: User) -> None:
    client = Client()
    client.get(opened("mhl_x"))

    assert "moonhook_admin" not in client.cookies


def test_a_form_of_another_site_is_refused(bob: User) -> None:
    client = Client(enforce_csrf_checks=True)
    open_link(opened(make_link(bob)), client)

    assert set_password(client).status_code == 403
    assert is_unchanged(bob)


def test_the_second_factor_is_still_asked_for(bob: User, settings: Any) -> None:
    settings.IS_SECOND_FACTOR_REQUIRED = True
    client = open_link(opened(make_link(bob)))
    set_password(client)

    login = client.post(reverse("admin:login"), {"username": bob.email, "password": NEW})
    page = client.get(login["Location"], follow=True)
    assert "second_factor" in page.redirect_chain[-1][0]


def test_guesses_here_of_the_old_password_do_not_lock_the_new_one(bob: User) -> None:
    fail_admin_logins(bob)
    client = Client(REMOTE_ADDR="192.0.2.1")
    open_link(opened(make_link(bob)), client)
    set_password(client)

    login = client.post(reverse("admin:login"), {"username": bob.email, "password": NEW})
    assert login.status_code == 302


def test_a_locked_pin_login_stays_locked(bob: User) -> None:
    PinFailures.objects.create(bucket="x", email=bob.email, consecutive_failures=100)
    before = list(PinFailures.objects.values())
    use(opened(make_link(bob)))

    assert list(PinFailures.objects.values()) == before


def test_logs_hide_the_link(bob: User) -> None:
    link = make_link(bob)

    assert link[4:] not in redact(f"GET {opened(link)}")
    assert mail.outbox == []
