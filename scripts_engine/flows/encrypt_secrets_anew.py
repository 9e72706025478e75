from django.conf import settings

from scripts_engine.encryption import decrypt, encrypt, key_version
from scripts_engine.flows.set_secret import context_of
from scripts_engine.models import Secret


def encrypt_secrets_anew() -> int:
    """Moves every script secret under the newest pepper; how many were under another.

    Raises ``DecryptionError`` when a pepper is gone. What is set meanwhile stays as it was set.
    """
    newest = next(iter(settings.PEPPERS))
    moved = 0
    for secret in Secret.objects.select_related("organisation").iterator():
        old = bytes(secret.ciphertext)
        if key_version(old) == newest:
            continue
        context = context_of(secret.organisation_id, secret.name)
        renewed = encrypt(decrypt(old, context), context)
        moved += Secret.objects.filter(pk=secret.pk, ciphertext=old).update(ciphertext=renewed)
    return moved
