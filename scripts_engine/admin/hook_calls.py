"""How a hook is called: shown with its token once, and afterwards without."""

from dataclasses import dataclass

from core.admin.issuing import curl, json_body
from scripts_engine.models import Hook

TOKEN_PLACE = "<call-token>"  # noqa: S105  (what stands in its place)
_PAYLOAD = {"hello": "world"}


@dataclass(frozen=True, slots=True)
class Calls:
    """Both addresses and commands that try them."""

    url: str
    post: str
    get: str
    secure_url: str
    secure_post: str


def calls_of(hook: Hook, call_token: str = TOKEN_PLACE) -> Calls:
    url = hook.url_with(call_token)
    return Calls(
        url=url,
        post=curl(url, *json_body(_PAYLOAD)),
        get=curl(f"{url}?hello=world"),
        secure_url=hook.secure_url,
        secure_post=curl(hook.secure_url, ("-u", f"{hook.pk}:{call_token}"), *json_body(_PAYLOAD)),
    )
