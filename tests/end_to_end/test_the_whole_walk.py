"""From a fresh start to a run in the admin, over the wire: the walk of docs/quickstart.md."""

import base64
import json
import re
import uuid
from http.cookiejar import CookieJar
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from tests.eventually import eventually
from tests.moonhook_server import MoonhookServer
from tests.servers import MailServer, SmsGateway
from tests.sessions import call, graphql, machine_token, open_session

pytestmark = pytest.mark.slow


def code_in(text: str) -> str:
    return re.findall(r"\b\d{6}\b", text)[0]


def test_the_whole_walk(
    moonhook: MoonhookServer, mail_server: MailServer, gateway: SmsGateway
) -> None:
    admin, user = f"{moonhook.url}/admin/graphql", f"{moonhook.url}/user/graphql"
    token = machine_token(moonhook)

    # A user, a script and a hook, by Admin GraphQL.
    graphql(
        admin,
        'mutation { createUser(email: "alice@example.com", phone: "+491701234567") { id } }',
        token,
    )
    script = graphql(
        admin,
        'mutation($source: String!) { createScript(name: "sum", source: $source) { id } }',
        token,
        source='local order = FromJson(params.get("body"))\nreturn {total = order.a + order.b}',
    )["createScript"]
    issued = graphql(
        admin,
        "mutation($id: ID!) { createHook(script: $id) { hook { id url secureUrl } callToken } }",
        token,
        id=script["id"],
    )["createHook"]

    # A PIN by e-mail and SMS, and a device session.
    send = 'mutation { sendPinCode(email: "alice@example.com", sendVia: Both) }'
    assert graphql(user, send) == {"sendPinCode": True}
    eventually(lambda: len(mail_server.messages) == 1 and len(gateway.messages) == 1)
    code = code_in(mail_server.messages[0].get_content())
    assert mail_server.messages[0]["To"] == "alice@example.com"
    assert code == code_in(gateway.messages[0]["text"])
    device = str(uuid.uuid4())
    credential = graphql(
        user,
        """mutation($pin: String!, $device: String!) { checkPinCode(
            email: "alice@example.com", pin: $pin, device: $device, host: "phone") {
            result tokenId token } }""",
        pin=code,
        device=device,
    )["checkPinCode"]
    assert credential["result"] is True
    eventually(lambda: len(mail_server.messages) == 2)
    assert credential["tokenId"] in mail_server.messages[1].get_content()
    session = open_session(
        moonhook,
        credential="Token",
        uid=credential["tokenId"],
        password=credential["token"],
        email="alice@example.com",
    )
    assert session["device"] == {"id": device, "label": "phone"}
    me = graphql(user, "{ me { email } devices { isCurrent } }", session["token"])
    assert me == {"me": {"email": "alice@example.com"}, "devices": [{"isCurrent": True}]}

    # Both webhook variants answer with the script's reply; a chunked body too.
    payload = b'{"a": 1, "b": 41}'
    status, content, headers = call("POST", issued["hook"]["url"], payload)
    assert (status, json.loads(content)) == (200, {"total": 42})
    run_id = headers["Moonhook-Run-Id"]
    basic = base64.b64encode(f"{issued['hook']['id']}:{issued['callToken']}".encode()).decode()
    authorization = {"Authorization": f"Basic {basic}"}
    status, content, _ = call("POST", issued["hook"]["secureUrl"], payload, authorization)
    assert (status, json.loads(content)) == (200, {"total": 42})
    chunks = iter([payload[:5], payload[5:]])
    status, content, _ = call("POST", issued["hook"]["url"], chunks)
    assert (status, json.loads(content)) == (200, {"total": 42})

    # The run is there, by GraphQL and in the admin.
    run = graphql(
        admin,
        "query($id: ID!) { run(id: $id) { status requestBody responseBody } }",
        token,
        id=run_id,
    )["run"]
    assert run == {
        "status": "Succeeded",
        "requestBody": payload.decode(),
        "responseBody": '{"total":42}',
    }
    page = admin_page(moonhook, f"/admin/scripts_engine/run/{run_id}/change/")
    assert run_id in page
    assert "total" in page

    # No secret is in the log.
    secrets = [
        token,
        session["token"],
        credential["token"],
        issued["callToken"],
        code,
        moonhook.printed(r"password\s+(\S+)"),
    ]
    logged = moonhook.output.split("Starting gunicorn")[1]
    assert [secret for secret in secrets if secret in logged] == []
    assert "/[redacted]" in logged


def admin_page(moonhook: MoonhookServer, path: str) -> str:
    """The page as the demo's administrator sees it."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    login_url = f"{moonhook.url}/admin/login/"
    form = browser.open(login_url, timeout=30).read().decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert found is not None
    fields = {
        "csrfmiddlewaretoken": found[1],
        "username": moonhook.printed(r"e-mail\s+(\S+@\S+)"),
        "password": moonhook.printed(r"password\s+(\S+)"),
    }
    request = Request(login_url, urlencode(fields).encode(), {"Referer": login_url})
    browser.open(request, timeout=30)
    page: str = browser.open(f"{moonhook.url}{path}", timeout=30).read().decode()
    return page
