"""From a fresh start to a run in the admin, over the wire: the walk of docs/quickstart.md."""

import base64
import http.client
import json
import re
import uuid
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, Request, build_opener

from tests.eventually import eventually
from tests.moonhook_server import MoonhookServer
from tests.servers import MailServer, SmsGateway


def call(
    method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    connection.request(
        method, parts.path + (f"?{parts.query}" * bool(parts.query)), body, headers or {}
    )
    response = connection.getresponse()
    answer = response.status, response.read(), response.headers
    connection.close()
    return answer


def post_json(url: str, body: object, token: str = "") -> Any:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    status, content, _ = call("POST", url, json.dumps(body).encode(), headers)
    assert status in {200, 201}, content
    return json.loads(content)


def graphql(url: str, query: str, token: str = "", **variables: object) -> Any:
    answer = post_json(url, {"query": query, "variables": variables}, token)
    assert "errors" not in answer, answer
    return answer["data"]


def code_in(text: str) -> str:
    return re.findall(r"\b\d{6}\b", text)[0]


def open_session(moonhook: MoonhookServer, **login: str) -> Any:
    return post_json(f"{moonhook.url}/session", login)


def machine_token(moonhook: MoonhookServer) -> str:
    organisation = json.loads(moonhook.manage("create_organisation", "Acme", "--json"))
    key = json.loads(
        moonhook.manage(
            "create_api_key", "--organisation", organisation["id"], "--name", "walk", "--json"
        )
    )
    session = open_session(
        moonhook, credential="ApiKey", uid=key["key"], password=key["secret"], email="a@b.example"
    )
    assert session["organisation"]["name"] == "Acme"
    return str(session["token"])


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

    # A PIN by e-mail, another by both ways, and a device session.
    send = 'mutation($via: SendVia!) { sendPinCode(email: "alice@example.com", sendVia: $via) }'
    assert graphql(user, send, via="Email") == {"sendPinCode": True}
    eventually(lambda: len(mail_server.messages) == 1)
    assert graphql(user, send, via="Both") == {"sendPinCode": True}
    eventually(lambda: len(mail_server.messages) == 2 and len(gateway.messages) == 1)
    first_code = code_in(mail_server.messages[0].get_content())
    assert mail_server.messages[0]["To"] == "alice@example.com"
    assert code_in(mail_server.messages[1].get_content()) == code_in(gateway.messages[0]["text"])
    device = str(uuid.uuid4())
    credential = graphql(
        user,
        """mutation($pin: String!, $device: String!) { checkPinCode(
            email: "alice@example.com", pin: $pin, device: $device, host: "phone") {
            result tokenId token } }""",
        pin=first_code,
        device=device,
    )["checkPinCode"]
    assert credential["result"] is True
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
    status, content, _ = call("POST", issued["hook"]["url"], chunks)  # type: ignore[arg-type]
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
        first_code,
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
