"""What every command works with: its output, its profile and its server."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click

from moonhook_cli.errors import NotAllowedError
from moonhook_cli.output import Output
from moonhook_cli.profiles import DEFAULT, Credentials, Profiles, environment_key
from moonhook_cli.redaction import hide
from moonhook_cli.server import Server
from moonhook_cli.sessions import end_session, open_session


@dataclass
class Context:
    output: Output
    profile_name: str | None = None
    debug: bool = False
    profiles: Profiles = field(default_factory=Profiles)
    _server: Server | None = None
    _ends_session: bool = False

    def use_profile(self, name: str | None) -> None:
        """The profile that a folder names; an option of the command line wins."""
        self.profile_name = self.profile_name or name

    @property
    def server(self) -> Server:
        """The server with a session of the profile's key, or of the environment's."""
        if self._server is None:
            key = environment_key()
            self._server = (
                self._by_profile() if key is None else self._by_environment(key.key, key.secret)
            )
        return self._server

    def connect(self, url: str) -> Server:
        """A server without a session."""
        return Server(url, debug=self.debug)

    def close(self) -> None:
        if self._server is None:
            return
        if self._ends_session:
            end_session(self._server)
        self._server.close()

    def _by_environment(self, key: str, secret: str) -> Server:
        profile = self.profiles.get(self.profile_name or DEFAULT)
        url = os.environ.get("MOONHOOK_URL") or (profile and profile.url)
        if not url:
            raise NotAllowedError(
                "The server's address is not known.",
                "Set MOONHOOK_URL beside MOONHOOK_KEY and MOONHOOK_SECRET.",
            )
        server = self.connect(url)
        server.token = open_session(server, key, secret)["token"]
        self._ends_session = True
        return server

    def _by_profile(self) -> Server:
        name = self.profile_name or DEFAULT
        profile = self.profiles.get(name)
        if profile is None:
            names = self.profiles.names()
            known = ", ".join(names)
            other = self.profiles.get(names[0]) if names else None
            raise NotAllowedError(
                f"There is no profile “{name}”." if known else "You are not logged in.",
                f"Log in: moonhook login {other.url if other else 'URL'} --profile {name}"
                + (f" (known profiles: {known})" if known else ""),
            )
        credentials = self.profiles.credentials(profile)
        server = self.connect(profile.url)
        server.token = credentials.token

        def renew() -> str:
            token = str(open_session(server, profile.key, credentials.secret)["token"])
            self.profiles.keep(profile, Credentials(credentials.secret, token))
            return token

        server.renew_token = renew
        if server.token:
            hide(server.token)
        else:
            server.token = renew()
        return server


@contextmanager
def until_interrupted(context: Context) -> Iterator[None]:
    """Ctrl-C is how a person ends what goes on for ever: no error."""
    try:
        yield
    except KeyboardInterrupt:
        context.output.note("Stopped.")


pass_context = click.make_pass_decorator(Context)
first_option = click.option(
    "--first",
    metavar="N",
    type=click.IntRange(1, 200),
    default=20,
    show_default=True,
    help="How many, from the newest on.",
)
