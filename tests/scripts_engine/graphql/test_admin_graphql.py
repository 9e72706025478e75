"""Scripts, hooks and runs at /admin/graphql, and the separation of tenants."""

import base64
import uuid
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation
from hooks.flows.hooks import update_hook
from hooks.models import Hook
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Run, Script, ScriptVersion, Trigger
from scripts_engine.runs.spec import NOBODY
from tests.client import Client
from tests.factories import admin_graphql, field_of, make_hook, make_script
from tests.work import counted_calls

CREATE_SCRIPT = """mutation($name: String!, $source: String!) {
    createScript(name: $name, source: $source) {
        id name source enabled timeoutSeconds version { number author } } }"""
UPDATE_SCRIPT = """mutation(
        $id: ID!, $name: String, $source: String, $seconds: Float, $on: Boolean) {
    updateScript(id: $id, name: $name, source: $source, timeoutSeconds: $seconds, enabled: $on) {
        name source enabled timeoutSeconds version { number } versions { number source } } }"""
DELETE_SCRIPT = "mutation($id: ID!) { deleteScript(id: $id) }"
CREATE_HOOK = """mutation($id: ID!) { createHook(script: $id, name: "shop") {
    hook { id name enabled url secureUrl script { id } } callToken } }"""
ROTATE = "mutation($id: ID!) { rotateCallToken(hook: $id) { hook { id url } callToken } }"
UPDATE_HOOK = """mutation($id: ID!, $name: String, $on: Boolean) {
    updateHook(id: $id, name: $name, enabled: $on) { name enabled url } }"""
DELETE_HOOK = "mutation($id: ID!) { deleteHook(id: $id) }"
RUN_SCRIPT = """mutation($id: ID!, $body: String) { runScript(script: $id, body: $body) {
    id status responseStatus responseBody responseBodyBase64 requestBody durationMs trigger
    logs { at level text } error { message line traceback } } }"""


def path_of(url: str) -> str:
    return "/hook/" + url.split("/hook/")[1]


@pytest.fixture
def echo(acme: Organisation) -> Script:
    return make_script(acme)


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ('{ script(id: "abc") { id } }', "script"),
        ('{ run(id: "abc") { id } }', "run"),
        ('{ runs(firstRun: "abc") { nodes { id } } }', "run"),
        ('{ runs(hook: "abc") { nodes { id } } }', "hook"),
        ('mutation { publish(versions: ["abc"]) { id } }', "version"),
        ('mutation { replayRuns(ids: ["abc"]) }', "run"),
    ],
)
def test_malformed_id_is_not_found_and_the_kind_named(
    acme_token: str, query: str, kind: str
) -> None:
    answer = admin_graphql(query, acme_token)

    assert answer.errors[0]["extensions"]["code"] == "NOT_FOUND"
    message = f"There is no such {kind}: its id is a UUID, and this is not one."
    assert answer.errors[0]["message"] == message


def test_a_script_is_created_with_its_first_version(acme: Organisation, acme_token: str) -> None:
    answer = admin_graphql(CREATE_SCRIPT, acme_token, name="echo", source="return 1")

    script = Script.objects.get()
    assert answer.data["createScript"] == {
        "id": str(script.pk),
        "name": "echo",
        "source": "return 1",
        "enabled": True,
        "timeoutSeconds": 10.0,
        "version": {"number": 1, "author": "warehouse"},
    }
    assert script.organisation == acme


def test_a_script_that_does_not_compile_is_refused_with_its_line(acme_token: str) -> None:
    answer = admin_graphql(CREATE_SCRIPT, acme_token, name="x", source="local a = 1\nlocal = 2")

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "source")
    assert answer.errors[0]["extensions"]["line"] == 2
    assert Script.objects.count() == 0


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        ({"name": "", "source": ""}, "name"),
        ({"name": "x" * 201, "source": ""}, "name"),
        ({"name": "x", "source": "--" + "x" * 64 * 1024}, "source"),
        ({"name": "x", "source": "return '\0'"}, "source"),
    ],
)
def test_a_bad_script_is_not_created(
    acme_token: str, variables: dict[str, str], field: str
) -> None:
    answer = admin_graphql(CREATE_SCRIPT, acme_token, **variables)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field)
    assert Script.objects.count() == ScriptVersion.objects.count() == 0


def test_a_new_source_is_a_new_version_and_the_same_one_is_not(
    echo: Script, acme_token: str
) -> None:
    answers = [
        admin_graphql(UPDATE_SCRIPT, acme_token, id=str(echo.pk), source=source)
        for source in ("return 2", "return 2", "return 3")
    ]

    assert [answer.data["updateScript"]["version"]["number"] for answer in answers] == [2, 2, 3]
    versions = answers[-1].data["updateScript"]["versions"]
    assert [version["source"] for version in versions] == ["return 3", "return 2", echo.source]


def test_an_old_version_is_restored_as_the_newest(echo: Script, acme_token: str) -> None:
    admin_graphql(UPDATE_SCRIPT, acme_token, id=str(echo.pk), source="return 2")
    first = echo.versions.get(number=1)
    restore = """mutation($id: ID!) { restoreScriptVersion(version: $id) {
        source version { number diff } versions { number author } } }"""
    script = admin_graphql(restore, acme_token, id=str(first.pk)).data["restoreScriptVersion"]

    assert script["source"] == first.source
    assert script["versions"] == [
        {"number": 3, "author": "warehouse"},
        {"number": 2, "author": "warehouse"},
        {"number": 1, "author": "Unknown"},
    ]
    assert script["version"]["diff"].splitlines() == [
        "--- version 2",
        "+++ version 3",
        "@@ -1 +1 @@",
        "-return 2",
        f"+{first.source}",
    ]


def test_another_organisations_version_is_not_restored(
    globex: Organisation, acme_token: str
) -> None:
    version = make_script(globex).current_version
    assert version is not None
    restore = "mutation($id: ID!) { restoreScriptVersion(version: $id) { id } }"

    assert admin_graphql(restore, acme_token, id=str(version.pk)).code == "NOT_FOUND"
    assert ScriptVersion.objects.count() == 1


def test_a_change_is_all_or_nothing(echo: Script, acme_token: str) -> None:
    answer = admin_graphql(
        UPDATE_SCRIPT, acme_token, id=str(echo.pk), name="new", on=False, source="("
    )

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "source")
    echo.refresh_from_db()
    assert (echo.name, echo.is_enabled, echo.versions.count()) == ("echo", True, 1)


@pytest.mark.parametrize("seconds", [0, -1, 25.1, 1e9])
def test_a_timeout_has_its_bounds(echo: Script, acme_token: str, seconds: float) -> None:
    answer = admin_graphql(UPDATE_SCRIPT, acme_token, id=str(echo.pk), seconds=seconds)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "timeoutSeconds")
    echo.refresh_from_db()
    assert echo.timeout_seconds == 10


def test_a_hook_is_issued_with_both_addresses_and_its_token_once(
    client: Client, acme: Organisation, echo: Script, acme_token: str
) -> None:
    issued = admin_graphql(CREATE_HOOK, acme_token, id=str(echo.pk)).data["createHook"]
    hook, token = issued["hook"], issued["callToken"]

    assert hook["url"].endswith(f"/hook/{acme.pk}/{echo.pk}/{token}")
    assert hook["secureUrl"].endswith(f"/hook/secure/{acme.pk}/{echo.pk}")
    reply = client.post(path_of(hook["url"]), b"hello", content_type="text/plain")
    assert reply.content == b"hello"
    listed = admin_graphql("{ hooks { nodes { id url } } }", acme_token).data["hooks"]["nodes"]
    assert [node["id"] for node in listed] == [hook["id"]]
    assert token not in listed[0]["url"]


def test_a_rotated_token_replaces_the_old_one(
    client: Client, echo: Script, acme_token: str
) -> None:
    hook, token = make_hook(echo)
    issued = admin_graphql(ROTATE, acme_token, id=str(hook.pk)).data["rotateCallToken"]

    assert issued["callToken"] != token
    assert client.get(path_of(hook.url_with(token))).status_code == 404
    assert client.get(path_of(issued["hook"]["url"])).status_code == 200


def test_a_change_keeps_concurrent_changes_of_other_fields(echo: Script) -> None:
    hook, _ = make_hook(echo)
    Script.objects.update(is_enabled=False)
    Hook.objects.update(is_enabled=False)
    update_script(echo, author=NOBODY, name="renamed")
    update_hook(hook, name="renamed")

    assert Script.objects.values("name", "is_enabled").get() == {
        "name": "renamed",
        "is_enabled": False,
    }
    assert Hook.objects.values("name", "is_enabled").get() == {
        "name": "renamed",
        "is_enabled": False,
    }


def test_a_hook_is_disabled_and_enabled(client: Client, echo: Script, acme_token: str) -> None:
    hook, token = make_hook(echo)
    path = path_of(hook.url_with(token))

    off = admin_graphql(UPDATE_HOOK, acme_token, id=str(hook.pk), on=False, name="other")
    assert off.data["updateHook"]["enabled"] is False
    assert client.get(path).status_code == 404
    admin_graphql(UPDATE_HOOK, acme_token, id=str(hook.pk), on=True)
    assert client.get(path).status_code == 200


def test_a_disabled_script_answers_no_hook_but_may_be_tried(
    client: Client, echo: Script, acme_token: str
) -> None:
    hook, token = make_hook(echo)
    admin_graphql(UPDATE_SCRIPT, acme_token, id=str(echo.pk), on=False)

    assert client.get(path_of(hook.url_with(token))).status_code == 404
    assert admin_graphql(RUN_SCRIPT, acme_token, id=str(echo.pk), body="x").errors == []


def test_deleting_stops_at_once_and_leaves_the_runs_readable(
    client: Client, echo: Script, acme_token: str
) -> None:
    hook, token = make_hook(echo)
    path = path_of(hook.url_with(token))
    client.post(path, b"hello", content_type="text/plain")

    deleted = admin_graphql(DELETE_HOOK, acme_token, id=str(hook.pk))
    assert deleted.data == {"deleteHook": True}
    assert client.get(path).status_code == 404
    deleted = admin_graphql(DELETE_SCRIPT, acme_token, id=str(echo.pk))
    assert deleted.data == {"deleteScript": True}
    gone = admin_graphql("query($id: ID!) { script(id: $id) { id } }", acme_token, id=str(echo.pk))
    assert gone.code == "NOT_FOUND"
    query = """query($s: ID, $h: ID) { runs(script: $s, hook: $h) { nodes {
        script { name deleted } hook { id } requestBody scriptVersion { source } } } }"""
    runs = admin_graphql(query, acme_token, s=str(echo.pk), h=str(hook.pk)).data["runs"]["nodes"]
    assert runs == [
        {
            "script": {"name": "echo", "deleted": True},
            "hook": {"id": str(hook.pk)},
            "requestBody": "hello",
            "scriptVersion": {"source": echo.source},
        }
    ]


def test_a_script_is_run_and_the_run_is_the_answer(echo: Script, acme_token: str) -> None:
    run = admin_graphql(RUN_SCRIPT, acme_token, id=str(echo.pk), body="hé\0").data["runScript"]

    assert run["status"] == "Succeeded"
    assert run["responseBody"] == run["requestBody"] == "hé\0"
    assert base64.b64decode(run["responseBodyBase64"]) == "hé\0".encode()
    assert (run["responseStatus"], run["trigger"], run["error"]) == (200, "admin-graphql", None)
    assert run["durationMs"] > 0
    assert Run.objects.get().trigger == Trigger.ADMIN_GRAPHQL


def test_a_run_started_here_names_the_error_and_its_line(
    acme: Organisation, acme_token: str
) -> None:
    script = make_script(acme, 'log.debug("a")\nlocal function f() error("broken") end\nf()')
    run = admin_graphql(RUN_SCRIPT, acme_token, id=str(script.pk)).data["runScript"]

    assert run["status"] == "Failed"
    assert "broken" in run["error"]["message"]
    assert run["error"]["line"] == 2
    assert run["error"]["traceback"]
    assert [(line["level"], line["text"]) for line in run["logs"]] == [("debug", "a")]


def test_a_run_started_here_names_the_line_at_which_time_ran_out(
    acme: Organisation, acme_token: str
) -> None:
    script = make_script(acme, "local n = 0\nwhile true do\n  n = n + 1\nend")
    Script.objects.update(timeout_seconds=0.3)
    run = admin_graphql(RUN_SCRIPT, acme_token, id=str(script.pk)).data["runScript"]

    assert run["status"] == "TimedOut"
    assert run["error"]["line"] in {2, 3}
    assert "0.3 s" in run["error"]["message"]


def test_bytes_that_are_not_text_are_null_as_text(
    client: Client, echo: Script, acme_token: str
) -> None:
    hook, token = make_hook(echo)
    client.post(path_of(hook.url_with(token)), b"\xff\x00", content_type="a/b")
    query = "{ runs { nodes { requestBody requestBodyBase64 responseBody responseBodyBase64 } } }"

    assert admin_graphql(query, acme_token).data["runs"]["nodes"] == [
        {
            "requestBody": None,
            "requestBodyBase64": "/wA=",
            "responseBody": None,
            "responseBodyBase64": "/wA=",
        }
    ]


def test_the_bytes_of_bodies_in_a_response_are_limited(
    client: Client, echo: Script, acme_token: str
) -> None:
    hook, token = make_hook(echo)
    for _ in range(5):
        client.post(path_of(hook.url_with(token)), b"x" * 1024 * 1024, content_type="a/b")
    bodies = "nodes { requestBody requestBodyBase64 responseBody responseBodyBase64 }"
    few = admin_graphql(f"{{ runs(first: 4) {{ {bodies} }} }}", acme_token)
    many = admin_graphql(f"{{ runs {{ {bodies} }} }}", acme_token)

    assert len(few.data["runs"]["nodes"]) == 4
    assert many.code == "LIMIT_EXCEEDED"


def test_repeated_sources_count_against_the_limit(echo: Script, acme_token: str) -> None:
    ScriptVersion.objects.bulk_create(
        ScriptVersion(
            script=echo, number=number, source="x" * 64 * 1024, published_at=timezone.now()
        )
        for number in range(2, 101)
    )
    versions = f'script(id: "{echo.pk}") {{ versions {{ source }} }}'
    few = admin_graphql(f"{{ a: {versions} }}", acme_token)
    many = admin_graphql(
        f"{{ a: {versions} b: {versions} c: {versions} d: {versions} }}", acme_token
    )

    assert len(few.data["a"]["versions"]) == 100
    assert (many.code, many.data) == ("LIMIT_EXCEEDED", None)


def test_a_diff_of_crafted_sources_is_answered(
    echo: Script, acme_token: str, settings: Any
) -> None:
    # What counts is the work; how long that takes is the machine's.
    settings.GRAPHQL_DEADLINE_SECONDS = 60
    common = [str(number % 100) for number in range(6_000)]
    for number, other in enumerate("ab", start=2):
        source = "".join(f"{line}\n{other}\n" for line in common)
        ScriptVersion.objects.create(
            script=echo, number=number, source=source, published_at=timezone.now()
        )
    query = f'{{ script(id: "{echo.pk}") {{ versions {{ number diff }} }} }}'
    with counted_calls() as work:
        versions = admin_graphql(query, acme_token).data["script"]["versions"]

    assert versions[0]["diff"].startswith("--- version 2\n+++ version 3\n@@ ")
    assert work.calls < 5_000_000


def test_runs_are_filtered(acme: Organisation, echo: Script, acme_token: str) -> None:
    failing = make_script(acme, "error('x')", name="failing")
    admin_graphql(RUN_SCRIPT, acme_token, id=str(echo.pk))
    admin_graphql(RUN_SCRIPT, acme_token, id=str(failing.pk))
    moment = Run.objects.get(script=failing).started_at.isoformat()

    def names(arguments: str) -> list[str]:
        query = f"{{ runs({arguments}) {{ nodes {{ script {{ name }} }} }} }}"
        nodes = admin_graphql(query, acme_token).data["runs"]["nodes"]
        return [node["script"]["name"] for node in nodes]

    assert names("first: 10") == ["failing", "echo"]
    assert names("status: Failed") == ["failing"]
    assert names(f'script: "{echo.pk}"') == ["echo"]
    assert names(f'since: "{moment}"') == ["failing"]
    assert names(f'until: "{moment}"') == ["echo"]


@pytest.mark.parametrize(
    "query",
    [
        "query($id: ID!) { script(id: $id) { name } }",
        "query($id: ID!) { hooks(script: $id) { totalCount } }",
        "query($id: ID!) { runs(script: $id) { totalCount } }",
        "query($id: ID!) { runs(hook: $id) { totalCount } }",
        "query($id: ID!) { run(id: $id) { requestBody } }",
        UPDATE_SCRIPT,
        DELETE_SCRIPT,
        CREATE_HOOK,
        ROTATE,
        UPDATE_HOOK,
        DELETE_HOOK,
        RUN_SCRIPT,
    ],
)
def test_another_organisations_object_is_not_found(
    globex: Organisation, globex_token: str, acme_token: str, query: str
) -> None:
    script = make_script(globex)
    hook, _ = make_hook(script)
    run = admin_graphql(RUN_SCRIPT, globex_token, id=str(script.pk)).data["runScript"]
    before = (list(Script.objects.values()), list(Hook.objects.values()), Run.objects.count())
    ids = [str(script.pk), str(hook.pk), run["id"], str(uuid.uuid4()), "x", ""]
    answers = [admin_graphql(query, acme_token, id=theirs) for theirs in ids]

    assert [answer.code for answer in answers] == ["NOT_FOUND"] * 6
    assert (
        list(Script.objects.values()),
        list(Hook.objects.values()),
        Run.objects.count(),
    ) == before


def test_lists_hold_only_the_own_organisations_rows(
    globex: Organisation, globex_token: str, acme_token: str
) -> None:
    script = make_script(globex)
    make_hook(script)
    admin_graphql(RUN_SCRIPT, globex_token, id=str(script.pk))
    query = "{ scripts { totalCount } hooks { totalCount } runs { totalCount } }"
    count = {"totalCount": 1}

    assert admin_graphql(query, globex_token).data == {
        "scripts": count,
        "hooks": count,
        "runs": count,
    }
    nothing = {"totalCount": 0}
    assert admin_graphql(query, acme_token).data == {
        "scripts": nothing,
        "hooks": nothing,
        "runs": nothing,
    }


def test_a_list_of_runs_costs_as_many_queries_for_one_as_for_many(
    echo: Script, acme_token: str, django_assert_max_num_queries: Any
) -> None:
    query = "{ runs { nodes { id script { source } hook { url } scriptVersion { number } } } }"
    [admin_graphql(RUN_SCRIPT, acme_token, id=str(echo.pk)) for _ in range(5)]

    with django_assert_max_num_queries(3):
        admin_graphql(query, acme_token)
