"""Scopes at /admin/graphql: the table names every field, and a key gets no more than it says."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from graphql import GraphQLObjectType, GraphQLSchema

from accounts.flows.api_keys import IssuedApiKey, issue_api_key
from accounts.graphql.field_scopes import ANY_KEY, ANYBODY, ONESELF, PEOPLE, PROGRAMS
from accounts.models import ApiKey, AuthEvent, AuthEventKind, Organisation, User
from accounts.scopes import Scope
from config.api import admin_schema, user_schema
from core.graphql.field_needs import FieldNeeds
from scripts_engine.models import Run
from tests.eventually import eventually
from tests.factories import (
    GraphQLAnswer,
    admin_graphql,
    api_key_login,
    graphql,
    make_script,
    open_session,
)

ADMIN, USER = admin_schema.schema.graphql_schema, user_schema.schema.graphql_schema
TABLES = pytest.mark.parametrize(
    ("schema", "table"), [(ADMIN, PROGRAMS), (USER, PEOPLE)], ids=["programs", "people"]
)


def key_with(organisation: Organisation, *scopes: Scope, **limits: object) -> IssuedApiKey:
    names = [scope.value for scope in scopes]
    return issue_api_key(organisation, name="narrow", scopes=names, **limits)  # type: ignore[arg-type]


def token_with(organisation: Organisation, *scopes: Scope) -> str:
    return open_session(api_key_login(key_with(organisation, *scopes)))


def paths(answer: GraphQLAnswer) -> dict[str, str]:
    return {".".join(error["path"]): error["extensions"]["scope"] for error in answer.errors}


def fields_of(schema: GraphQLSchema) -> Iterator[tuple[str, str]]:
    for name, each in schema.type_map.items():
        if isinstance(each, GraphQLObjectType) and not name.startswith("__"):
            yield from ((name, field) for field in each.fields)


@TABLES
def test_every_field_is_named(schema: GraphQLSchema, table: FieldNeeds) -> None:
    unnamed = [f"{on}.{field}" for on, field in fields_of(schema) if table.of(on, field) is None]

    assert unnamed == []


@TABLES
def test_the_table_names_only_what_there_is(schema: GraphQLSchema, table: FieldNeeds) -> None:
    known = set(fields_of(schema))
    types = {on for on, _ in known}

    assert [on for on, _, _ in table.named() if on not in types] == []
    assert [(on, f) for on, f, _ in table.named() if f is not None and (on, f) not in known] == []


def test_the_tables_name_known_scopes() -> None:
    assert {name for _, _, need in PROGRAMS.named() for name in need.names} <= {
        ANY_KEY,
        *Scope.values,
    }
    assert {name for _, _, need in PEOPLE.named() for name in need.names} == {ANYBODY, ONESELF}


def test_roots_have_no_default() -> None:
    assert [on for on, field, _ in PROGRAMS.named() if field is None and on in ROOTS] == []
    assert [on for on, field, _ in PEOPLE.named() if field is None and on in ROOTS] == []


ROOTS = {"Query", "Mutation"}


def test_what_needs_no_session_needs_nothing() -> None:
    open_fields = {
        field for on, field in fields_of(USER) if on in ROOTS and ANYBODY in _names(on, field)
    }

    assert open_fields == {
        name for name in user_schema.ANONYMOUS_FIELDS if not name.startswith("__")
    }


def _names(on: str, field: str) -> frozenset[str]:
    needed = PEOPLE.of(on, field)
    return frozenset() if needed is None else needed.names


@pytest.mark.parametrize("accept", ["application/json", "application/graphql-response+json"])
def test_a_field_without_its_scope_is_forbidden(acme: Organisation, accept: str) -> None:
    make_script(acme)
    token = token_with(acme, Scope.READ_SCRIPTS)
    query = "{ scripts { nodes { name } } runs { nodes { id body: responseBody logs { text } } } }"

    answer = graphql("/admin/graphql", query, token, headers={"Accept": accept})

    assert (answer.status, answer.data) == (403, None)
    assert answer.errors[0] == {
        "message": "This needs the scope ReadPayloads.",
        "locations": [{"line": 1, "column": 48}],
        "path": ["runs", "nodes", "body"],
        "extensions": {"code": "FORBIDDEN", "scope": "ReadPayloads"},
    }
    assert paths(answer) == {
        "runs.nodes.body": "ReadPayloads",
        "runs.nodes.logs": "ReadPayloads",
        "runs.nodes.logs.text": "ReadPayloads",
    }


def test_the_outline_of_a_run_needs_only_read_scripts(acme: Organisation) -> None:
    query = "{ runs { nodes { id status responseBytes durationMs } totalCount } }"

    answer = admin_graphql(query, token_with(acme, Scope.READ_SCRIPTS))

    assert (answer.status, answer.errors) == (200, [])


def test_nothing_of_the_document_runs(acme: Organisation) -> None:
    script = make_script(acme)
    token = token_with(acme, Scope.READ_SCRIPTS, Scope.OPERATE_QUEUE)
    query = """mutation($id: ID!) {
        enqueueRun(script: $id) { id } pauseQueue(script: $id) deleteScript(id: $id) }"""

    answer = admin_graphql(query, token, id=str(script.pk))

    assert (answer.status, paths(answer)) == (403, {"deleteScript": "Publish"})
    assert Run.objects.count() == 0
    script.refresh_from_db()
    assert (script.queue_paused_at, script.deleted_at) == (None, None)


MUTATIONS = {
    'createScript(name: "a", source: "return 1") { __typename }': "WriteDrafts Publish",
    'updateScript(id: "1", name: "b") { __typename }': "Publish",
    'updateScript(id: "1", source: "return 2") { __typename }': "WriteDrafts Publish",
    'deleteScript(id: "1")': "Publish",
    'restoreScriptVersion(version: "1") { __typename }': "Publish",
    'saveDraft(script: "1", source: "return 2") { __typename }': "WriteDrafts",
    'deleteDraft(id: "1")': "WriteDrafts",
    'publish(versions: ["1"]) { __typename }': "Publish",
    'updateDependents(library: "1") { __typename }': "WriteDrafts Publish",
    'undoRelease(id: "1") { __typename }': "ReadScripts",
    "planManifest(manifest: {version: 1}) { __typename }": "ReadScripts",
    "keepBlobs(sources: [])": "WriteDrafts",
    'applyPlan(id: "1") { __typename }': "ReadScripts",
    'runScript(script: "1") { __typename }': "RunScripts",
    'runScript(script: "1", source: "return 2") { __typename }': "RunScripts WriteDrafts",
    'enqueueRun(script: "1") { __typename }': "OperateQueue",
    'cancelRun(id: "1") { __typename }': "OperateQueue",
    'replayRuns(ids: ["1"])': "OperateQueue",
    "pauseQueue": "OperateQueue",
    "resumeQueue": "OperateQueue",
    'replayRefusedCall(id: "1") { __typename }': "OperateQueue",
    'runScheduleNow(id: "1") { __typename }': "OperateQueue",
    'createHook(script: "1") { __typename }': "WriteHooks",
    'updateHook(id: "1") { __typename }': "WriteHooks",
    'deleteHook(id: "1")': "WriteHooks",
    'rotateCallToken(hook: "1") { __typename }': "WriteHooks",
    'pinHook(hook: "1") { __typename }': "WriteHooks",
    'setSender(hook: "1") { __typename }': "WriteHooks",
    'setSigningSecret(hook: "1", value: "v") { __typename }': "WriteHooks",
    'deleteSigningSecret(id: "1")': "WriteHooks",
    'expectHandshake(hook: "1") { __typename }': "WriteHooks",
    'sendTestEvent(hook: "1") { __typename }': "RunScripts WriteHooks",
    'startListening(hook: "1")': "ReadPayloads",
    'createSchedule(script: "1", cron: "* * * * *") { __typename }': "WriteHooks",
    'updateSchedule(id: "1") { __typename }': "WriteHooks",
    'deleteSchedule(id: "1")': "WriteHooks",
    'setAlertScript(script: "1") { __typename }': "All",
    'setSecret(name: "a", value: "b") { __typename }': "WriteSecrets",
    'deleteSecret(name: "a")': "WriteSecrets",
    'setStoredValue(key: "a", value: "1") { __typename }': "WriteSecrets",
    'deleteStoredValue(key: "a")': "WriteSecrets",
    'createUser(email: "eve@example.com") { __typename }': "WritePeople",
    'updateUser(id: "1") { __typename }': "WritePeople",
    'deactivateUser(id: "1") { __typename }': "WritePeople",
    'unlockUser(id: "1") { __typename }': "WritePeople",
    'addMember(email: "eve@example.com") { __typename }': "WritePeople",
    'removeMember(user: "1")': "WritePeople",
    'revokeDevice(tokenId: "1")': "WritePeople",
    'endSession(id: "1")': "WritePeople",
    'createApiKey(name: "a") { __typename }': "WriteKeys",
    'updateApiKey(id: "1") { __typename }': "WriteKeys",
    'rotateApiKey(id: "1") { __typename }': "WriteKeys",
    'revokeApiKey(id: "1") { __typename }': "WriteKeys",
}


def test_every_mutation_is_tried() -> None:
    assert ADMIN.mutation_type is not None
    tried = {text.split("(")[0] for text in MUTATIONS}

    assert tried == set(ADMIN.mutation_type.fields)


@pytest.mark.parametrize(("mutation", "scope"), MUTATIONS.items())
def test_a_mutation_is_forbidden_to_all_other_scopes_together(
    acme: Organisation, mutation: str, scope: str
) -> None:
    others = [each for each in Scope if each not in {*scope.split(), Scope.ALL}]

    refused = admin_graphql(f"mutation {{ {mutation} }}", token_with(acme, *others))
    needed = [Scope(name) for name in scope.split()]
    passed = admin_graphql(f"mutation {{ {mutation} }}", token_with(acme, *needed))

    assert (refused.status, refused.data, refused.code) == (403, None, "FORBIDDEN")
    assert [error["extensions"]["scope"] for error in refused.errors] == [scope]
    assert passed.status == 200


@pytest.mark.parametrize(
    ("query", "scope"),
    [
        ("{ secrets { name } }", "WriteSecrets"),
        ("{ users { totalCount } }", "ReadPeople"),
        ('{ user(id: "1") { __typename } }', "ReadPeople"),
        ("{ devices { totalCount } }", "ReadPeople"),
        ("{ sessions { totalCount } }", "ReadPeople"),
        ("{ apiKeys { totalCount } }", "ReadKeys"),
        ("{ authEvents { totalCount } }", "ReadAudit"),
        ("{ hooks { totalCount } }", "ReadScripts"),
    ],
)
def test_a_query_is_forbidden_to_all_other_scopes_together(
    acme: Organisation, query: str, scope: str
) -> None:
    others = [each for each in Scope if each not in {scope, Scope.ALL}]

    refused = admin_graphql(query, token_with(acme, *others))
    passed = admin_graphql(query, token_with(acme, Scope(scope)))

    assert (refused.status, refused.data) == (403, None)
    assert {error["extensions"]["scope"] for error in refused.errors} == {scope}
    assert passed.status == 200


def test_a_path_to_another_type_does_not_go_round_its_scope(acme: Organisation) -> None:
    token = token_with(acme, Scope.READ_PEOPLE)
    query = "{ sessions { nodes { apiKey { name } } } }"

    assert paths(admin_graphql(query, token)) == {"sessions.nodes.apiKey.name": "ReadKeys"}


def test_a_key_without_a_known_scope_gets_nothing_but_the_schema(acme: Organisation) -> None:
    issued = key_with(acme, Scope.READ_SCRIPTS)
    token = open_session(api_key_login(issued))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {ApiKey._meta.db_table} SET scopes = '[\"Later\"]'")

    refused = admin_graphql("{ organisation { name } }", token)
    schema = admin_graphql("{ __schema { queryType { name } } __typename }", token)

    assert refused.status == 403
    assert (schema.status, schema.errors) == (200, [])


def test_a_narrowed_key_counts_at_the_next_request(acme: Organisation) -> None:
    issued = key_with(acme, Scope.READ_SCRIPTS, Scope.READ_PEOPLE)
    token = open_session(api_key_login(issued))
    query = "{ users { totalCount } }"
    assert admin_graphql(query, token).status == 200

    ApiKey.objects.filter(pk=issued.api_key.pk).update(scopes=["ReadScripts"])

    assert admin_graphql(query, token).status == 403
    assert admin_graphql("{ scripts { totalCount } }", token).status == 200


def test_a_refusal_is_on_record_once_for_each_key_and_scope(acme: Organisation) -> None:
    issued = key_with(acme, Scope.READ_SCRIPTS)
    token = open_session(api_key_login(issued))

    for query in ("{ users { totalCount } }", "{ user(id: 1) { id } apiKeys { totalCount } }"):
        admin_graphql(query, token)
        admin_graphql(query, token)

    events = AuthEvent.objects.filter(kind=AuthEventKind.SCOPE_REFUSED).order_by("id")
    assert [event.reason for event in events] == ["ReadPeople", "ReadKeys"]
    assert {(event.organisation_id, event.credential) for event in events} == {
        (acme.pk, issued.api_key.key)
    }
    assert {event.actor_id for event in events} == {issued.api_key.key}


def test_a_person_has_no_scope_at_the_admin_endpoint(alice: User) -> None:
    assert graphql("/user/graphql", "{ me { name } }").status == 401


@pytest.mark.django_db(transaction=True)
def test_the_audit_log_is_read_in_both_orders(acme: Organisation, acme_token: str) -> None:
    now = timezone.now()
    for number in range(3):
        issue_api_key(acme, name=f"key {number}")
    query = """query($after: String, $since: DateTime, $until: DateTime, $oldest: Boolean) {
        authEvents(first: 2, after: $after, kind: "api-key.issued", since: $since, until: $until,
            oldestFirst: $oldest) { nodes { subjectLabel } pageInfo { endCursor } } }"""

    def labels(**asked: object) -> tuple[list[str], str]:
        page = admin_graphql(query, acme_token, **asked).data["authEvents"]
        return [node["subjectLabel"] for node in page["nodes"]], page["pageInfo"]["endCursor"]

    since = now.isoformat()
    newest, _ = labels(since=since)
    # On PostgreSQL, only once all older transactions of the server have ended.
    eventually(lambda: len(labels(since=since, oldest=True)[0]) == 2)
    first, cursor = labels(since=since, oldest=True)
    eventually(lambda: labels(since=since, oldest=True, after=cursor)[0])
    then, last = labels(since=since, oldest=True, after=cursor)
    issue_api_key(acme, name="later")
    eventually(lambda: labels(oldest=True, after=last)[0])
    followed, _ = labels(oldest=True, after=last)

    assert newest == ["key 2", "key 1"]
    assert (first, then, followed) == (["key 0", "key 1"], ["key 2"], ["later"])
    assert labels(until=since)[0] == ["warehouse"]
    assert labels(since=(timezone.now() + timedelta(minutes=1)).isoformat())[0] == []
