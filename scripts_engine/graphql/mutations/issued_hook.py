from scripts_engine.flows.hooks import IssuedHook as HookWithToken
from scripts_engine.graphql.types import IssuedHook


def as_issued_hook(issued: HookWithToken) -> IssuedHook:
    """The issued hook with its complete address, which it has in this answer only."""
    hook, call_token = issued
    hook.url_just_issued = hook.url_with(call_token)  # type: ignore[attr-defined]
    return IssuedHook(hook=hook, call_token=call_token)
