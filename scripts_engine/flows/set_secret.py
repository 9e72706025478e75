import uuid

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.audit import record
from accounts.models import AuthEventKind, Organisation
from core.http.origin import NOWHERE, Origin
from core.plain_text import is_encodable
from scripts_engine.encryption import encrypt
from scripts_engine.models import Secret

MAX_VALUE_BYTES = 16 * 1024
MAX_SECRETS = 200


def set_secret(
    organisation: Organisation, *, name: str, value: str, origin: Origin = NOWHERE
) -> Secret:
    """Makes the secret, or gives it the new value. Raises ``ValidationError`` by field."""
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
    record(AuthEventKind.SECRET_SET, origin, organisation=organisation, credential=name)
    return secret


def context_of(organisation_id: uuid.UUID, name: str) -> str:
    """Where a secret belongs, for its encryption."""
    return f"{organisation_id}:{name}"


def _invalid(field: str, message: str) -> ValidationError:
    return ValidationError({field: ValidationError(message, code="invalid")})
