"""Each number on home is that of the list that its link opens."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.flows.api_keys import revoke_api_keys
from accounts.flows.revoke_device import revoke_devices
from accounts.models import ApiKey, DeviceToken, Organisation, User
from core.http.origin import NOWHERE
from hooks.models import Hook
from scripts_engine.models import Run, Script, Trigger
from tests import factories
from tests.admin.addresses import REGISTERED
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.postgresql

HOME = reverse("admin:index")
LISTS = {list_of(model) for model in REGISTERED}
NOW = timezone.now


def numbers_with_links(page: str) -> list[tuple[int, str]]:
    """Each number that is the text of a link to a list, with the list's address."""
    links = re.findall(r'<a[^>]*href="([^"]+)"[^>]*>(.*?)</a>', page, re.DOTALL)
    texts = [(unescape(address), re.sub(r"<[^>]*>", " ", text)) for address, text in links]
    return [
        (int(number[0].replace(",", "")), address)
        for address, text in texts
        if address.partition("?")[0] in LISTS and (number := re.search(r"\d[\d,]*", text))
    ]


def differences(client: Client, numbers: list[tuple[int, str]]) -> list[str]:
    totals = [(n, a, client.get(a).context["cl"].result_count) for n, a in numbers]
    return [f"{number}, not {total}: {a}" for number, a, total in totals if number != total]


@pytest.fixture
def busy_day(acme: Organisation, bob: User, acme_hook: Hook) -> None:
    """Every kind of row that a count could wrongly include or leave out."""
    other = factories.make_hook(factories.make_script(acme, name="other")).hook
    deleted = factories.make_hook(factories.make_script(acme, name="deleted")).hook
    factories.make_past_run(acme_hook, NOW())
    factories.make_past_run(acme_hook, NOW(), "failed", error_message="no order 17")
    factories.make_past_run(acme_hook, NOW(), "failed", error_message="no order 18")
    factories.make_past_run(acme_hook, NOW(), "failed", error_message="no order 17 or so")
    factories.make_past_run(acme_hook, NOW() - timedelta(hours=25), "failed")
    factories.make_past_run(other, NOW(), "failed", error_message="no order 19")
    factories.make_past_run(other, NOW(), "timed-out")
    factories.make_past_run(deleted, NOW(), "failed", error_message="no order 20")
    factories.make_past_draft(acme_hook, NOW())
    factories.make_past_draft(acme_hook, NOW(), "failed", error_message="no order 21")
    factories.make_past_draft(other, NOW(), "out-of-memory")
    Script.objects.filter(pk=deleted.script_id).update(deleted_at=NOW())
    factories.make_api_key(acme)
    revoke_api_keys([factories.make_api_key(acme).api_key], origin=NOWHERE, by=bob)
    phone = factories.make_device_token(bob)
    factories.make_device_token(bob)
    revoke_devices([phone.device_token], origin=NOWHERE, by=bob)


@pytest.mark.slow
def test_each_number_on_home_is_the_total_of_its_list(as_bob: Client, busy_day: None) -> None:
    numbers = numbers_with_links(text_of(as_bob.get(HOME)))

    assert len(numbers) == 2 + 5 + 4 + 7 + 1
    assert differences(as_bob, numbers) == []


@pytest.mark.slow
def test_the_numbers_of_a_superuser_are_the_totals_of_their_lists(
    as_root: Client, busy_day: None, globex_objects: dict[type, Any]
) -> None:
    numbers = numbers_with_links(text_of(as_root.get(HOME)))

    assert differences(as_root, numbers) == []


def test_zero_keys_lead_to_the_list_that_offers_one(as_bob: Client, acme_hook: Hook) -> None:
    (key_list,) = [c.url for c in as_bob.get(HOME).context["home"].counts if c.icon == "key"]

    assert key_list == list_of(ApiKey)
    assert "Create API key" in text_of(as_bob.get(key_list))


def test_revoked_keys_alone_are_no_keys(
    as_bob: Client, bob: User, acme: Organisation, acme_hook: Hook
) -> None:
    revoke_api_keys([factories.make_api_key(acme).api_key], origin=NOWHERE, by=bob)

    numbers = numbers_with_links(text_of(as_bob.get(HOME)))

    assert (0, f"{list_of(ApiKey)}?revoked=no") in numbers
    assert differences(as_bob, numbers) == []


def test_tried_drafts_are_no_runs_of_the_day(as_bob: Client, acme_hook: Hook) -> None:
    factories.make_past_run(acme_hook, NOW())
    factories.make_past_draft(acme_hook, NOW())
    factories.make_past_draft(acme_hook, NOW(), "failed", error_message="a typing mistake")

    response = as_bob.get(HOME)

    outcomes = response.context["home"].runs.outcomes
    assert (outcomes.total, outcomes.not_succeeded) == (1, 0)
    assert response.context["home"].runs.failures.rows == []
    assert "Drafts and test events are not counted" in text_of(response)


def test_a_run_counts_where_it_was_requested_before_it_waited(
    as_bob: Client, acme_hook: Hook
) -> None:
    run = factories.make_past_run(acme_hook, NOW() - timedelta(hours=24, seconds=20))
    Run.objects.filter(pk=run.pk).update(started_at=NOW() - timedelta(hours=23, minutes=59))

    outcomes = as_bob.get(HOME).context["home"].runs.outcomes

    assert outcomes.total == 0
    assert as_bob.get(outcomes.all_runs).context["cl"].result_count == 0


def test_the_last_run_of_a_script_is_none_of_a_draft(as_bob: Client, acme_hook: Hook) -> None:
    factories.make_past_run(acme_hook, NOW() - timedelta(minutes=1))
    factories.make_past_draft(acme_hook, NOW(), "failed")

    text = text_of(as_bob.get(list_of(Script)))

    assert "Succeeded" in text
    assert "Failed" not in text


def test_the_runs_of_drafts_are_marked_and_can_be_filtered(as_bob: Client, acme_hook: Hook) -> None:
    saved = factories.make_past_run(acme_hook, NOW())
    test = factories.make_past_run(acme_hook, NOW(), trigger=Trigger.TEST)
    draft = factories.make_past_draft(acme_hook, NOW())

    every = text_of(as_bob.get(list_of(Run)))
    drafts = text_of(as_bob.get(list_of(Run), {"source": "draft"}))
    counted = text_of(as_bob.get(list_of(Run), {"source": "counted"}))

    assert every.count("Admin, draft") == 1
    assert [page_of(run) in drafts for run in (saved, test, draft)] == [False, False, True]
    assert [page_of(run) in counted for run in (saved, test, draft)] == [True, False, False]


def test_keys_and_devices_can_be_filtered_by_revocation(
    as_bob: Client, bob: User, busy_day: None
) -> None:
    (revoked_key,) = as_bob.get(list_of(ApiKey), {"revoked": "yes"}).context["cl"].result_list
    (device,) = as_bob.get(list_of(DeviceToken), {"revoked": "yes"}).context["cl"].result_list
    every_key = as_bob.get(list_of(ApiKey), {"revoked": "perhaps"}).context["cl"].result_count

    assert revoked_key.revoked_at is not None
    assert device.revoked_at is not None
    assert every_key == 2
