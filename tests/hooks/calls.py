"""The two addresses of a hook, and the headers of every response."""

from hooks.flows.hooks import IssuedHook

PROTECTION = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def path_of(issued: IssuedHook, **changes: object) -> str:
    parts = {
        "organisation": issued.hook.script.organisation_id,
        "script": issued.hook.script_id,
        "token": issued.call_token,
    } | changes
    return f"/hook/{parts['organisation']}/{parts['script']}/{parts['token']}"


def secure_path_of(issued: IssuedHook) -> str:
    script = issued.hook.script
    return f"/hook/secure/{script.organisation_id}/{script.pk}"
