"""The encrypted content of a refused call: what the caller sent, as far as it is kept."""

import base64
import json
from dataclasses import dataclass
from uuid import UUID

from core.encryption import Cipher, DecryptionError
from scripts_engine.models import RefusedCall

CONTENTS = Cipher(b"moonhook refused calls")


@dataclass(frozen=True, slots=True)
class RefusedContent:
    """Header values, query and URL are Latin-1 text, as received."""

    headers: tuple[tuple[str, str], ...]
    """The sender's own headers and the content type."""
    query: str
    url: str
    """What the sender signs, if it signs the URL; ``""`` otherwise."""
    body: bytes | None
    """``None`` if it was not read or is too large to keep."""


def encrypted(content: RefusedContent, refused_call_id: UUID) -> bytes:
    """The ciphertext for the row with this id; it cannot be decrypted in another row."""
    body = None if content.body is None else base64.b64encode(content.body).decode()
    document = {
        "headers": content.headers,
        "query": content.query,
        "url": content.url,
        "body": body,
    }
    return CONTENTS.encrypt(json.dumps(document).encode(), str(refused_call_id))


def content_of(refused_call: RefusedCall) -> RefusedContent | None:
    """``None`` if the content is no longer kept, or its pepper is missing."""
    if refused_call.content_ciphertext is None:
        return None
    try:
        text = CONTENTS.decrypt(bytes(refused_call.content_ciphertext), str(refused_call.pk))
    except DecryptionError:
        return None
    document = json.loads(text)
    body = document["body"]
    return RefusedContent(
        headers=tuple((name, value) for name, value in document["headers"]),
        query=document["query"],
        url=document["url"],
        body=None if body is None else base64.b64decode(body),
    )
