"""The forms of a user's page: a new user, and a password that an administrator sets."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib.admin import site
from django.contrib.admin.widgets import AutocompleteSelect
from django.db import transaction
from django.db.models import QuerySet
from unfold.forms import AdminPasswordChangeForm
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.models import Membership, Organisation, Role, User

ROLE_HELP = (
    "Members log in and nothing more. Administrators who are staff too manage the organisation "
    "in this admin."
)
PROFILE_HELP = {
    "email": (
        "What they log in with, like ann@example.com; PIN codes go there. A change makes codes "
        "that are on their way worthless."
    ),
    "name": "What to call them in messages and lists, like “Ann Lee”. May stay empty.",
    "phone": (
        "With country code, like +491701234567. PIN codes by SMS go there: whoever holds the "
        "number can log in. Empty: codes go by e-mail only."
    ),
}


class NewUserForm(forms.ModelForm[User]):
    """Profile and first membership. ``organisations`` is what the person may choose from."""

    organisations: QuerySet[Organisation]
    is_organisation_required = True

    organisation = forms.ModelChoiceField(
        Organisation.objects.none(),
        widget=AutocompleteSelect(Membership._meta.get_field("organisation"), site),
        help_text=(
            "Their home: it sees and changes their profile. Other organisations can invite them as "
            "a member later, and see the e-mail only."
        ),
    )
    role = forms.ChoiceField(
        choices=Role.choices,
        initial=Role.MEMBER,
        widget=UnfoldAdminSelectWidget,
        help_text=ROLE_HELP,
    )

    class Meta:
        model = User
        fields = ("email", "name", "phone")
        error_messages = {
            "email": {
                "unique": (
                    "There is a user with this e-mail already. "
                    "Invite them on the page of the organisation, under Members."
                )
            }
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        organisation = self.fields["organisation"]
        organisation.queryset = self.organisations  # type: ignore[attr-defined]
        organisation.required = self.is_organisation_required


class PasswordForm(AdminPasswordChangeForm):
    """Hashes before its transaction begins: nobody waits for the database because of a hash.

    ``may_save`` holds the user's row, and raises if the password must not be set by now.
    """

    def __init__(self, *args: Any, may_save: Callable[[User], None], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._may_save = may_save

    def set_password_and_save(self, user: Any, *args: Any, **options: Any) -> Any:
        super().set_password_and_save(user, *args, **{**options, "commit": False})
        with transaction.atomic():
            self._may_save(user)
            user.save(update_fields=["password"])
        return user
