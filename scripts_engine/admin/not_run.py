"""Why a script that a person wanted to run did not."""

from scripts_engine.errors import OrganisationInactiveError
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxUnavailable

NOT_RUN = (OrganisationInactiveError, SandboxBusy, SandboxUnavailable)


def why_not(error: Exception) -> str:
    if isinstance(error, OrganisationInactiveError):
        return "The organisation is switched off: nothing of it runs. Superusers switch it on."
    return "No sandbox came free. Nothing ran; try again."
