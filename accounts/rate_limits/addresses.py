"""Limits how often an organisation learns whether an e-mail address has an account."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ValidationError

from accounts.audit import record
from accounts.models import AuditReason, AuthEventKind, Organisation
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import Claim, Count, CountFullError, claim, is_first
from core.errors import AddressTakenError, NotFoundError, RateLimitedError
from core.http.origin import Origin

# Validation codes that reveal whether an address has an account.
REVEALING_CODES = frozenset({"unique", "unknown"})


def claim_answers(organisation: Organisation, number: int, origin: Origin) -> Claim:
    """Counts ``number`` answers in advance; the caller gives back those that revealed nothing.

    Call outside the transaction that a refusal rolls back. Raises ``RateLimitedError``, which is
    recorded once per window.
    """
    count = Count(
        windows.ADDRESS_REFUSALS_OF_ORGANISATION, ("address-refusal", str(organisation.pk))
    )
    try:
        return claim([count] * number)
    except CountFullError:
        if is_first(count.window, *count.identifiers):
            record(
                AuthEventKind.RATE_LIMITED,
                origin,
                organisation=organisation,
                reason=AuditReason.ADDRESS_LIMIT,
            )
        raise


@contextmanager
def counted_answer(organisation: Organisation, origin: Origin) -> Iterator[None]:
    """Wraps a flow that takes an address: counts one answer if its refusal reveals an account."""
    claimed = claim_answers(organisation, 1, origin)
    try:
        yield
    except BaseException as error:
        if not _reveals_account(error):
            claimed.give_back()
        raise
    claimed.give_back()


def _reveals_account(error: BaseException) -> bool:
    if isinstance(error, ValidationError):
        errors = error.error_dict.get("email", ()) if hasattr(error, "error_dict") else ()
        return any(each.code in REVEALING_CODES for each in errors)
    # A limit on invitations is met only by an address that has an account.
    return isinstance(error, (AddressTakenError, NotFoundError, RateLimitedError))
