"""Manifests are read strictly: one problem for each mistake, with its path."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts_engine.plans.manifest import MAX_PROBLEMS, Problems, parse_manifest
from scripts_engine.releases.items import ProblemCode
from tests.scripts_engine.plans.manifests import a_hook, a_schedule, a_script, manifest

WHOLE = manifest(
    scripts=[
        a_script(
            "sum",
            library=False,
            enabled=True,
            timeoutSeconds=5,
            maxConcurrentRuns=None,
            was="add",
        ),
        a_script("money", library=True),
    ],
    hooks=[
        a_hook(
            "sum",
            "orders",
            enabled=True,
            sender="github",
            pinned="0" * 64,
            methods=["POST"],
            allowedNetworks=["192.0.2.0/24"],
            idempotency="EventId",
            callsPerMinute=60,
        )
    ],
    schedules=[
        a_schedule(
            timeZone="Europe/Berlin",
            payload="hello",
            enabled=False,
            overlap="BufferOne",
            catchUp="All",
            catchUpWindowSeconds=60,
        )
    ],
)


def problems_in(document: object) -> list[tuple[str, str]]:
    problems = Problems()
    parse_manifest(document, problems)
    return [(problem.path, problem.code.value) for problem in problems.found]


def with_change(section: str, **changes: Any) -> dict[str, Any]:
    """The whole manifest with the first item of a section changed."""
    document = copy.deepcopy(WHOLE)
    document[section][0] |= changes
    return document


def test_a_whole_manifest_has_no_problem() -> None:
    problems = Problems()
    items = parse_manifest(WHOLE, problems)

    assert problems.found == []
    assert [(item.path, item.name) for item in items] == [
        ("scripts[0]", "sum"),
        ("scripts[1]", "money"),
        ("schedules[0]", "nightly"),
        ("hooks[0]", "orders"),
    ]
    assert items[0].was == "add"
    assert items[0].values["timeoutSeconds"] == 5.0


def test_an_empty_manifest_has_no_problem() -> None:
    assert problems_in({"version": 1}) == []


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (None, ("", "wrong-type")),
        ([], ("", "wrong-type")),
        ("{}", ("", "wrong-type")),
        ({}, ("version", "required")),
        ({"version": 2}, ("version", "unsupported-version")),
        ({"version": True}, ("version", "wrong-type")),
        ({"version": 1.0}, ("version", "wrong-type")),
        ({"version": None}, ("version", "wrong-type")),
        (manifest(script=[]), ("script", "unknown-key")),
        (manifest(**{"a b": []}), ('["a b"]', "unknown-key")),
        (manifest(scripts={}), ("scripts", "wrong-type")),
        (manifest(hooks=None), ("hooks", "wrong-type")),
        (manifest(scripts=[None]), ("scripts[0]", "wrong-type")),
        (manifest(scripts=[a_script()] * 1_001), ("", "too-many-items")),
        (manifest(scripts=["x" * 600_000]), ("", "too-large")),
        (with_change("scripts", color="red"), ("scripts[0].color", "unknown-key")),
        (with_change("scripts", name=1), ("scripts[0].name", "wrong-type")),
        (with_change("scripts", name=" "), ("scripts[0].name", "invalid")),
        (with_change("scripts", name="a\nb"), ("scripts[0].name", "invalid")),
        (with_change("scripts", name="x" * 101), ("scripts[0].name", "invalid")),
        (with_change("scripts", source="ABC"), ("scripts[0].source", "invalid")),
        (with_change("scripts", source="A" * 64), ("scripts[0].source", "invalid")),
        (with_change("scripts", source=None), ("scripts[0].source", "wrong-type")),
        (with_change("scripts", library="no"), ("scripts[0].library", "wrong-type")),
        (with_change("scripts", library=None), ("scripts[0].library", "wrong-type")),
        (with_change("scripts", enabled=1), ("scripts[0].enabled", "wrong-type")),
        (with_change("scripts", timeoutSeconds="5"), ("scripts[0].timeoutSeconds", "wrong-type")),
        (with_change("scripts", timeoutSeconds=True), ("scripts[0].timeoutSeconds", "wrong-type")),
        (with_change("scripts", timeoutSeconds=26), ("scripts[0].timeoutSeconds", "out-of-range")),
        (
            with_change("scripts", timeoutSeconds=float("nan")),
            ("scripts[0].timeoutSeconds", "out-of-range"),
        ),
        (
            with_change("scripts", timeoutSeconds=10**400),
            ("scripts[0].timeoutSeconds", "out-of-range"),
        ),
        (
            with_change("scripts", maxConcurrentRuns=0),
            ("scripts[0].maxConcurrentRuns", "out-of-range"),
        ),
        (
            with_change("scripts", maxConcurrentRuns=2**70),
            ("scripts[0].maxConcurrentRuns", "out-of-range"),
        ),
        (with_change("scripts", was=1), ("scripts[0].was", "wrong-type")),
        (with_change("hooks", sender="nobody"), ("hooks[0].sender", "invalid")),
        (with_change("hooks", sender=1), ("hooks[0].sender", "wrong-type")),
        (with_change("hooks", pinned="x"), ("hooks[0].pinned", "invalid")),
        (with_change("hooks", methods=["PATCH TOO"]), ("hooks[0].methods", "invalid")),
        (with_change("hooks", methods="POST"), ("hooks[0].methods", "wrong-type")),
        (with_change("hooks", methods=[1]), ("hooks[0].methods", "wrong-type")),
        (with_change("hooks", allowedNetworks=["x"]), ("hooks[0].allowedNetworks", "invalid")),
        (with_change("hooks", idempotency="event-id"), ("hooks[0].idempotency", "invalid")),
        (with_change("hooks", callsPerMinute=0), ("hooks[0].callsPerMinute", "invalid")),
        (with_change("hooks", callsPerMinute=1.5), ("hooks[0].callsPerMinute", "wrong-type")),
        (with_change("hooks", maxBodyBytes=2**70), ("hooks[0].maxBodyBytes", "invalid")),
        (with_change("hooks", hmac=[]), ("hooks[0].hmac", "wrong-type")),
        (with_change("hooks", hmac={"header": 1}), ("hooks[0].hmac", "wrong-type")),
        (with_change("hooks", hmac={"header": ""}), ("hooks[0].hmac", "invalid")),
        (with_change("hooks", hmac={"colour": "x"}), ("hooks[0].hmac", "invalid")),
        (with_change("hooks", token="x"), ("hooks[0].token", "unknown-key")),
        (with_change("hooks", verifyToken="x"), ("hooks[0].verifyToken", "unknown-key")),
        (with_change("schedules", cron="* *"), ("schedules[0].cron", "invalid")),
        (with_change("schedules", timeZone="Mars"), ("schedules[0].timeZone", "invalid")),
        (with_change("schedules", payload="\0"), ("schedules[0].payload", "invalid")),
        (with_change("schedules", payload="x" * 65_537), ("schedules[0].payload", "out-of-range")),
        (with_change("schedules", overlap="buffer-one"), ("schedules[0].overlap", "invalid")),
        (
            with_change("schedules", catchUpWindowSeconds=-1),
            ("schedules[0].catchUpWindowSeconds", "out-of-range"),
        ),
        (with_change("scripts", name="MONEY"), ("scripts[1].name", "duplicate")),
        (with_change("scripts", was="Money"), ("scripts[0].was", "duplicate")),
    ],
)
def test_a_mistake_is_one_problem(document: object, problem: tuple[str, str]) -> None:
    assert problems_in(document) == [problem]


def test_each_mistake_of_an_item_is_a_problem() -> None:
    document = manifest(scripts=[{"name": "", "library": 1, "size": 3}])

    assert problems_in(document) == [
        ("scripts[0].size", "unknown-key"),
        ("scripts[0].name", "invalid"),
        ("scripts[0].source", "required"),
        ("scripts[0].library", "wrong-type"),
    ]


def test_two_items_that_rename_one_script_are_refused() -> None:
    document = manifest(scripts=[a_script("a", was="c"), a_script("b", was="C")])

    assert problems_in(document) == [("scripts[1].was", "duplicate")]


def test_more_problems_than_anybody_reads_are_cut() -> None:
    document = manifest(scripts=[{}] * 900)

    problems = problems_in(document)

    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1] == ("", "too-many-problems")


def test_deep_nesting_is_too_large() -> None:
    document: Any = []
    for _ in range(100_000):
        document = [document]

    assert problems_in({"version": 1, "scripts": document}) == [("", "too-large")]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_any_json_is_read_without_an_exception(document: Any) -> None:
    assert all(isinstance(code, ProblemCode) for _, code, _ in found_in(document))


@given(
    st.sampled_from(["scripts", "hooks", "schedules"]),
    st.dictionaries(
        st.sampled_from(
            sorted({key for items in WHOLE.values() if isinstance(items, list) for key in items[0]})
        )
        | st.text(max_size=5),
        json_values,
    ),
)
def test_any_values_of_an_item_are_read_without_an_exception(
    section: str, item: dict[str, Any]
) -> None:
    assert all(
        path == "" or path.startswith(section)
        for path, _, _ in found_in({"version": 1, section: [item]})
    )


def found_in(document: object) -> Any:
    problems = Problems()
    parse_manifest(document, problems)
    return problems.found
