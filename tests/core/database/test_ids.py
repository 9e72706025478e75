import copy
import pickle
import uuid

from core.database.ids import KnownId

PLAIN = uuid.UUID("0192f3a4-5b6c-7d8e-9f00-112233445566")


def test_a_known_id_is_the_same_id() -> None:
    known = KnownId(PLAIN)

    assert known == PLAIN
    assert {known: 1}[PLAIN] == 1
    assert (str(known), known.hex, known.bytes) == (str(PLAIN), PLAIN.hex, PLAIN.bytes)
    assert f"{known}" == f"{PLAIN}"


def test_copies_of_a_known_id_are_plain() -> None:
    known = KnownId(PLAIN)

    for copied in (copy.deepcopy(known), pickle.loads(pickle.dumps(known))):
        assert type(copied) is uuid.UUID
        assert copied == PLAIN
