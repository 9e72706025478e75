"""What /session answers, field by field, and examples; only the OpenAPI document reads these."""

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from sessions_api.models import Credential

SESSION_EXAMPLE = {
    "id": "019aa0b8-6f3c-7c52-9d0e-3a1b5c7d9e0f",
    "status": "active",
    "credential": "Token",
    "longLived": True,
    "organisation": {"id": "3f0c8a52-5f0e-4c58-9a53-0b7e4c1d2a10", "name": "Acme"},
    "user": {
        "id": "8b1e6f7a-2c3d-4e5f-8a9b-0c1d2e3f4a5b",
        "email": "alice@example.com",
        "name": "Alice",
    },
    "device": {"id": "c2a9d1e4-7b6f-4a3c-9e8d-1f2a3b4c5d6e", "label": "my laptop"},
    "createdAt": "2026-11-20T12:00:00Z",
    "expiresAt": "2027-02-18T12:00:00Z",
    "lastUsedAt": "2026-11-20T12:00:00Z",
}
LOGIN_EXAMPLES = [
    OpenApiExample(
        "ApiKey",
        {
            "uid": "mhk_0a1B2c3D4e5F",
            "password": f"mhs_{'0' * 46}",
            "credential": "ApiKey",
            "email": None,
        },
        request_only=True,
    ),
    OpenApiExample(
        "Token",
        {
            "uid": "5d4c3b2a-1f0e-4d9c-8b7a-6f5e4d3c2b1a",
            "password": f"mht_{'0' * 46}",
            "credential": "Token",
            "email": "alice@example.com",
        },
        request_only=True,
    ),
]


class SessionOrganisation(serializers.Serializer[Any]):
    """The tenant."""

    id = serializers.UUIDField(help_text="Its id.")
    name = serializers.CharField(help_text="Its name.")


class SessionUser(serializers.Serializer[Any]):
    """The person whom the device belongs to."""

    id = serializers.UUIDField(help_text="The user's id.")
    email = serializers.CharField(help_text="In its canonical spelling.")
    name = serializers.CharField(allow_blank=True, help_text="Empty where none is known.")


class SessionDevice(serializers.Serializer[Any]):
    """The device that the token was made for."""

    id = serializers.UUIDField(help_text="The UUID that the device gave itself.")
    label = serializers.CharField(  # type: ignore[assignment]
        allow_blank=True, help_text="The host that it named."
    )


class SessionDocument(serializers.Serializer[Any]):
    """An open session."""

    id = serializers.UUIDField(help_text="The session's id; it opens nothing.")
    status = serializers.ChoiceField(["active"], help_text="One that has ended is not shown.")
    credential = serializers.ChoiceField(
        Credential.choices, help_text="What the session was opened with."
    )
    longLived = serializers.BooleanField(help_text="Whether a device token opened it.")  # noqa: N815
    organisation = SessionOrganisation(
        allow_null=True, help_text="Null for a user who is a member of none or of several."
    )
    user = SessionUser(allow_null=True, help_text="Null for an API key.")
    device = SessionDevice(allow_null=True, help_text="Null for an API key.")
    createdAt = serializers.DateTimeField(help_text="When it was opened.")  # noqa: N815
    expiresAt = serializers.DateTimeField(help_text="The earlier of the idle and absolute limits.")  # noqa: N815
    lastUsedAt = serializers.DateTimeField(help_text="Exact to five minutes.")  # noqa: N815


class OpenedSessionDocument(SessionDocument):
    """A session just opened."""

    token = serializers.RegexField(
        r"^mhx_[0-9A-Za-z]{46}$", help_text="Presents the session; shown only here."
    )
