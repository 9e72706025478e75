"""Run pages with payloads that are hard for JSON parsers: shown, never 500."""

import pytest

from accounts.models import Organisation
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import make_hook, make_script

pytestmark = pytest.mark.postgresql

PAYLOADS = [
    "[" * 100_000,
    "[" * 2_000 + "]" * 2_000,
    '{"a":' * 950 + "1" + "}" * 950,
    '{"a":' + "9" * 5_000 + "}",
    "[1e400, -1e400, NaN]",
    '"\\ud800"',
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_payload_is_shown(admin_client: Client, acme: Organisation, payload: str) -> None:
    hook, token = make_hook(make_script(acme))
    path = "/hook/" + hook.url_with(token).split("/hook/")[1]
    call = Client().post(path, payload, content_type="application/json")
    run = Run.objects.get()
    page = admin_client.get(f"/admin/scripts_engine/run/{run.pk}/change/")

    assert (call.status_code, page.status_code) == (200, 200)
