"""A recorded run contains no secret, and is no longer than its limits."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts_engine.redaction import MAX_STRETCHES, Redactor, storable

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("secrets", "shown", "kept"),
    [
        (["abcd"], "<abcd>", "<[redacted]>"),
        (["abcd"], "abcd", "[redacted]"),
        (["abcd"], "<abcdabcd>", "<[redacted]>"),
        (["abcd"], "<abcd-abcd>", "<[redacted]-[redacted]>"),
        (["abcd", "abcdefgh"], "<abcdefgh> <abcde>", "<[redacted]> <[redacted]e>"),
        (["bcde", "abcdef"], "<abcdef> <abcde>", "<[redacted]> <a[redacted]>"),
        (["abcd", "cdef"], "<abcdef>", "<[redacted]>"),
        (["aaaa"], "<aaaaaa>", "<[redacted]>"),
        (["abab"], "<ababa>", "<[redacted]a>"),
        (["abcab"], "<abcabcab>", "<[redacted]>"),
        (["redacted", "secret"], "<secret>", "<[redacted]>"),
        (['quo"te'], '{"k":"quo\\"te"}', '{"k":"[redacted]"}'),
        (["geheim-é"], "<geheim-é>", "<[redacted]>"),
        (["abc"], "<abc>", "<abc>"),
    ],
)
def test_no_part_of_a_secret_remains(secrets: list[str], shown: str, kept: str) -> None:
    redactor = Redactor(secret.encode() for secret in secrets)

    assert redactor.text(shown, 1000) == kept
    assert redactor.bytes(shown.encode(), 1000) == kept.encode()


@pytest.mark.parametrize(
    ("secrets", "shown", "kept"),
    [
        (["abcdefgh"], "<abcdefg", "<[redacted]"),
        (["abcdefgh"], "<abcd", "<[redacted]"),
        (["abcdefgh"], "<abc", "<abc"),
        (["abcdefgh"], "<abcdefg>", "<abcdefg>"),
        (["abcdefgh"], "abcdefgabcde", "abcdefg[redacted]"),
        (["abcdefgh"], "abcdefghabcde", "[redacted]"),
        (["aaaaaab"], "<aaaaaaaa", "<aa[redacted]"),
        (["abcdabcdx", "cdabcd"], "<abcdabcd", "<[redacted]"),
        (["first-and", "-and-second"], "<first-and", "<[redacted]"),
        (["geheim-é!"], "<geheim-\ufffd", "<[redacted]"),
        (['line "one"'], '<line \\"on', "<[redacted]"),
        (["abcdefgh"], "\ufffd", "\ufffd"),
    ],
)
def test_a_secret_truncated_by_a_limit_is_redacted(
    secrets: list[str], shown: str, kept: str
) -> None:
    redactor = Redactor(secret.encode() for secret in secrets)

    assert redactor.text(shown, 1000, is_cut=True) == kept


@given(st.text("ab", max_size=40), st.text("ab", min_size=4, max_size=12))
def test_the_longest_truncated_secret_is_redacted(shown: str, secret: str) -> None:
    lengths = range(4, len(secret) + 1)
    longest = max((each for each in lengths if shown.endswith(secret[:each])), default=0)
    # A secret that stands nowhere but there.
    ended = f"{shown}c"[: len(shown) + (longest == 0)]

    kept = Redactor([f"{secret}c".encode()]).text(ended, 1000, is_cut=True)

    assert kept == ended[: len(ended) - longest] + "[redacted]" * (longest > 0)


def covered(shown: str, secrets: list[str]) -> list[bool]:
    """Which characters belong to an occurrence, found one by one."""
    return [
        any(
            shown.startswith(secret, start)
            for secret in secrets
            for start in range(max(0, place - len(secret) + 1), place + 1)
        )
        for place in range(len(shown))
    ]


@given(st.text("ab", max_size=40), st.lists(st.text("ab", min_size=4, max_size=9), max_size=4))
def test_exactly_the_occurrences_of_secrets_are_redacted(shown: str, secrets: list[str]) -> None:
    kept = Redactor(secret.encode() for secret in secrets).text(shown, 1000)

    marked = "".join("#" if hidden else each for each, hidden in
        zip(shown, covered(shown, secrets), strict=True))  # fmt: skip
    while "##" in marked:
        marked = marked.replace("##", "#")
    assert kept.replace("[redacted]", "#") == marked


def test_secrets_that_occur_in_the_mark_do_not_multiply() -> None:
    secrets = [b"[redacted]"[:length] for length in range(4, 11)] + [b"shown-secret"]
    shown = b"shown-secret-" * 1800

    kept = Redactor(secrets).bytes(shown, MIB)

    assert kept == b"[redacted]-" * 1800


def test_redacted_texts_keep_within_their_limits() -> None:
    redactor = Redactor([b"abcd"])

    assert len(redactor.bytes(b"abcd-" * 100, 500)) == 500
    assert len(redactor.text("abcd-" * 100, 500)) == 500
    assert sum(map(len, redactor.texts(["abcd-" * 10] * 10, 500))) == 500
    headers = redactor.headers([("X-Name", "abcd-" * 100)] * 2, 500)
    assert sum(len(name) + len(value) for name, value in headers) == 500


def test_a_text_of_nothing_but_secrets_is_not_kept() -> None:
    shown = b"abcd-" * (MAX_STRETCHES + 1)

    assert Redactor([b"abcd"]).bytes(shown, MIB) == b"[redacted]"


def test_a_secret_in_a_header_is_hidden_in_its_bytes() -> None:
    value = "key=geheim-é".encode().decode("latin-1")

    kept = Redactor(["geheim-é".encode()]).headers([("X-Key", value)], 100)

    assert kept == [["X-Key", "key=[redacted]"]]


@pytest.mark.parametrize(
    ("secrets", "shown"),
    [
        ([b"a" * (4 + more) for more in range(50)], b"a" * MIB),
        ([b"a" * (16_000 + more) + b"b" for more in range(50)], b"a" * MIB),
        ([b"a" * 8000 + b"b" + b"a" * (8000 + more) for more in range(50)],
            (b"a" * 8000 + b"b") * 130),
        ([b"a" * (4 + more) for more in range(50)], (b"a" * 30 + b"b") * 33_000),
    ],
)  # fmt: skip
def test_redaction_takes_linear_time_with_hostile_secrets(
    secrets: list[bytes], shown: bytes
) -> None:
    """Takes about a second; quadratic time would be hours."""
    started = time.process_time()

    redactor = Redactor(secrets)
    redactor.bytes(shown, MIB)
    redactor.text(shown.decode(), MIB, is_cut=True)

    assert time.process_time() - started < 30


@pytest.mark.parametrize(
    ("text", "kept"),
    [("a\0b", "a␀b"), ("é\0", "é␀"), ("\ud800", "?"), ("plain", "plain"), ("", "")],
)
def test_text_becomes_storable_in_every_database(text: str, kept: str) -> None:
    assert storable(text) == kept
