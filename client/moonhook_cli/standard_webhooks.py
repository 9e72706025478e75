"""Signatures of Standard Webhooks (standardwebhooks.com)."""

import hmac
import secrets
import time
from base64 import b64decode, b64encode

_PREFIX = "whsec_"
_SECRET_BYTES = 32


def new_secret() -> str:
    return _PREFIX + b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(secret: str, message_id: str, body: bytes) -> dict[str, str]:
    """The three headers of a message that is sent now."""
    key = b64decode(secret.removeprefix(_PREFIX))
    timestamp = str(int(time.time()))
    content = b".".join([message_id.encode(), timestamp.encode(), body])
    signature = b64encode(hmac.digest(key, content, "sha256")).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }
