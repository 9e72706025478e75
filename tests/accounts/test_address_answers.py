"""Limits on how many addresses an organisation may ask about in an hour."""

from typing import Any

import pytest

from accounts.flows.organisations import add_member
from accounts.models import AuthEvent, AuthEventKind, Invitation, Organisation, User
from accounts.rate_limits import windows
from accounts.rate_limits.addresses import claim_answers, counted_answer
from core.errors import NotFoundError, RateLimitedError
from core.http.origin import NOWHERE
from tests.concurrency import at_once
from tests.factories import GraphQLAnswer, admin_graphql

CREATE = "mutation($email: String!) { createUser(email: $email) { id } }"
ADD = "mutation($email: String!) { addMember(email: $email) { email } }"
UPDATE = "mutation($email: String!, $id: ID!) { updateUser(id: $id, email: $email) { id } }"


def ask(token: str, mutation: str, email: str, **more: Any) -> GraphQLAnswer:
    return admin_graphql(mutation, token, email=email, **more)


def use_up(organisation: Organisation, but: int = 0) -> None:
    claim_answers(organisation, windows.ADDRESS_REFUSALS_OF_ORGANISATION.amount - but, NOWHERE)


def limited_events(organisation: Organisation) -> int:
    return AuthEvent.objects.filter(
        kind=AuthEventKind.RATE_LIMITED, organisation=organisation, reason="addresses"
    ).count()


@pytest.mark.parametrize(
    ("mutation", "email", "code"),
    [
        (CREATE, "charlie@example.org", "FORBIDDEN"),
        (ADD, "nobody@example.com", "NOT_FOUND"),
        (UPDATE, "charlie@example.org", "BAD_USER_INPUT"),
    ],
)
def test_the_answer_after_the_last_is_the_same_for_known_and_unknown(
    acme: Organisation,
    acme_token: str,
    alice: User,
    charlie: User,
    mutation: str,
    email: str,
    code: str,
) -> None:
    more = {"id": str(alice.pk)} if mutation == UPDATE else {}
    use_up(acme, but=2)

    told = [ask(acme_token, mutation, email, **more).code for _ in range(2)]
    known = ask(acme_token, mutation, "charlie@example.org", **more)
    unknown = ask(acme_token, mutation, "nobody@example.com", **more)

    assert told == [code] * 2
    assert known.code == unknown.code == "RATE_LIMITED"
    assert 3500 < known.errors[0]["extensions"]["retryAfter"] <= 3600
    assert limited_events(acme) == 1
    alice.refresh_from_db()
    assert alice.email == "alice@example.com"
    assert not User.objects.filter(email="nobody@example.com").exists()
    assert not Invitation.objects.exists()


def test_answers_that_reveal_nothing_are_not_counted(
    acme: Organisation, acme_token: str, alice: User
) -> None:
    use_up(acme, but=1)

    made = [ask(acme_token, CREATE, f"new{number}@example.com").code for number in range(3)]
    own = [ask(acme_token, CREATE, alice.email).code for _ in range(3)]
    malformed = [ask(acme_token, CREATE, "not an address").code for _ in range(3)]

    assert made == [None] * 3
    assert own == malformed == ["BAD_USER_INPUT"] * 3
    assert limited_events(acme) == 0


def test_one_organisations_answers_do_not_count_for_another(
    acme: Organisation, globex_token: str, alice: User
) -> None:
    use_up(acme)

    assert ask(globex_token, ADD, "nobody@example.com").code == "NOT_FOUND"


@pytest.mark.django_db(transaction=True)
def test_concurrent_questions_get_no_more_answers_than_the_limit(
    acme: Organisation,
) -> None:
    use_up(acme, but=5)

    def ask_of(number: int) -> str:
        try:
            with counted_answer(acme, NOWHERE):
                add_member(acme, email=f"nobody{number}@example.com")
        except (NotFoundError, RateLimitedError) as refusal:
            return type(refusal).__name__
        return "added"

    refusals = at_once(12, ask_of)

    assert sorted(refusals) == ["CountFullError"] * 7 + ["NotFoundError"] * 5


@pytest.mark.parametrize("email", ["charlie@example.org", "nobody@example.com"])
@pytest.mark.parametrize("mutation", ["createUser(", "updateUser(id: $id, "])
def test_other_errors_are_reported_before_the_address(
    acme: Organisation, acme_token: str, alice: User, charlie: User, mutation: str, email: str
) -> None:
    use_up(acme, but=1)
    given = "$id: ID!, " if "$id" in mutation else ""
    document = (
        f'mutation({given}$email: String!) {{ {mutation}email: $email, phone: "1") {{ id }} }}'
    )
    more = {"id": str(alice.pk)} if given else {}

    answers = [ask(acme_token, document, email, **more) for _ in range(3)]

    assert [answer.errors[0]["extensions"]["field"] for answer in answers] == ["phone"] * 3
