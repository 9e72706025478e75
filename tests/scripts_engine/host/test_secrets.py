"""secrets.get, from scripts, and the encryption of secrets."""

from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from accounts.models import Organisation
from core.database.unavailable import DatabaseUnavailable
from core.encryption import DecryptionError
from scripts_engine.host.secrets import MAX_REVEALED, SecretsCapability
from scripts_engine.models import Run, Secret
from scripts_engine.secrets import decrypt, encrypt, set_secret
from tests.factories import admin_graphql, reply_of, run_lua

SET = "mutation($name: String!, $value: String!) { setSecret(name: $name, value: $value) { name } }"
DELETE = "mutation($name: String!) { deleteSecret(name: $name) }"


def test_a_script_reads_its_organisations_secret(acme: Organisation, globex: Organisation) -> None:
    set_secret(acme, name="SHOP_KEY", value="sk_live_é")
    source = 'local s = secrets.get("SHOP_KEY") return s and #s or "none"'

    assert reply_of(run_lua(acme, source)) == str(len("sk_live_é".encode()))
    assert reply_of(run_lua(globex, source)) == "none"


def test_a_name_that_no_secret_can_have_asks_no_database(
    acme: Organisation, django_assert_num_queries: Any
) -> None:
    set_secret(acme, name="K" * 100, value="value")
    secrets = SecretsCapability(acme.pk)

    assert secrets.get(b"K" * 100, deadline=0) == b"value"
    with django_assert_num_queries(0):
        assert secrets.get(b"K" * 101, deadline=0) is None


def test_a_secret_that_a_script_read_is_not_recorded(acme: Organisation) -> None:
    set_secret(acme, name="SHOP_KEY", value="sk_live_1234")
    run_lua(
        acme,
        """local s = secrets.get("SHOP_KEY")
        print("with " .. s)
        pcall(http.get, "ftp://" .. s)
        return Reply{headers = {["X-S"] = s}, body = {s}}""",
    )
    run_lua(acme, 'error("with " .. secrets.get("SHOP_KEY"))')

    kept = str(list(Run.objects.values("logs", "error_message", "error_traceback",
        "response_headers", "response_body", "host_calls")))  # fmt: skip
    assert "sk_live_1234" not in kept
    assert kept.count("[redacted]") >= 4


@pytest.mark.parametrize(
    "source",
    [
        'error(("x"):rep(4096 - 20) .. s, 0)',
        'error(setmetatable({}, {__tostring = function() return ("x"):rep(4076) .. s end}))',
        'print(("x"):rep(64 * 1024 - 20) .. s)',
        'print(("x"):rep(64 * 1024 - 1020)) log.info(("x"):rep(1000) .. s)',
    ],
)
def test_a_secret_that_a_limit_cuts_is_hidden_from_its_beginning(
    acme: Organisation, source: str
) -> None:
    secret = "sk_live_" + "0123456789" * 8
    set_secret(acme, name="SHOP_KEY", value=secret)
    run = run_lua(acme, f'local s = secrets.get("SHOP_KEY") {source}')

    kept = f"{run.logs}{run.error_message}{run.host_calls}"
    assert "sk_live" not in kept
    assert "x" * 900 in kept


def test_the_error_of_a_call_holds_no_part_of_a_secret(acme: Organisation) -> None:
    set_secret(acme, name="SHOP_KEY", value="sk_live_" + "0123456789" * 8)
    run = run_lua(
        acme,
        """local name = ("x"):rep(936) .. secrets.get("SHOP_KEY")
        http.get("http://127.0.0.1/", {[name] = "", [name:upper()] = ""})""",
    )

    assert run.error_message == "echo:2: http.get: a header is given twice"
    assert "sk_" not in f"{run.host_calls}{run.error_traceback}".lower()


def test_a_secret_that_hides_others_cannot_make_a_record_of_megabytes(acme: Organisation) -> None:
    set_secret(acme, name="KEY", value="shown-secret")
    for length in range(4, 11):
        set_secret(acme, name=f"KEY_{length}", value="[redacted]"[:length])
    run = run_lua(
        acme,
        """for n = 4, 10 do local _ = secrets.get("KEY_" .. n) end
        return (secrets.get("KEY") .. "-"):rep(1800)""",
    )

    assert bytes(run.response_body) == b"[redacted]-" * 1800


def test_a_secret_in_a_header_is_hidden_whatever_its_characters(acme: Organisation) -> None:
    set_secret(acme, name="KEY", value="geheim-é")
    run = run_lua(acme, 'return Reply{headers = {["X-Key"] = secrets.get("KEY")}, body = "done"}')

    assert ["X-Key", "[redacted]"] in run.response_headers


def test_the_secrets_of_a_run_are_limited(acme: Organisation) -> None:
    for number in range(MAX_REVEALED + 1):
        set_secret(acme, name=f"KEY_{number}", value=f"value {number}")
    run = run_lua(
        acme,
        """local given = 0
        local ok, problem = pcall(function()
            for _ = 1, 2 do
                for n = 0, 50 do given = given + (secrets.get("KEY_" .. n) and 1 or 0) end
            end
        end)
        return given .. ": " .. problem""",
    )

    assert reply_of(run).startswith(f"{MAX_REVEALED}: ")
    assert "more than 50 secrets in a run" in reply_of(run)


def test_a_secret_in_a_json_reply_is_hidden_too(acme: Organisation) -> None:
    set_secret(acme, name="KEY", value='quo"te\\d')
    run = run_lua(acme, 'return {secrets.get("KEY")}')

    assert bytes(run.response_body) == b'["[redacted]"]'


def test_a_secret_is_not_readable_in_the_database(acme: Organisation) -> None:
    set_secret(acme, name="SHOP_KEY", value="sk_live_1234")

    assert b"sk_live" not in bytes(Secret.objects.get().ciphertext)


def test_a_ciphertext_opens_only_where_it_belongs() -> None:
    ciphertext = encrypt(b"value", "acme:KEY")

    assert decrypt(ciphertext, "acme:KEY") == b"value"
    for wrong in (ciphertext[:-1] + bytes([ciphertext[-1] ^ 1]), ciphertext[:10], b""):
        with pytest.raises(DecryptionError):
            decrypt(wrong, "acme:KEY")
    with pytest.raises(DecryptionError):
        decrypt(ciphertext, "globex:KEY")


def test_equal_secrets_differ_in_the_database() -> None:
    assert encrypt(b"value", "a") != encrypt(b"value", "a")


def test_secrets_outlive_a_pepper_rotation_but_not_the_peppers_retirement(
    acme: Organisation,
) -> None:
    set_secret(acme, name="KEY", value="value")
    source = 'return #secrets.get("KEY")'
    with override_settings(PEPPERS={99: b"9" * 32, **settings.PEPPERS}):
        assert reply_of(run_lua(acme, source)) == "5"
    with override_settings(PEPPERS={99: b"9" * 32}):
        run = run_lua(acme, source)

    assert "KEY cannot be read; set it again" in run.error_message


def test_secrets_are_set_listed_and_deleted_by_admin_graphql(
    acme: Organisation, acme_token: str
) -> None:
    assert admin_graphql(SET, acme_token, name="KEY", value="one").errors == []
    assert admin_graphql(SET, acme_token, name="KEY", value="two-2").data["setSecret"] == {
        "name": "KEY"
    }
    listed = admin_graphql("{ secrets { id name createdAt updatedAt } }", acme_token)

    assert [secret["name"] for secret in listed.data["secrets"]] == ["KEY"]
    assert reply_of(run_lua(acme, 'return #secrets.get("KEY")')) == "5"
    assert admin_graphql(DELETE, acme_token, name="KEY").data == {"deleteSecret": True}
    assert admin_graphql(DELETE, acme_token, name="KEY").code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        ({"name": "", "value": "x"}, "name"),
        ({"name": "a b", "value": "x"}, "name"),
        ({"name": "K\n", "value": "x"}, "name"),
        ({"name": "x" * 101, "value": "x"}, "name"),
        ({"name": "K", "value": ""}, "value"),
        ({"name": "K", "value": "x" * (16 * 1024 + 1)}, "value"),
    ],
)
def test_a_bad_secret_is_not_set(acme_token: str, variables: Any, field: str) -> None:
    answer = admin_graphql(SET, acme_token, **variables)

    assert answer.code == "BAD_USER_INPUT"
    assert answer.errors[0]["extensions"]["field"] == field
    assert Secret.objects.count() == 0


def test_another_organisations_secrets_are_neither_seen_nor_deleted(
    globex: Organisation, acme_token: str
) -> None:
    set_secret(globex, name="KEY", value="value")

    assert admin_graphql("{ secrets { name } }", acme_token).data == {"secrets": []}
    assert admin_graphql(DELETE, acme_token, name="KEY").code == "NOT_FOUND"
    assert Secret.objects.count() == 1


def test_a_secret_that_cannot_be_read_is_logged_once_a_run_and_in_one_line(
    acme: Organisation, caplog: pytest.LogCaptureFixture
) -> None:
    set_secret(acme, name="KEY", value="value")
    Secret.objects.update(ciphertext=b"\0" * 40)
    source = 'for _ = 1, 20 do pcall(secrets.get, "KEY") end return secrets.get("KEY")'

    assert "KEY cannot be read" in run_lua(acme, source).error_message
    assert [(record.message, record.exc_info) for record in caplog.records] == [
        (f"Secret {Secret.objects.get().pk} cannot be decrypted", None)
    ]


def refuse_store(execute: Any, sql: str, *arguments: Any) -> Any:
    """A database without this table, for ``connection.execute_wrapper``."""
    if "storedvalue" in sql:
        raise DatabaseUnavailable("disk is full")
    return execute(sql, *arguments)


def test_a_database_error_is_logged_once_a_run(
    acme: Organisation, caplog: pytest.LogCaptureFixture
) -> None:
    source = 'for _ = 1, 20 do pcall(store.get, "key") end return "done"'
    with connection.execute_wrapper(refuse_store):
        assert reply_of(run_lua(acme, source)) == "done"

    assert [record.message for record in caplog.records] == ["Host call store.get: disk is full"]
