"""Addresses of pages whose models moved to another app."""

import pytest
from django.test import Client

from core.admin.links import list_of, page_of
from hooks.models import Hook, RefusedCall
from jobs.models import QueueEntry, Schedule


@pytest.mark.parametrize("model", [Hook, RefusedCall, QueueEntry, Schedule])
def test_former_address_of_a_list_redirects_to_its_present_one(as_bob: Client, model: type) -> None:
    former = f"/admin/scripts_engine/{model._meta.model_name}/"  # type: ignore[attr-defined]

    response = as_bob.get(former, {"p": "1"})

    assert (response.status_code, response["Location"]) == (301, f"{list_of(model)}?p=1")


def test_former_address_of_a_hook_shows_the_hook(as_bob: Client, acme_hook: Hook) -> None:
    response = as_bob.get(f"/admin/scripts_engine/hook/{acme_hook.pk}/change/", follow=True)

    assert response.redirect_chain == [(page_of(acme_hook), 301)]
    assert response.status_code == 200


def test_former_address_asks_for_the_login(client: Client, acme_hook: Hook) -> None:
    response = client.get(f"/admin/scripts_engine/hook/{acme_hook.pk}/change/", follow=True)

    assert response.redirect_chain[-1][0].startswith("/admin/login/")


def test_form_sent_to_a_former_address_is_refused(as_bob: Client, acme_hook: Hook) -> None:
    response = as_bob.post(f"/admin/scripts_engine/hook/{acme_hook.pk}/delete/", {"post": "yes"})

    assert response.status_code == 405
    assert Hook.objects.existing().filter(pk=acme_hook.pk).exists()


@pytest.mark.parametrize("rest", ["//evil.example/", "..//..//x/"])
def test_former_address_never_leads_elsewhere(as_bob: Client, rest: str) -> None:
    response = as_bob.get(f"/admin/scripts_engine/hook/{rest}")

    assert response["Location"].startswith("/admin/hooks/hook/")


def test_former_address_with_a_line_break_is_not_found(as_bob: Client) -> None:
    response = as_bob.get("/admin/scripts_engine/hook/%0d%0aSet-Cookie:a=b/")

    assert response.status_code == 404
