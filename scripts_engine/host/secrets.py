"""secrets.get: reads a secret of the organisation by name."""

import logging
import uuid
from typing import Any

from core.encryption import DecryptionError
from scripts_engine.models import Secret
from scripts_engine.sandbox import HostCallError
from scripts_engine.secrets import context_of, decrypt

# Everything that is recorded of the run is searched for each of them.
MAX_REVEALED = 50
# The maximum length of a secret's name.
MAX_NAME_BYTES = 100

logger = logging.getLogger(__name__)


class SecretsCapability:
    """Secrets for one run; keeps those that the script has read."""

    def __init__(self, organisation_id: uuid.UUID) -> None:
        self._organisation_id = organisation_id
        self._revealed: set[bytes] = set()
        # Ids that are logged already: a script may ask for one a thousand times.
        self._unreadable: set[uuid.UUID] = set()

    @property
    def revealed(self) -> frozenset[bytes]:
        return frozenset(self._revealed)

    def get(self, name: Any, *, deadline: float) -> bytes | None:
        """The value, or ``None`` if no secret has this name."""
        if not isinstance(name, bytes):
            raise HostCallError("the name must be a string")
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
            raise HostCallError(
                f"{text} cannot be read; set it again",
                hint="MOONHOOK_PEPPERS may lack the pepper that encrypted it",
            ) from None
        if value not in self._revealed and len(self._revealed) >= MAX_REVEALED:
            raise HostCallError(f"more than {MAX_REVEALED} secrets in a run")
        self._revealed.add(value)
        return value
