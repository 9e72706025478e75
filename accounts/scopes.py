"""The one table of what programs and people may do: scopes, and the roles that hold them.

GraphQL, the admin and the commands ask it. What names no scope is refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from django.db import models

from core.errors import ForbiddenError

ROLE_HELP = (
    "Members can log in with a PIN but cannot use this admin. Viewers see scripts, hooks and runs "
    "in outline; Operators also payloads and logs, run scripts and steer the queue; Authors also "
    "write scripts, hooks and secrets; Administrators do everything. All but Members need “Staff”."
)


class Scope(models.TextChoices):
    """What a key or a role opens. The values are the interface's names."""

    READ_SCRIPTS = "ReadScripts", "Read scripts"
    READ_PAYLOADS = "ReadPayloads", "Read payloads"
    RUN_SCRIPTS = "RunScripts", "Run scripts"
    OPERATE_QUEUE = "OperateQueue", "Operate the queue"
    WRITE_DRAFTS = "WriteDrafts", "Write drafts"
    PUBLISH = "Publish", "Publish"
    WRITE_HOOKS = "WriteHooks", "Write hooks"
    WRITE_SECRETS = "WriteSecrets", "Write secrets"
    READ_PEOPLE = "ReadPeople", "Read people"
    WRITE_PEOPLE = "WritePeople", "Write people"
    READ_KEYS = "ReadKeys", "Read keys"
    WRITE_KEYS = "WriteKeys", "Write keys"
    READ_AUDIT = "ReadAudit", "Read the audit log"
    ALL = "All", "All"

    @property
    def permission(self) -> str:
        """The name for ``user.has_perm(name, organisation)``."""
        return f"{PERMISSIONS}.{self.value}"


# Django's names of permissions are ``label.codename``.
PERMISSIONS = "accounts"

Scopes = frozenset[Scope]

NONE: Scopes = frozenset()
EVERYTHING: Scopes = frozenset({Scope.ALL})
# In words, for pickers and for GraphQL's documentation.
MEANINGS: Mapping[Scope, str] = {
    Scope.READ_SCRIPTS: (
        "See scripts, versions, releases, hooks, senders, schedules and plans; runs and refused "
        "calls in outline: times, status, sizes."
    ),
    Scope.READ_PAYLOADS: (
        "See bodies, headers, replies, logs, host calls and stored values; refused calls in full."
    ),
    Scope.RUN_SCRIPTS: (
        "Run saved and live versions. Together with WriteDrafts it can read every secret."
    ),
    Scope.OPERATE_QUEUE: (
        "Queue, cancel, replay and dismiss runs, pause and resume queues, replay refused calls. "
        "Together with Publish it can read payloads, by replaying them into another source."
    ),
    Scope.WRITE_DRAFTS: "Write drafts of scripts and libraries.",
    Scope.PUBLISH: (
        "Publish, restore, undo, enable, disable and delete scripts. Together with WriteDrafts and "
        "a hook to call, it can read every secret."
    ),
    Scope.WRITE_HOOKS: (
        "Change hooks, senders, limits, pins and schedules; make call tokens and signing secrets. "
        "A new hook runs its script and gets the reply."
    ),
    Scope.WRITE_SECRETS: "Name, set and delete secrets and stored values. Never reads a secret.",
    Scope.READ_PEOPLE: "See users, memberships, devices, sessions and invitations.",
    Scope.WRITE_PEOPLE: (
        "Create, change and invite users, end sessions and revoke devices of those with no more "
        "scopes."
    ),
    Scope.READ_KEYS: "See API keys.",
    Scope.WRITE_KEYS: "Create, change and rotate API keys within its own limits; revoke any key.",
    Scope.READ_AUDIT: "Read the audit log.",
    Scope.ALL: "All of these, and what comes later.",
}


class Role(models.TextChoices):
    """A member's role in an organisation."""

    MEMBER = "member", "Member"
    VIEWER = "viewer", "Viewer"
    OPERATOR = "operator", "Operator"
    AUTHOR = "author", "Author"
    ADMINISTRATOR = "administrator", "Administrator"

    @property
    def scopes(self) -> Scopes:
        return ROLE_SCOPES[self]


_VIEWER = frozenset({Scope.READ_SCRIPTS})
_OPERATOR = _VIEWER | {Scope.READ_PAYLOADS, Scope.RUN_SCRIPTS, Scope.OPERATE_QUEUE}
_AUTHOR = _OPERATOR | {
    Scope.WRITE_DRAFTS,
    Scope.PUBLISH,
    Scope.WRITE_HOOKS,
    Scope.WRITE_SECRETS,
}
ROLE_SCOPES: Mapping[Role, Scopes] = {
    Role.MEMBER: NONE,
    Role.VIEWER: _VIEWER,
    Role.OPERATOR: _OPERATOR,
    Role.AUTHOR: _AUTHOR,
    Role.ADMINISTRATOR: EVERYTHING,
}


@dataclass(frozen=True, slots=True)
class Preset:
    """A set of scopes for keys of one use, with what it opens and what a leak means, in words."""

    name: str
    title: str
    scopes: Scopes
    can: str
    leak: str


PRESETS = (
    Preset(
        "read-only",
        "Read only",
        frozenset({Scope.READ_SCRIPTS}),
        "Reads scripts, hooks, schedules, and runs in outline. Changes nothing.",
        "A stranger can read the sources of all scripts, and the times and results of runs. No "
        "body, header, log, token or secret.",
    ),
    Preset(
        "deploy",
        "Deploy",
        frozenset(
            {
                Scope.READ_SCRIPTS,
                Scope.WRITE_DRAFTS,
                Scope.PUBLISH,
                Scope.WRITE_HOOKS,
                Scope.WRITE_SECRETS,
            }
        ),
        "Reads and publishes scripts, changes hooks, schedules and secrets. Reads no past "
        "payloads.",
        "A stranger can replace scripts, which then read all secrets: treat every secret of the "
        "organisation as leaked, and restore the versions from before.",
    ),
    Preset(
        "operate",
        "Operate",
        frozenset({Scope.READ_SCRIPTS, Scope.READ_PAYLOADS, Scope.OPERATE_QUEUE}),
        "Reads payloads, replies and logs, and queues, cancels and replays runs.",
        "A stranger can read what callers sent and what scripts answered and logged, with any "
        "personal data in it, and can repeat, cancel or hold back runs. Changes no script.",
    ),
)


def preset_named(name: str) -> Preset | None:
    return next((preset for preset in PRESETS if preset.name == name), None)


def preset_of(scopes: Scopes) -> Preset | None:
    """The preset with exactly these scopes."""
    return next((preset for preset in PRESETS if preset.scopes == scopes), None)


def covers(held: Scopes, wanted: Iterable[Scope]) -> bool:
    """Whether who holds the former has all of the latter; ``Scope.ALL`` covers everything."""
    return Scope.ALL in held or held.issuperset(wanted)


def missing(held: Scopes, wanted: Iterable[Scope]) -> list[Scope]:
    """The wanted scopes that are not held, in the order of the table."""
    return [] if Scope.ALL in held else in_order(set(wanted) - held)


class MissingScopeError(ForbiddenError):
    """What was asked for needs scopes that are not held. Nothing was changed."""

    def __init__(self, lacking: Iterable[Scope]) -> None:
        self.scopes = in_order(lacking)
        names = names_of(self.scopes)
        super().__init__(f"This needs the scope {names}.")
        self.extensions = {"scope": names}


def require(held: Scopes, wanted: Iterable[Scope]) -> None:
    """Raises ``MissingScopeError`` unless all that is wanted is held."""
    if lacking := missing(held, wanted):
        raise MissingScopeError(lacking)


def shared(held: Scopes, others: Scopes) -> Scopes:
    """What both hold; ``Scope.ALL`` is everything."""
    if Scope.ALL in held:
        return others
    return held if Scope.ALL in others else held & others


def in_order(scopes: Iterable[Scope]) -> list[Scope]:
    """Each scope once, in the order of the table; only ``All`` where it is among them."""
    given = set(scopes)
    return [Scope.ALL] if Scope.ALL in given else [scope for scope in Scope if scope in given]


def names_of(scopes: Iterable[Scope]) -> str:
    """The names in the order of the table, separated by blanks, as in RFC 6749, 3.3."""
    return " ".join(scope.value for scope in in_order(scopes))


def scopes_of_role(role: str) -> Scopes:
    """The scopes of the role that a row names; an unknown role holds none."""
    try:
        return ROLE_SCOPES[Role(role)]
    except ValueError:
        return NONE


def scopes_named(names: Iterable[object]) -> Scopes:
    """The scopes of that name; unknown names give nothing."""
    return _named(tuple(name for name in names if isinstance(name, str)))


@lru_cache(maxsize=1024)
def _named(names: tuple[str, ...]) -> Scopes:
    return frozenset(Scope(name) for name in names if name in Scope.values)


def roles_with(*scopes: Scope) -> list[Role]:
    """The roles that have all of the scopes, the least first."""
    return [role for role in Role if covers(role.scopes, scopes)]
