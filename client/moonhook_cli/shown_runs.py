"""Shows a run: reply, log, and an error as a compiler shows it."""

import re
from collections.abc import Mapping
from typing import Any

from moonhook_cli.output import Output

OUTLINE = "id startedAt status trigger durationMs responseStatus script { name } hook { name }"
FULL = f"""{OUTLINE} requestMethod requestQuery requestBody responseBody responseBodyBase64
  requestBytes responseBytes logs {{ at level text }} error {{ message line traceback }}"""
REQUEST_HEADERS = "requestHeaders { name value }"
FAILURES = ("Failed", "TimedOut", "OutOfMemory", "Lost")
ENDED = (*FAILURES, "Succeeded", "Cancelled")
COLUMNS = (
    ("startedAt", "STARTED"),
    ("status", "STATUS"),
    ("script", "SCRIPT"),
    ("hook", "HOOK"),
    ("trigger", "TRIGGER"),
    ("durationMs", "MS"),
    ("id", "ID"),
)

_PLACE = re.compile(r"(?P<name>.+?):(?P<line>\d+): (?P<message>.*)", re.DOTALL)
_QUOTED = re.compile(r"'([^']+)'")


# These belong to one connection; a repeated call has others.
_OF_CONNECTION = {
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


def headers_of(run: Mapping[str, Any]) -> tuple[list[tuple[str, str]], list[str]]:
    """The headers with which a call is repeated, and the names of those that the server hides."""
    headers = [
        (header["name"], header["value"])
        for header in run["requestHeaders"]
        if header["name"].lower() not in _OF_CONNECTION
    ]
    shown = [(name, value) for name, value in headers if value is not None]
    return shown, [name for name, value in headers if value is None]


def row_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """The run with the names of script and hook in place of them."""
    names = {key: (run.get(key) or {}).get("name") for key in ("script", "hook")}
    return {**run, **names, "durationMs": round(run["durationMs"], 1)}


def show_run(output: Output, run: Mapping[str, Any], files: Mapping[str, tuple[str, str]]) -> None:
    """``files`` has path and text of each script and library that is known here, by name."""
    if output.as_json:
        output.json(row_of(run))
        return
    for line in run["logs"]:
        style = {"warn": "yellow", "error": "red"}.get(line["level"].lower(), "dim")
        output.say(f"{line['level']:5} {line['text']}", style)
    succeeded = run["status"] == "Succeeded"
    output.say(
        f"{run['status']} {run['responseStatus']} in {run['durationMs']:.1f} ms, run {run['id']}",
        "green" if succeeded else "bold red",
    )
    if run["responseBody"] is None and run["responseBytes"]:
        output.say(f"({run['responseBytes']} bytes that are not text; --json has them in Base64)")
    elif succeeded and run["responseBody"]:
        output.say(run["responseBody"])
    if run["error"]:
        for text in error_lines(run["error"], run["script"]["name"], files):
            output.say(text, "red" if text.lstrip().startswith("|") else "")


def error_lines(
    error: Mapping[str, Any], script: str, files: Mapping[str, tuple[str, str]]
) -> list[str]:
    """`FILE:LINE: message`, the line, and carets under what the message is about."""
    name, number, message = script, error.get("line"), error["message"]
    if found := _PLACE.fullmatch(message):
        name, number, message = found["name"], int(found["line"]), found["message"]
    path, text = files.get(name, (name, ""))
    if number is None:
        return [f"{path}: {message}"]
    lines = text.splitlines()
    shown = [f"{path}:{number}: {message}"]
    if 0 < number <= len(lines):
        line = lines[number - 1].expandtabs(4)
        start, length = _marked(line, message)
        margin = " " * len(str(number))
        shown += [f" {number} | {line}", f" {margin} | {' ' * start}{'^' * length}"]
    return shown


def _marked(line: str, message: str) -> tuple[int, int]:
    """Column and length of the first name in the message that the line has; else the whole line."""
    for name in _QUOTED.findall(message):
        if (column := line.find(name)) >= 0:
            return column, len(name)
    indent = len(line) - len(line.lstrip())
    return indent, max(1, len(line.strip()))
