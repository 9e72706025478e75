"""Calls that ran nothing: the newest of each hook, and counters by reason and day."""

import base64
import json
import uuid
from dataclasses import dataclass
from uuid import UUID

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Organisation
from core.encryption import Cipher, DecryptionError
from hooks.models.hook import Hook
from hooks.senders import RefusalReason
from scripts_engine.models.script import Script


class RefusedCallQuerySet(models.QuerySet["RefusedCall"]):
    def of_organisation(self, organisation: Organisation | uuid.UUID) -> "RefusedCallQuerySet":
        return self.filter(organisation=organisation)


class RefusedCall(models.Model):
    """A call that was refused, with what is needed to explain why."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="refused_calls")
    hook = models.ForeignKey(
        Hook,
        null=True,
        on_delete=models.CASCADE,
        related_name="refused_calls",
        help_text="Null if no hook has the call's token.",
    )
    at = models.DateTimeField(default=timezone.now, help_text="When the call came.")
    reason = models.CharField(
        max_length=24, choices=[(reason.value, reason.value) for reason in RefusalReason]
    )
    detail = models.CharField(
        max_length=200,
        blank=True,
        default="",
        help_text="What was seen at the call, for example “412 s old”.",
    )
    client_address = models.GenericIPAddressField(null=True)
    method = models.CharField(max_length=10)
    header_names = models.JSONField(default=list)
    # The sender's own headers, the URL and the body: {"headers", "query", "body"}, encrypted.
    content_ciphertext = models.BinaryField(null=True, editable=False)

    objects = RefusedCallQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["hook", "-id"], name="refused_call_of_hook"),
            models.Index(fields=["script", "-id"], name="refused_call_of_script"),
            models.Index(fields=["organisation", "-id"], name="refused_call_of_organisation"),
        ]

    def __str__(self) -> str:
        """The beginning of the id: complete, it fills several lines of a list."""
        return f"Refused call {str(self.pk)[:8]}…"


class RefusalCount(models.Model):
    """How many calls were refused for one reason on one day (UTC)."""

    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="refusal_counts")
    # Not nullable, unlike a foreign key: unique constraints take nulls for distinct.
    subject = models.UUIDField(help_text="The HookID, or the script's id if no hook has the token.")
    reason = models.CharField(max_length=24)
    day = models.DateField(db_index=True)
    count = models.PositiveBigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["subject", "reason", "day"], name="one_refusal_count_a_day"
            )
        ]

    def __str__(self) -> str:
        return f"{self.reason} on {self.day}"


class AnsweredHandshake(models.Model):
    """A sender's question whether the hook is its own, which was answered without a run."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    hook = models.ForeignKey(
        Hook, on_delete=models.CASCADE, related_name="handshakes", db_index=False
    )
    at = models.DateTimeField(default=timezone.now, help_text="When it was answered.")
    sender = models.CharField(max_length=32)
    client_address = models.GenericIPAddressField(null=True)
    response_status = models.PositiveSmallIntegerField()

    class Meta:
        verbose_name = "handshake"
        ordering = ["-id"]
        indexes = [models.Index(fields=["hook", "-id"], name="handshake_of_hook")]

    def __str__(self) -> str:
        return f"Handshake {self.pk}"


# --- What the caller sent -------------------------------------------------------------------------


CONTENTS = Cipher(b"moonhook refused calls")


@dataclass(frozen=True, slots=True)
class RefusedContent:
    """Header values, query and URL are Latin-1 text, as received."""

    headers: tuple[tuple[str, str], ...]
    """The sender's own headers and the content type."""
    query: str
    url: str
    """What the sender signs, if it signs the URL; ``""`` otherwise."""
    body: bytes | None
    """``None`` if it was not read or is too large to keep."""
    subpath: str = ""
    """The path after the hook's address; ``""`` without one."""


def encrypted(content: RefusedContent, refused_call_id: UUID) -> bytes:
    """The ciphertext for the row with this id; it cannot be decrypted in another row."""
    body = None if content.body is None else base64.b64encode(content.body).decode()
    document = {
        "headers": content.headers,
        "query": content.query,
        "url": content.url,
        "body": body,
        "subpath": content.subpath,
    }
    return CONTENTS.encrypt(json.dumps(document).encode(), str(refused_call_id))


def content_of(refused_call: RefusedCall) -> RefusedContent | None:
    """``None`` if the content is no longer kept, or its pepper is missing."""
    if refused_call.content_ciphertext is None:
        return None
    try:
        text = CONTENTS.decrypt(bytes(refused_call.content_ciphertext), str(refused_call.pk))
    except DecryptionError:
        return None
    document = json.loads(text)
    body = document["body"]
    return RefusedContent(
        headers=tuple((name, value) for name, value in document["headers"]),
        query=document["query"],
        url=document["url"],
        body=None if body is None else base64.b64decode(body),
        subpath=document["subpath"],
    )
