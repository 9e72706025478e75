"""A new password is requested for an address; the worker decides whether to send a link."""

from accounts.email_address import canonical_email, validate_typed_email
from accounts.models import User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from accounts.tasks import offer_password_reset
from core.http.client_address import network_of
from core.http.origin import Origin


def request_password_link(email: str, origin: Origin) -> None:
    """Queues a link for the address, whether it has an account or not.

    The worker looks the user up, so that known and unknown addresses take the same time here.
    Raises ``ValidationError`` for an invalid e-mail address, and ``RateLimitedError``.
    """
    validate_typed_email(email)
    address = canonical_email(email)
    network = network_of(origin.client_address)
    hit([windows.PASSWORD_LINKS_OF_CLIENT], "password-link", network)
    _request(address, origin)


def request_password_link_for(user: User, origin: Origin) -> None:
    """Queues a link to the user's address, for an administrator, who does not see it.

    Raises ``RateLimitedError``.
    """
    _request(user.email, origin)


def _request(address: str, origin: Origin) -> None:
    hit(windows.PASSWORD_LINKS_TO_ADDRESS, "password-link-to", address)
    offer_password_reset.enqueue(address, request_id=origin.request_id)
