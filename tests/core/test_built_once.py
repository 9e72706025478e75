"""Threads that need an object at once get the same one."""

import threading

import pytest

from core.caches import built_once
from tests.concurrency import at_once


def test_threads_wait_for_an_object_that_is_being_built() -> None:
    built: list[str] = []
    is_asked_again = threading.Event()

    @built_once
    def build(name: str) -> object:
        built.append(name)
        # Long enough for the others to come in, if they could.
        is_asked_again.wait(0.2)
        return object()

    got = at_once(8, lambda _: build("shared"))

    assert built == ["shared"]
    assert len(set(map(id, got))) == 1


def test_each_argument_has_its_own() -> None:
    build = built_once(lambda name: [name])

    assert build("a") is build("a")
    assert build("a") is not build("b")


def test_a_failed_build_is_repeated_at_the_next_call() -> None:
    answers = iter([OSError(), None])

    @built_once
    def build() -> str:
        if error := next(answers):
            raise error
        return "built"

    with pytest.raises(OSError):
        build()

    assert build() == "built"
