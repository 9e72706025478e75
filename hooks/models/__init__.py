from hooks.models.hook import Hook, Idempotency, ReplyMode
from hooks.models.idempotency_key import IdempotencyKey
from hooks.models.refused_call import AnsweredHandshake, RefusalCount, RefusedCall
from hooks.models.signing_secret import CredentialUse, SigningSecret

__all__ = [
    "AnsweredHandshake",
    "CredentialUse",
    "Hook",
    "Idempotency",
    "IdempotencyKey",
    "RefusalCount",
    "RefusedCall",
    "ReplyMode",
    "SigningSecret",
]
