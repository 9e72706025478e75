"""The shipped vectors: what each sender's calls and handshakes become."""

import pytest

from hooks.senders import PRESETS
from hooks.senders.vectors import Vector, shipped_vectors, try_vector


@pytest.mark.parametrize("vector", shipped_vectors(), ids=lambda vector: vector.id)
def test_a_call_has_the_outcome_of_its_vector(vector: Vector) -> None:
    assert try_vector(vector).problem == ""


def test_every_sender_has_a_call_that_is_accepted_and_one_that_is_refused() -> None:
    tried = {(vector.rules.preset, vector.expected["ok"]) for vector in shipped_vectors()}

    assert tried == {(name, is_ok) for name in PRESETS for is_ok in (True, False)}


def test_no_two_vectors_share_an_id() -> None:
    ids = [vector.id for vector in shipped_vectors()]

    assert len(ids) == len(set(ids))
