"""login, logout, whoami, session."""

import os
import sys
import webbrowser
from typing import Any

import click

from moonhook_cli.context import Context, pass_context
from moonhook_cli.device_login import start_login, wait_for_approval
from moonhook_cli.errors import CommandError, NotAllowedError
from moonhook_cli.output import short_time
from moonhook_cli.profiles import DEFAULT, Credentials, Profile, environment_key
from moonhook_cli.redaction import hide
from moonhook_cli.server import Server
from moonhook_cli.sessions import end_session, open_session, show_session

# Those of an author; the person who approves may give fewer.
_SCOPES = (
    "ReadScripts ReadPayloads RunScripts OperateQueue WriteDrafts Publish WriteHooks WriteSecrets"
)


@click.command()
@click.argument("url")
@click.option("--api-key", is_flag=True, help="Log in with a key and its secret.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    help="A scope to ask for; may be repeated. Those of an author if not given.",
)
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@pass_context
def login(
    context: Context, url: str, scopes: tuple[str, ...], *, api_key: bool, no_browser: bool
) -> None:
    """Log in to the server at URL.

    You approve the login in a browser. With --api-key, key and secret are read from a prompt, from
    two lines of standard input, or from MOONHOOK_KEY and MOONHOOK_SECRET; never from the command
    line, which other users of this computer can see.
    """
    server = context.connect(url)
    if api_key:
        key, secret = _read_key()
        opened = open_session(server, key, secret)
        credentials = Credentials(secret, opened["token"])
    else:
        opened = _by_device(context, server, " ".join(scopes) or _SCOPES, opens=not no_browser)
        key = opened["key"]
        credentials = Credentials(opened["secret"], opened["access_token"])
    organisation = (opened.get("organisation") or {}).get("name", "")
    profile = Profile(context.profile_name or DEFAULT, server.url, key, organisation)
    context.profiles.save(profile, credentials)
    server.close()
    if context.output.as_json:
        context.output.json(_document(profile))
    context.output.say(
        f"Logged in to {organisation} at {profile.url} as profile “{profile.name}”. "
        f"The secret is in {context.profiles.store.description}."
    )


def _by_device(context: Context, server: Server, scopes: str, *, opens: bool) -> dict[str, Any]:
    started = start_login(server, scopes)
    context.output.note(f"Open {started.address} and enter the code {started.user_code}")
    # Another scheme, from a server that is not what it seems, could open a local program.
    is_page = started.address_with_code.startswith(("https://", "http://"))
    if opens and is_page and sys.stderr.isatty():
        webbrowser.open(started.address_with_code)
    context.output.note("Waiting for your approval there… Ctrl-C ends it.")
    return wait_for_approval(server, started)


def _read_key() -> tuple[str, str]:
    if given := environment_key():
        return given.key, given.secret
    if sys.stdin.isatty():
        key = click.prompt("Key", err=True)
        secret = click.prompt("Secret", hide_input=True, err=True)
    else:
        key, secret = sys.stdin.readline().strip(), sys.stdin.readline().strip()
    if not key or not secret:
        raise CommandError(
            "Key and secret are missing.",
            "Give them on two lines of standard input, or as MOONHOOK_KEY and MOONHOOK_SECRET.",
        )
    hide(secret)
    return key, secret


def _document(profile: Profile) -> dict[str, str]:
    return {
        "profile": profile.name,
        "url": profile.url,
        "key": profile.key,
        "organisation": profile.organisation,
    }


@click.command()
@pass_context
def logout(context: Context) -> None:
    """End the session and forget the secret.

    The key itself stays valid until it expires or is revoked in the admin.
    """
    name = context.profile_name or DEFAULT
    profile = context.profiles.get(name)
    if profile is None:
        raise NotAllowedError(
            f"There is no profile “{name}”.",
            f"Known profiles: {', '.join(context.profiles.names()) or 'none'}.",
        )
    server = context.connect(profile.url)
    try:
        server.token = context.profiles.credentials(profile).token
        if server.token:
            end_session(server)
    finally:
        context.profiles.delete(profile)
        server.close()
    if context.output.as_json:
        context.output.json(_document(profile))
    context.output.say(
        f"Logged out of {profile.url}. The key {profile.key} stays valid until it is revoked."
    )


@click.command()
@pass_context
def whoami(context: Context) -> None:
    """Show the organisation, key and server in use."""
    shown = show_session(context.server)
    organisation = (shown.get("organisation") or {}).get("name", "")
    given = environment_key()
    profile = None if given else context.profiles.get(context.profile_name or DEFAULT)
    key = os.environ["MOONHOOK_KEY"] if given else (profile.key if profile else "")
    row = {
        "organisation": organisation,
        "url": context.server.url,
        "key": key,
        "profile": profile.name if profile else None,
    }
    if context.output.as_json:
        context.output.json(row)
    context.output.say(f"{organisation} at {context.server.url}, key {key}")


@click.command()
@pass_context
def session(context: Context) -> None:
    """Show the open session: when it was opened and when it expires."""
    shown = show_session(context.server)
    shown.pop("token", None)
    if context.output.as_json:
        context.output.json(shown)
        return
    organisation = (shown.get("organisation") or {}).get("name", "")
    context.output.say(f"organisation  {organisation}")
    for title, key in (("opened", "createdAt"), ("last used", "lastUsedAt"), ("ends", "expiresAt")):
        context.output.say(f"{title:12}  {short_time(shown[key])}")
