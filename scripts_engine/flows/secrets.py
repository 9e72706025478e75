"""Sets, deletes and re-encrypts the secrets of scripts."""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.audit import Subject, record
from accounts.models import AuthEventKind, Organisation, SubjectKind
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin
from core.plain_text import is_encodable, storable
from scripts_engine.encryption import context_of, decrypt, encrypt, key_version
from scripts_engine.models import Secret

MAX_VALUE_BYTES = 16 * 1024
MAX_SECRETS = 200


def set_secret(
    organisation: Organisation, *, name: str, value: str, origin: Origin = NOWHERE
) -> Secret:
    """Creates the secret or changes its value. Raises ``ValidationError`` by field."""
    if not value or not is_encodable(value) or len(value.encode()) > MAX_VALUE_BYTES:
        raise _invalid("value", f"A secret is text of 1 to {MAX_VALUE_BYTES} bytes in UTF-8.")
    Secret(organisation=organisation, name=name).clean_fields(exclude=["ciphertext"])
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        secrets = Secret.objects.of_organisation(organisation)
        secret = secrets.filter(name=name).first() or Secret(organisation=organisation, name=name)
        if secret._state.adding and secrets.count() >= MAX_SECRETS:
            raise _invalid("name", f"An organisation has at most {MAX_SECRETS} secrets.")
        secret.ciphertext = encrypt(value.encode(), context_of(organisation.pk, name))
        secret.full_clean()
        secret.save()
    _record(AuthEventKind.SECRET_SET, secret, origin)
    return secret


def _invalid(field: str, message: str) -> ValidationError:
    return ValidationError({field: ValidationError(message, code="invalid")})


def delete_secret(organisation: Organisation, name: str, *, origin: Origin = NOWHERE) -> None:
    """Deletes the secret. Raises ``NotFoundError`` if it does not exist."""
    secret = Secret.objects.of_organisation(organisation).filter(name=storable(name)).first()
    deleted = 0 if secret is None else Secret.objects.filter(pk=secret.pk).delete()[0]
    if secret is None or not deleted:
        raise NotFoundError("There is no secret with this name.")
    _record(AuthEventKind.SECRET_DELETED, secret, origin)


def _record(kind: AuthEventKind, secret: Secret, origin: Origin) -> None:
    about = Subject(SubjectKind.SECRET, secret.pk, secret.name)
    record(kind, origin, about=about, organisation=secret.organisation, credential=secret.name)


def reencrypt_secrets() -> int:
    """Encrypts every secret with the newest pepper. Returns the number of secrets changed.

    A secret that is set at the same time keeps its new value, and is re-encrypted as well if it was
    set by a node that does not use the newest pepper yet. Raises ``DecryptionError`` if a pepper is
    missing.
    """
    return sum(_reencrypt(secret) for secret in Secret.objects.order_by().iterator())


def _reencrypt(secret: Secret) -> bool:
    """Whether the secret was changed: not if it uses the newest pepper, or was deleted."""
    newest = next(iter(settings.PEPPERS))
    context = context_of(secret.organisation_id, secret.name)
    found: bytes | memoryview[int] | None = secret.ciphertext
    while found is not None and key_version(old := bytes(found)) != newest:
        rows = Secret.objects.filter(pk=secret.pk)
        renewed = encrypt(decrypt(old, context), context)
        if rows.filter(ciphertext=old).update(ciphertext=renewed):
            return True
        # The secret was set or re-encrypted since it was read.
        found = rows.values_list("ciphertext", flat=True).first()
    return False
