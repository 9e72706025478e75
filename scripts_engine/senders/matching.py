"""Compares signatures with what each live secret would have signed."""

import hmac
from base64 import b64encode
from collections.abc import Iterator, Sequence

from scripts_engine.senders.contract import InvalidSecretError
from scripts_engine.senders.evidence import Evidence, Kind, Presented, malformed
from scripts_engine.senders.preset import Algorithm, Encoding
from scripts_engine.senders.secrets import Key, SecretFormat, decoded_base64, decoded_hex, open_key


def matching_secret(
    evidence: Evidence, format_: SecretFormat, secrets: Sequence[str]
) -> int | None:
    """The index of the first secret that made one of the signatures; None if none did.

    Every signature is compared with every secret, over bytes and in constant time, so that the time
    taken does not tell which of them matched.
    """
    _check_commas(evidence, secrets)
    matches = [_made(evidence, key) for key in _keys(format_, secrets)]
    return matches.index(True) if True in matches else None


def _check_commas(evidence: Evidence, secrets: Sequence[str]) -> None:
    """Refuses a token with a comma, with which servers join repeated headers."""
    is_joined = any(
        presented.kind is Kind.TOKEN and "," in presented.value for presented in evidence.signatures
    )
    if is_joined and not any("," in secret for secret in secrets):
        raise malformed("the header has a comma, or occurs twice")


def _made(evidence: Evidence, key: Key | None) -> bool:
    if key is None:
        return False
    is_match = False
    for material in evidence.materials:
        expected = _Expected(key, material, evidence.algorithm)
        for presented in evidence.signatures:
            is_match |= expected.fits(presented)
    return is_match


class _Expected:
    """What one key makes of one material."""

    def __init__(self, key: Key, material: bytes, algorithm: Algorithm) -> None:
        self._key = key
        self._material = material
        self._digest = (
            hmac.digest(key.shared, material, algorithm) if key.shared is not None else None
        )

    def fits(self, presented: Presented) -> bool:
        match presented.kind:
            case Kind.HMAC:
                return self._is_digest(presented)
            case Kind.TOKEN:
                shared = self._key.shared
                given = presented.value.encode("utf-8", "surrogatepass")
                return shared is not None and hmac.compare_digest(given, shared)
            case Kind.ED25519:
                signature = _decoded(presented)
                return self._key.is_ed25519_signature(signature, self._material)
            case Kind.ECDSA:
                return self._key.is_ecdsa_signature(_decoded(presented), self._material)

    def _is_digest(self, presented: Presented) -> bool:
        if self._digest is None:
            return False
        if presented.encoding is Encoding.HEX:
            expected, given = self._digest.hex(), presented.value.lower()
        else:
            expected, given = b64encode(self._digest).decode(), presented.value
        # As bytes: compare_digest raises TypeError for text that is not ASCII.
        return hmac.compare_digest(expected.encode(), given.encode())


def _keys(format_: SecretFormat, secrets: Sequence[str]) -> Iterator[Key | None]:
    for secret in secrets:
        try:
            yield open_key(format_, secret)
        except InvalidSecretError:
            # Stored for another sender of the same hook: it matches nothing.
            yield None


def _decoded(presented: Presented) -> bytes:
    """The signature's bytes; empty, which fits nothing, for an impossible length."""
    decode = decoded_hex if presented.encoding is Encoding.HEX else decoded_base64
    try:
        return decode(presented.value)
    except ValueError:
        return b""
