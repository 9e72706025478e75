"""The secrets of scripts: set, deleted, and encrypted for one organisation and name."""

import uuid

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import TextChoices

from accounts.audit import Subject, record
from accounts.models import Organisation
from accounts.revisions import revise
from core.encryption import Cipher, Ciphertext, register_ciphertext
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin
from core.plain_text import is_encodable, storable
from scripts_engine.audit_kinds import ScriptEvent, ScriptSubject
from scripts_engine.models import Secret

_CIPHER = Cipher(b"moonhook secrets")
encrypt = _CIPHER.encrypt
decrypt = _CIPHER.decrypt
MAX_SECRET_BYTES = 16 * 1024
MAX_SECRETS = 200


def context_of(organisation_id: uuid.UUID, name: str) -> str:
    """The associated data of a secret."""
    return f"{organisation_id}:{name}"


def register() -> None:
    register_ciphertext(
        Ciphertext(
            "secrets",
            Secret,
            "ciphertext",
            _CIPHER,
            lambda secret: context_of(secret.organisation_id, secret.name),
        )
    )


def set_secret(
    organisation: Organisation,
    *,
    name: str,
    value: str,
    origin: Origin = NOWHERE,
    expected_revision: int | None = None,
) -> Secret:
    """Creates the secret or changes its value.

    Raises ``ValidationError`` by field; with an expected revision, ``ConflictError`` if the secret
    has another one, or ``NotFoundError`` if it does not exist.
    """
    if not value or not is_encodable(value) or len(value.encode()) > MAX_SECRET_BYTES:
        raise _invalid("value", f"A secret is text of 1 to {MAX_SECRET_BYTES} bytes in UTF-8.")
    Secret(organisation=organisation, name=name).clean_fields(exclude=["ciphertext"])
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        secrets = Secret.objects.of_organisation(organisation)
        secret = secrets.filter(name=name).first() or Secret(organisation=organisation, name=name)
        if secret._state.adding:
            if expected_revision is not None:
                raise NotFoundError("There is no secret with this name.")
            if secrets.count() >= MAX_SECRETS:
                raise _invalid("name", f"An organisation has at most {MAX_SECRETS} secrets.")
            secret.revision = 0
        else:
            secret.check_revision(expected_revision)
        secret.ciphertext = encrypt(value.encode(), context_of(organisation.pk, name))
        secret.full_clean()
        revise(secret, organisation.pk, origin)
        secret.save()
    _record(ScriptEvent.SECRET_SET, secret, origin)
    return secret


def _invalid(field: str, message: str) -> ValidationError:
    return ValidationError({field: ValidationError(message, code="invalid")})


def delete_secret(organisation: Organisation, name: str, *, origin: Origin = NOWHERE) -> None:
    """Deletes the secret. Raises ``NotFoundError`` if it does not exist."""
    secret = Secret.objects.of_organisation(organisation).filter(name=storable(name)).first()
    deleted = 0 if secret is None else Secret.objects.filter(pk=secret.pk).delete()[0]
    if secret is None or not deleted:
        raise NotFoundError("There is no secret with this name.")
    _record(ScriptEvent.SECRET_DELETED, secret, origin)


def _record(kind: TextChoices, secret: Secret, origin: Origin) -> None:
    about = Subject(ScriptSubject.SECRET, secret.pk, secret.name)
    record(kind, origin, about=about, organisation=secret.organisation, credential=secret.name)
