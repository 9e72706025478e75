from django.conf import settings

from scripts_engine.encryption import decrypt, encrypt, key_version
from scripts_engine.flows.set_secret import context_of
from scripts_engine.models import Secret


def encrypt_secrets_anew() -> int:
    """Moves every script secret under the newest pepper; how many were under another.

    A secret that is set meanwhile keeps its new value, and is moved too where a node set it that
    does not use the newest pepper yet. Raises ``DecryptionError`` when a pepper is gone.
    """
    return sum(_move(secret) for secret in Secret.objects.order_by().iterator())


def _move(secret: Secret) -> bool:
    """Whether this moved it: not if it is gone or under the newest pepper already."""
    newest = next(iter(settings.PEPPERS))
    context = context_of(secret.organisation_id, secret.name)
    found: bytes | memoryview[int] | None = secret.ciphertext
    while found is not None and key_version(old := bytes(found)) != newest:
        rows = Secret.objects.filter(pk=secret.pk)
        renewed = encrypt(decrypt(old, context), context)
        if rows.filter(ciphertext=old).update(ciphertext=renewed):
            return True
        # Somebody else has set or moved it since it was read.
        found = rows.values_list("ciphertext", flat=True).first()
    return False
