"""secrets.get: a secret of the organisation, by name."""

import logging
import uuid
from typing import Any

from scripts_engine.encryption import DecryptionError, context_of, decrypt
from scripts_engine.models import Secret
from scripts_engine.sandbox.contract import HostCallError

# Each is looked for in everything that is recorded of the run.
MAX_REVEALED = 50
# No secret has a longer name.
MAX_NAME_BYTES = 100

logger = logging.getLogger(__name__)


class SecretsCapability:
    """The secrets of one run; remembers which it gave away."""

    def __init__(self, organisation_id: uuid.UUID) -> None:
        self._organisation_id = organisation_id
        self._revealed: set[bytes] = set()
        # By id; a script may ask for one a thousand times, the log is told once.
        self._unreadable: set[uuid.UUID] = set()

    @property
    def revealed(self) -> frozenset[bytes]:
        return frozenset(self._revealed)

    def get(self, name: Any, *, deadline: float) -> bytes | None:
        """The value, or ``None`` where there is none of that name."""
        if not isinstance(name, bytes):
            raise HostCallError("secrets.get: the name must be a string")
        if len(name) > MAX_NAME_BYTES:
            return None
        text = name.decode("utf-8", "replace").replace("\0", "\ufffd")
        secret = Secret.objects.of_organisation(self._organisation_id).filter(name=text).first()
        if secret is None:
            return None
        try:
            value = decrypt(
                bytes(secret.ciphertext), context_of(self._organisation_id, secret.name)
            )
        except DecryptionError:
            if secret.pk not in self._unreadable:
                self._unreadable.add(secret.pk)
                logger.error("Secret %s cannot be decrypted", secret.pk)  # noqa: TRY400
            raise HostCallError(f"secrets.get: {text} cannot be read; set it anew") from None
        if value not in self._revealed and len(self._revealed) >= MAX_REVEALED:
            raise HostCallError(f"secrets.get: more than {MAX_REVEALED} secrets in a run")
        self._revealed.add(value)
        return value
