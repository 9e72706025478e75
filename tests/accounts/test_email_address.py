import pytest
from django.core.exceptions import ValidationError

from accounts.addresses import canonical_email, validate_typed_email
from accounts.models import User


@pytest.mark.parametrize(
    "typed",
    ["Alice@Example.COM", "  alice@example.com ", "ａｌｉｃｅ@example.com", "alice@EXAMPLE.com\n"],
)
def test_spellings_of_one_address_have_one_canonical_form(typed: str) -> None:
    assert canonical_email(typed) == "alice@example.com"


def test_a_dotless_i_is_another_address() -> None:
    assert canonical_email("mıke@example.org") != canonical_email("mike@example.org")


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "alice",
        "alice@",
        "@example.com",
        "a@b@example.com",
        "mıke@example.org",
        "straße@example.org",
        "alice@exa mple.com",
        "alice\0@example.com",
        "alice@example.com\x07",
        "\ud800@example.com",
        "a" * 250 + "@example.com",
    ],
)
def test_an_undeliverable_address_is_refused(typed: str) -> None:
    with pytest.raises(ValidationError):
        validate_typed_email(typed)


@pytest.mark.django_db
def test_mail_goes_to_the_address_as_it_was_typed() -> None:
    user = User.objects.create_user("Alice@Straße.example")

    assert user.email == "alice@strasse.example"
    assert user.delivery_email == "Alice@Straße.example"


@pytest.mark.django_db
def test_two_spellings_cannot_be_two_users() -> None:
    User.objects.create_user("alice@example.com")

    with pytest.raises(ValidationError):
        User.objects.create_user("ALICE@example.com")

    assert User.objects.count() == 1
