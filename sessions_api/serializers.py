"""The request and response bodies of /session."""

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from sessions_api.models import Credential, Session


class StringField(serializers.CharField):
    """A JSON string, neither trimmed nor converted from a number.

    Accepts any character, NUL included: a credential with one is wrong, not malformed.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, allow_blank=True, **kwargs)
        self.validators = []

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if any("\ud800" <= character <= "\udfff" for character in data):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class OpenSessionSerializer(serializers.Serializer[Any]):
    """The body of POST /session, as docs/openapi.json describes it."""

    uid = StringField()
    password = StringField()
    credential = serializers.ChoiceField(choices=Credential.choices)
    email = StringField(required=False, allow_null=True)


def session_document(session: Session) -> dict[str, Any]:
    """The JSON representation of a session, without its token."""
    organisation, user, device = session.organisation, session.user, session.device_token
    return {
        "id": str(session.pk),
        "status": "active",
        "credential": session.credential.value,
        "longLived": session.is_long_lived,
        "organisation": organisation and {"id": str(organisation.pk), "name": organisation.name},
        "user": user and {"id": str(user.pk), "email": user.email, "name": user.name},
        "device": device and {"id": str(device.device), "label": device.label},
        "createdAt": rfc3339(session.created_at),
        "expiresAt": rfc3339(session.expires_at),
        "lastUsedAt": rfc3339(session.last_used_at),
    }


def rfc3339(moment: datetime) -> str:
    """UTC to the second, with ``Z``."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
