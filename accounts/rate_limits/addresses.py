"""Answers that tell whether somebody has an e-mail address: so many an hour for an organisation."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ValidationError

from accounts.audit import record
from accounts.models import AuthEventKind, Organisation
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import Claim, Count, CountFullError, claim, is_first
from core.errors import AddressTakenError, NotFoundError, RateLimitedError
from core.http.origin import Origin

# Of errors of forms and models: somebody has the address, or nobody.
TELLING_CODES = frozenset({"unique", "unknown"})


def claim_answers(organisation: Organisation, number: int, origin: Origin) -> Claim:
    """Counts that many answers before they are given; give back those that told nothing.

    Call outside the transaction that a refusal rolls back. Raises ``RateLimitedError``, which is
    on record once a window.
    """
    count = Count(
        windows.ADDRESS_REFUSALS_OF_ORGANISATION, ("address-refusal", str(organisation.pk))
    )
    try:
        return claim([count] * number)
    except CountFullError:
        if is_first(count.window, *count.identifiers):
            record(
                AuthEventKind.RATE_LIMITED, origin, organisation=organisation, reason="addresses"
            )
        raise


@contextmanager
def counted_answer(organisation: Organisation, origin: Origin) -> Iterator[None]:
    """Around a flow that is given an address: counts if its refusal tells of the address."""
    claimed = claim_answers(organisation, 1, origin)
    try:
        yield
    except BaseException as error:
        if not _tells_of_address(error):
            claimed.give_back()
        raise
    claimed.give_back()


def _tells_of_address(error: BaseException) -> bool:
    if isinstance(error, ValidationError):
        errors = error.error_dict.get("email", ()) if hasattr(error, "error_dict") else ()
        return any(each.code in TELLING_CODES for each in errors)
    # Somebody to whom no further invitation goes is somebody, too.
    return isinstance(error, (AddressTakenError, NotFoundError, RateLimitedError))
