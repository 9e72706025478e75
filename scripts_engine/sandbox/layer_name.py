"""The layers of the lockdown."""

from enum import StrEnum


class LayerName(StrEnum):
    RLIMITS = "rlimits"
    NO_NEW_PRIVS = "no_new_privs"
    PDEATHSIG = "pdeathsig"
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"
