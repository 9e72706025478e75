from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.utils import timezone

from accounts.messages.delivering import delivering
from accounts.models import ApiKey, User
from core.plain_text import name_for_mail


def send_expiry_warning(api_key_id: str, administrator_id: str) -> None:
    """Tells one administrator by e-mail of a key that ends soon, unless it has ended meanwhile.

    Raises ``TryAgainError`` or ``DeliveryError``.
    """
    api_key = ApiKey.objects.filter(pk=api_key_id, revoked_at__isnull=True).first()
    administrator = User.objects.filter(pk=administrator_id, is_active=True).first()
    if api_key is None or administrator is None or not _ends_later(api_key):
        return
    context = {
        "api_key": api_key,
        "key_name": name_for_mail(api_key.name),
        "organisation_name": name_for_mail(api_key.organisation.name),
        "public_url": settings.PUBLIC_URL,
    }
    with delivering(
        f"Warning of key {api_key.key} for user {administrator.pk}", give_up_at=api_key.expires_at
    ):
        send_mail(
            subject=render_to_string("messages/key_expires_subject.txt", context).strip(),
            message=render_to_string("messages/key_expires.txt", context),
            from_email=None,
            recipient_list=[administrator.delivery_email],
        )


def _ends_later(api_key: ApiKey) -> bool:
    return api_key.expires_at is not None and api_key.expires_at > timezone.now()
