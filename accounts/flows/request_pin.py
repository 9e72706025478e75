from accounts.email_address import canonical_email, validate_typed_email
from accounts.pin_delivery.channels import SendVia
from accounts.tasks import deliver_pin


def request_pin(email: str, send_via: SendVia) -> None:
    """Asks for a code to be sent; says nothing of whether anybody has this address.

    Only enqueues: looking the user up, making the code and sending it are the worker's, so that
    known and unknown addresses take the same time. Raises ``ValidationError`` for what is no
    e-mail address.
    """
    validate_typed_email(email)
    deliver_pin.enqueue(canonical_email(email), send_via)
