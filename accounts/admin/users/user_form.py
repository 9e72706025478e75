"""The form for a new user. How they log in by PIN needs no password; staff get one afterwards."""

from typing import Any

from django import forms
from django.contrib.admin import site
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import QuerySet
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
