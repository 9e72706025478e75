"""“Forgot your password?”: one answer for every address, and a mail for staff alone."""

from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.flows.organisations import add_member
from accounts.models import AuthEvent, Organisation, RateCounter, User
from jobs.models import Message
from tests.admin.pages import text_of
from tests.admin.password_mails import NEW, links_mailed, use

PAGE = "/admin/password/forgot/"


@pytest.fixture(autouse=True)
def _mail_server(settings: Any) -> None:
    settings.IS_EMAIL_CONFIGURED = True


def ask(email: str, **extra: Any) -> Any:
    return Client().post(PAGE, {"email": email}, **extra)


def test_the_login_page_leads_to_it(db: None) -> None:
    page = text_of(Client().get("/admin/login/"))

    assert f'href="{PAGE}"' in page
    assert "Forgot your password?" in page


def test_staff_get_a_link_that_sets_a_new_password(bob: User) -> None:
    ask(" BOB@example.com")
    (link,) = links_mailed()
    use(link)

    assert mail.outbox[0].to == [bob.email]
    assert "valid for 24 hours and works once" in mail.outbox[0].body
    assert "Acme" not in mail.outbox[0].body
    assert User.objects.get(pk=bob.pk).check_password(NEW)


@pytest.mark.parametrize(
    "state", [{"is_staff": False}, {"is_active": False}, {"email": "x@example.com"}]
)
def test_others_get_no_mail(bob: User, state: dict[str, Any]) -> None:
    User.objects.filter(pk=bob.pk).update(**state)

    ask("bob@example.com")

    assert links_mailed() == []
    assert mail.outbox == []


def test_staff_of_a_disabled_organisation_get_no_mail(bob: User, acme: Organisation) -> None:
    acme.is_active = False
    acme.save()

    ask(bob.email)

    assert links_mailed() == []


def test_known_and_unknown_addresses_are_answered_alike_at_the_same_cost(
    bob: User, alice: User, root: User
) -> None:
    seen = set()
    for number, email in enumerate([bob.email, alice.email, root.email, "nobody@example.com"]):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            answer = ask(email, REMOTE_ADDR=f"192.0.2.{number}")
        seen.add((answer.status_code, text_of(answer), len(queries)))

    assert len(seen) == 1
    assert "If this address has a login to this admin" in seen.pop()[1]


@pytest.mark.parametrize("email", ["bob@example.com", "nobody@example.com"])
def test_an_address_is_limited_whether_it_has_an_account_or_not(bob: User, email: str) -> None:
    answers = [ask(email, REMOTE_ADDR=f"192.0.2.{number}") for number in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 3500 < int(answers[3]["Retry-After"]) <= 3600
    links_mailed()
    assert len(mail.outbox) in {0, 3}


def test_a_client_is_limited(db: None) -> None:
    answers = [ask(f"nobody{number}@example.com").status_code for number in range(21)]

    assert answers == [200] * 20 + [429]


@pytest.mark.parametrize("email", ["", "no address", "é@example.com", "a" * 300 + "@b.de", "\0"])
def test_an_invalid_address_is_refused_and_not_counted(db: None, email: str) -> None:
    answer = ask(email)

    assert answer.status_code == 200
    assert "If this address" not in text_of(answer)
    assert not RateCounter.objects.exists()
    assert not Message.objects.exists()


def test_the_mails_count_for_the_home_of_the_user(
    bob: User, acme: Organisation, settings: Any
) -> None:
    settings.ORGANISATION_MAILS_PER_DAY = 1
    ask(bob.email)
    ask(bob.email)

    assert len(links_mailed()) == 1
    assert AuthEvent.objects.filter(kind="rate.limited", organisation=acme).count() == 1


def test_no_task_holds_a_link(bob: User) -> None:
    ask(bob.email)
    (link,) = links_mailed()

    secret = link.partition("link=")[2]
    assert secret not in str(list(Message.objects.values()))


def test_an_invited_administrator_gets_no_reset_mail(
    acme: Organisation, bob: User, globex: Organisation
) -> None:
    User.objects.create_user("gina@example.org", home=globex)
    add_member(acme, email="gina@example.org", role="administrator")
    mail.outbox.clear()

    ask("gina@example.org")

    assert links_mailed() == []


def test_without_a_mail_server_the_page_says_so(bob: User, settings: Any) -> None:
    settings.IS_EMAIL_CONFIGURED = False

    answers = [Client().get(PAGE), ask(bob.email)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert ["no mail server is configured" in text_of(answer) for answer in answers] == [True] * 2
    assert links_mailed() == []
    assert not Message.objects.exists()


def test_a_form_of_another_site_is_refused(bob: User) -> None:
    answer = Client(enforce_csrf_checks=True).post(PAGE, {"email": bob.email})

    assert answer.status_code == 403
    assert not Message.objects.exists()


@pytest.mark.parametrize("page", ["/admin/login/", PAGE])
def test_the_pages_before_the_login_have_a_main_landmark(db: None, page: str) -> None:
    text = text_of(Client().get(page))

    assert text.count("<main>") == text.count("</main>") == 1
