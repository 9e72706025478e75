"""Requests to a Moonhook server, and what its refusals mean for a person."""

import ipaddress
import json
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx

from moonhook_cli import __version__
from moonhook_cli.errors import CommandError, NotAllowedError, UnreachableError
from moonhook_cli.redaction import redacted

# A run takes at most 25 s, and may wait for a sandbox before.
_TIMEOUT = httpx.Timeout(60, connect=10)
_TRIES = 4
_LONGEST_WAIT_SECONDS = 60

_AWAY = {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
_KINDS: dict[str, type[CommandError]] = {
    "UNAUTHENTICATED": NotAllowedError,
    "FORBIDDEN": NotAllowedError,
    "UNAVAILABLE": UnreachableError,
}
_CONFLICT_ADVICE = "Run `moonhook pull` to get what is live now, then try again."


def checked_url(
    url: str,
    *,
    what: str = "the address of a server",
    sent: str = "secret",
    example: str = "https://moonhook.example.com",
) -> str:
    """The address without a trailing slash. Refuses clear HTTP to other computers.

    ``what`` it must be, and what is ``sent`` there, are words of the errors.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise CommandError(f"“{url}” is not {what}.", f"Give one such as {example}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise CommandError(
            "The address has a user name, a query or a fragment.",
            f"Give the address alone, such as {example}",
        )
    if parts.scheme == "http" and not _is_local(parts.hostname):
        raise CommandError(
            f"Over http:// the {sent} could be read on the way.",
            f"Use https://{parts.netloc}{parts.path}, or an address of this computer.",
        )
    return url.rstrip("/")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class Server:
    """A server; ``token`` is the session that its requests use."""

    def __init__(self, url: str, *, token: str | None = None, debug: bool = False) -> None:
        self.url = checked_url(url)
        self.token = token
        self.renew_token: Callable[[], str] | None = None
        """Opens a new session when the present one has ended."""
        self.time: datetime | None = None
        """The server's clock at its last answer."""
        self._debug = debug
        self._client = httpx.Client(
            timeout=_TIMEOUT,
            verify=ssl.create_default_context(),
            headers={"User-Agent": f"moonhook-cli/{__version__}"},
        )

    def close(self) -> None:
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        json_body: object = None,
        form: Mapping[str, str] | None = None,
        content: bytes | None = None,
        authenticated: bool = True,
        accept: str = "application/json",
    ) -> httpx.Response:
        """The response, whatever its status. Waits and tries again where the server asks for it."""
        headers = {"Accept": accept}
        if authenticated and self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        for left in range(_TRIES - 1, -1, -1):
            response = self._send(
                method, path, headers=headers, json=json_body, data=form, content=content
            )
            wait = _retry_after(response)
            if response.status_code != HTTPStatus.SERVICE_UNAVAILABLE or wait is None:
                return response
            if not left or wait > _LONGEST_WAIT_SECONDS:
                return response
            self._tell_waiting(wait)
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        url = f"{self.url}{path}"
        try:
            response = self._client.request(method, url, **options)
        except httpx.ConnectError as error:
            raise self._no_connection(error) from None
        except httpx.TimeoutException:
            raise UnreachableError(
                f"{self.url} did not answer in time.",
                "Try again; look at what happened before you repeat a change.",
            ) from None
        except httpx.HTTPError as error:
            raise UnreachableError(
                f"The connection to {self.url} broke: {error}.",
                "Try again; look at what happened before you repeat a change.",
            ) from None
        self.time = _time_of(response)
        self._log(f"{method} {path} {response.status_code}")
        if options.get("json") is not None:
            self._log(f"  sent {_without_values(options['json'])}")
        return response

    def _no_connection(self, error: httpx.ConnectError) -> UnreachableError:
        text = str(error)
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return UnreachableError(
                f"The certificate of {self.url} is not trusted: {_reason_of(text)}.",
                "If it is signed by your own authority or by itself, set SSL_CERT_FILE to a PEM "
                "file with that certificate, after comparing its fingerprint with the operator.",
            )
        return UnreachableError(
            f"{self.url} cannot be reached: {text}.",
            "Check the address, the network and whether the server is running.",
        )

    def graphql(self, document: str, /, **variables: object) -> dict[str, Any]:
        """The data of the document. Raises ``CommandError`` by the error's code."""
        body = {"query": document, "variables": variables}
        accept = "application/graphql-response+json, application/json;q=0.9"
        response = self.request("POST", "/admin/graphql", json_body=body, accept=accept)
        if response.status_code == HTTPStatus.UNAUTHORIZED and self.renew_token:
            self.token = self.renew_token()
            response = self.request("POST", "/admin/graphql", json_body=body, accept=accept)
        answer = document_of(response)
        if errors := answer.get("errors"):
            raise _graphql_error(errors)
        if "data" not in answer:
            raise problem_of(response)
        data: dict[str, Any] = answer["data"]
        return data

    def _tell_waiting(self, seconds: float) -> None:
        if sys.stderr.isatty() and not self._debug:
            sys.stderr.write(f"The server is busy; trying again in {seconds:g} s…\n")
        self._log(f"the server is busy; trying again in {seconds:g} s")

    def _log(self, line: str) -> None:
        if self._debug:
            sys.stderr.write(f"debug: {redacted(line)}\n")


def document_of(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of a response; empty for any other body."""
    try:
        document = response.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def problem_of(response: httpx.Response) -> CommandError:
    """The error that a refused request means."""
    document = document_of(response)
    code = str(document.get("code", response.status_code))
    detail = str(document.get("detail") or f"The server answered {response.status_code}.")
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return NotAllowedError(detail, "Log in again: moonhook login URL", code)
    if response.status_code == HTTPStatus.FORBIDDEN:
        scope = document.get("scope")
        return NotAllowedError(detail, _scope_advice(scope), code)
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return CommandError(detail, f"Try again in {_retry_after(response) or 60:g} s.", code)
    if response.status_code in _AWAY:
        wait = _retry_after(response) or 10
        return UnreachableError(
            detail, f"The server is busy or restarting. Try again in {wait:g} s.", code
        )
    if not document:
        advice = "Check that the address is a Moonhook server's."
        return CommandError(detail, advice, code)
    request = document.get("requestId")
    return CommandError(
        detail,
        f"Tell the operator the request id {request}." if request else "Check what was sent.",
        code,
    )


def _graphql_error(errors: list[dict[str, Any]]) -> CommandError:
    extensions = errors[0].get("extensions") or {}
    code = str(extensions.get("code", "FAILED"))
    message = str(errors[0].get("message", "The server refused the request."))
    match code:
        case "UNAUTHENTICATED":
            advice = "Log in again: moonhook login URL"
        case "FORBIDDEN":
            scopes = {
                scope
                for error in errors
                for scope in str((error.get("extensions") or {}).get("scope") or "").split()
            }
            advice = _scope_advice(" ".join(sorted(scopes)))
        case "CONFLICT":
            if by := extensions.get("by"):
                message = f"{message} ({by}, {extensions.get('at')})"
            advice = _CONFLICT_ADVICE
        case "NOT_FOUND":
            advice = "Check the name or id, and the profile in use."
        case "RATE_LIMITED" | "UNAVAILABLE":
            advice = f"Try again in {extensions.get('retryAfter', 60)} s."
        case "GRAPHQL_VALIDATION_FAILED":
            advice = "The server is older or newer than this client: update one of them."
        case "INTERNAL":
            advice = f"Tell the operator the request id {extensions.get('requestId')}."
        case _:
            field = extensions.get("field")
            advice = (
                f"Correct `{field}`, then try again." if field else "Correct it, then try again."
            )
    return _KINDS.get(code, CommandError)(message, advice, code)


def _scope_advice(scope: object) -> str:
    if not scope:
        return "Log in with a key that may do this: moonhook login URL"
    return f"Log in with a key that has the scopes: {scope}, or ask for them: moonhook login --help"


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds, or ``None`` where the server does not say."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None


def _time_of(response: httpx.Response) -> datetime | None:
    try:
        return parsedate_to_datetime(response.headers.get("Date", ""))
    except ValueError:
        return None


def _reason_of(text: str) -> str:
    """What OpenSSL says, without its codes."""
    return text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "refused"


def _without_values(body: object) -> str:
    """The names of what was sent: values may be secrets or payloads."""
    if not isinstance(body, dict):
        return "a body"
    if "query" in body:
        names = ", ".join(sorted(body.get("variables") or {}))
        return f"{' '.join(str(body['query']).split())[:200]} with {names or 'no variables'}"
    return json.dumps(sorted(body))
