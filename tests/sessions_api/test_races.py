"""What holds however many open sessions at once."""

import pytest
from django.test import override_settings

from accounts.flows.issue_api_key import IssuedApiKey
from sessions_api.models import Session
from tests.concurrency import at_once
from tests.factories import api_key_login, open_session


@pytest.mark.django_db(transaction=True)
def test_the_cap_of_a_key_holds_for_logins_at_once(acme_key: IssuedApiKey) -> None:
    with override_settings(SESSIONS_PER_API_KEY=3):
        tokens = at_once(12, lambda _: open_session(api_key_login(acme_key)))

    assert Session.objects.count() == 3
    assert sum(Session.objects.find_live(token) is not None for token in tokens) == 3
