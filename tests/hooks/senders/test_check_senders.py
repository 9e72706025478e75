"""manage.py check_senders: the shipped vectors and those of a file, as text and as JSON."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from hooks.senders.vectors import SHIPPED


def output_of(*arguments: str) -> str:
    said = StringIO()
    call_command("check_senders", *arguments, stdout=said)
    return said.getvalue()


def shipped(identifier: str) -> dict[str, Any]:
    document = json.loads(SHIPPED.read_text())
    return next(each for each in document["vectors"] if each["id"] == identifier)


def written(folder: Path, content: object) -> str:
    path = folder / "vectors.json"
    path.write_text(json.dumps(content))
    return str(path)


def of_format(*vectors: object) -> dict[str, object]:
    return {"format": "moonhook-sender-vectors/1", "vectors": list(vectors)}


def test_the_shipped_vectors_end_as_expected() -> None:
    lines = output_of().splitlines()

    assert [line for line in lines if line.startswith("FAIL")] == []
    assert lines[-1] == "154 of 154 as expected."


def test_one_json_object_says_what_became_of_each_vector(tmp_path: Path) -> None:
    path = written(tmp_path, of_format(shipped("stripe-suite"), shipped("zendesk-secret-decoded")))

    accepted, refused = json.loads(output_of(path, "--json"))["vectors"]

    assert accepted == {
        "id": "stripe-suite",
        "sender": "stripe",
        "asExpected": True,
        "ok": True,
        "handshake": False,
        "reason": None,
        "detail": None,
        "eventId": "evt_test_webhook",
        "hints": [],
        "problem": "",
    }
    assert refused["reason"] == "SignatureMismatch"
    assert refused["hints"][0].startswith("secret-base64-decoded: ")


def test_a_vector_that_ends_otherwise_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = shipped("stripe-suite") | {"expect": {"ok": True, "event_id": "evt_other"}}
    path = written(tmp_path, of_format(shipped("github-published"), wrong))

    with pytest.raises(SystemExit) as exit_:
        call_command("check_senders", path)

    assert exit_.value.code == 1
    said = capsys.readouterr().out
    assert "FAIL stripe-suite" in said
    assert "event_id is 'evt_test_webhook', not 'evt_other'" in said
    assert "1 of 2 as expected." in said


def test_a_missing_hint_exits_with_1(tmp_path: Path) -> None:
    vector = shipped("github-trailing-newline-in-body")
    vector["expect"]["hint"] = "url-scheme"

    with pytest.raises(SystemExit):
        output_of(written(tmp_path, of_format(vector)))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "does not say that its format is"),
        ({"format": "other/1", "vectors": []}, "does not say that its format is"),
        (of_format(), "has no list of vectors"),
        (of_format("text"), "Vector 0 does not have the format"),
        (of_format({"id": "a"}), "Vector a: preset is missing"),
        (of_format(shipped("stripe-suite") | {"secrets": [1]}), "Vector stripe-suite does not"),
        (of_format(shipped("stripe-suite") | {"now": "noon"}), "Vector stripe-suite does not"),
        (of_format(shipped("stripe-suite") | {"expect": {}}), "whether the call is ok"),
        (of_format(shipped("stripe-suite") | {"expect": {"ok": False}}), "has no known reason"),
        (of_format(shipped("hmac-defaults") | {"options": {}}), "Vector hmac-defaults does not"),
    ],
)
def test_a_file_of_another_format_is_an_error(
    tmp_path: Path, content: object, problem: str
) -> None:
    with pytest.raises(CommandError, match=problem):
        output_of(written(tmp_path, content))


def test_a_file_that_is_not_json_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "vectors.json"
    path.write_bytes(b"\xff{")

    with pytest.raises(CommandError, match="is not JSON"):
        output_of(str(path))


def test_a_file_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file or directory"):
        output_of(str(tmp_path / "none.json"))
