"""secrets.get: a secret of the organisation, by name."""

import logging
import uuid
from typing import Any

from scripts_engine.encryption import DecryptionError, decrypt
from scripts_engine.flows.set_secret import context_of
from scripts_engine.models import Secret
from scripts_engine.sandbox.host_call import HostCallError

# No secret has a longer name.
MAX_NAME_BYTES = 100

logger = logging.getLogger(__name__)


class SecretsCapability:
    """The secrets of one run; remembers which it gave away."""

    def __init__(self, organisation_id: uuid.UUID) -> None:
        self._organisation_id = organisation_id
        self._revealed: set[bytes] = set()

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
            logger.exception("Secret %s cannot be decrypted", secret.pk)
            raise HostCallError(f"secrets.get: {text} cannot be read; set it anew") from None
        self._revealed.add(value)
        return value
