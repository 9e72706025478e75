from typing import Any

from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts.models import Organisation
from scripts_engine.models import Secret
from scripts_engine.secrets import set_secret
from tests.admin.pages import CONFIRMED, list_of, page_of, text_of


def new_secret(organisation: Organisation, **changes: str) -> dict[str, Any]:
    return {"organisation": str(organisation.pk), "name": "SHOP_KEY", "value": "hush", **changes}


def test_bob_sets_a_secret_which_no_page_shows(as_bob: Client, acme: Organisation) -> None:
    response = as_bob.post(list_of(Secret, "add"), new_secret(acme))

    secret = Secret.objects.get()
    assert response.status_code == 302
    assert "hush" not in text_of(as_bob.get(page_of(secret)))
    assert "hush" not in str(list(LogEntry.objects.values()))
    assert LogEntry.objects.get().object_id == str(secret.pk)


def test_bob_replaces_a_secret(as_bob: Client, acme: Organisation) -> None:
    secret = set_secret(acme, name="SHOP_KEY", value="old")
    before = bytes(secret.ciphertext)

    response = as_bob.post(page_of(secret), {"value": "new", "name": "OTHER"})

    secret.refresh_from_db()
    assert response.status_code == 302
    assert secret.name == "SHOP_KEY"
    assert bytes(secret.ciphertext) != before


def test_a_wrong_name_is_refused_at_the_field(as_bob: Client, acme: Organisation) -> None:
    response = as_bob.post(list_of(Secret, "add"), new_secret(acme, name="1 key"))

    assert response.status_code == 200
    assert "Use letters, digits" in text_of(response)
    assert not Secret.objects.exists()


def test_a_value_too_long_is_refused_at_the_field(as_bob: Client, acme: Organisation) -> None:
    response = as_bob.post(list_of(Secret, "add"), new_secret(acme, value="x" * 20_000))

    assert response.status_code == 200
    assert "A secret is text of 1 to" in text_of(response)
    assert not Secret.objects.exists()


def test_a_duplicate_name_leaves_the_existing_secret(as_bob: Client, acme: Organisation) -> None:
    before = bytes(set_secret(acme, name="SHOP_KEY", value="old").ciphertext)

    response = as_bob.post(list_of(Secret, "add"), new_secret(acme))

    assert response.status_code == 200
    assert "already exists" in text_of(response)
    assert bytes(Secret.objects.get().ciphertext) == before


def test_a_secret_is_deleted_after_asking(as_bob: Client, acme: Organisation) -> None:
    secret = set_secret(acme, name="SHOP_KEY", value="hush")

    asked = as_bob.get(page_of(secret, "delete"))
    still_there = Secret.objects.exists()
    done = as_bob.post(page_of(secret, "delete"), CONFIRMED)

    assert (asked.status_code, still_there) == (200, True)
    assert done.status_code == 302
    assert not Secret.objects.exists()
