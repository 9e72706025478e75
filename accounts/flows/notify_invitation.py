from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string

from accounts.messages.delivering import delivering
from accounts.models import Invitation
from core.plain_text import name_for_mail


def notify_invitation(invitation_id: str) -> None:
    """Tells the user by e-mail of an invitation, unless it cannot be answered meanwhile.

    Raises ``TryAgainError`` or ``DeliveryError``.
    """
    open_ones = Invitation.objects.answerable().select_related("user", "organisation")
    invitation = open_ones.filter(pk=invitation_id, user__is_active=True).first()
    if invitation is None:
        return
    context = {
        "user_name": name_for_mail(invitation.user.name),
        "organisation_name": name_for_mail(invitation.organisation.name),
        "invitation": invitation,
        "public_url": settings.PUBLIC_URL,
    }
    with delivering(f"Mail of invitation {invitation.pk}", give_up_at=invitation.expires_at):
        send_mail(
            subject=render_to_string("messages/invitation_subject.txt", context).strip(),
            message=render_to_string("messages/invitation.txt", context),
            from_email=None,
            recipient_list=[invitation.user.delivery_email],
        )
