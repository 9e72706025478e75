"""GraphQL of hooks, senders and refused calls, with the scopes that its fields need."""

from accounts.graphql.field_scopes import for_programs, needs_scopes
from accounts.scopes import Scope


def register() -> None:
    read, bodies, change = Scope.READ_SCRIPTS, Scope.READ_PAYLOADS, Scope.WRITE_HOOKS
    for_programs("Query", fields={"hooks": read, "senders": read, "refusedCalls": read})
    for_programs(
        "Mutation",
        fields={
            "createHook": change,
            "updateHook": change,
            "pinHook": change,
            "deleteHook": change,
            "rotateCallToken": change,
            "setSender": change,
            "setSigningSecret": change,
            "deleteSigningSecret": change,
            "expectHandshake": change,
            "sendTestEvent": needs_scopes(change, Scope.RUN_SCRIPTS),
            "replayRefusedCall": Scope.OPERATE_QUEUE,
            "startListening": bodies,
        },
    )
    for_programs("Script", fields={"hooks": read})
    # The token of the handshake is a secret that is shown, and a signed URL holds the call token.
    for_programs(
        "Hook",
        read,
        is_listed=True,
        fields={
            "verifyToken": change,
            "signedUrl": change,
            "callTokenLastUsedFrom": bodies,
            "previousCallTokenLastUsedFrom": bodies,
        },
    )
    for_programs("IssuedHook", change)
    for_programs("Hmac", read)
    for_programs("SigningSecret", read, fields={"lastUsedFrom": bodies})
    for_programs("Sender", read)
    for_programs(
        "RefusedCall",
        read,
        is_listed=True,
        fields={
            "detail": bodies,
            "hints": bodies,
            "explanations": bodies,
            "clientAddress": bodies,
            "headerNames": bodies,
        },
    )
    # It comes out of what the sender signed.
    for_programs("Run", fields={"eventId": bodies})
