import json
from collections.abc import Iterable

from config.http.redaction import REDACTED

# Shorter ones would tear up ordinary text, and are no secrets.
SHORTEST_HIDDEN = 4


class Recorder:
    """Makes what a run shows fit to be kept: without the secrets that the script was given.

    NUL becomes visible, because PostgreSQL's text and jsonb cannot hold it.
    """

    def __init__(self, hidden: Iterable[bytes] = ()) -> None:
        forms = {form for secret in hidden for form in (secret, _in_json(secret))}
        self._hidden = sorted(
            (form for form in forms if len(form) >= SHORTEST_HIDDEN), key=len, reverse=True
        )

    def bytes(self, content: bytes) -> bytes:
        for secret in self._hidden:
            content = content.replace(secret, REDACTED.encode())
        return content

    def text(self, text: str) -> str:
        for secret in self._hidden:
            text = text.replace(secret.decode("utf-8", "replace"), REDACTED)
        return text.replace("\0", "\N{SYMBOL FOR NULL}")


def _in_json(secret: bytes) -> bytes:
    """The secret as it stands inside a JSON string."""
    return json.dumps(secret.decode("utf-8", "replace"), ensure_ascii=False)[1:-1].encode()
