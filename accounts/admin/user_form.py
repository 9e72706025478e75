"""The form for a new user. How they log in by PIN needs no password; staff get one afterwards."""

from typing import Any

from django import forms
from django.contrib.admin import site
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import QuerySet
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.models import Membership, Organisation, Role, User


class NewUserForm(forms.ModelForm[User]):
    """Profile and first membership. ``organisations`` is what the person may choose from."""

    organisations: QuerySet[Organisation]
    is_organisation_required = True

    organisation = forms.ModelChoiceField(
        Organisation.objects.none(),
        widget=AutocompleteSelect(Membership._meta.get_field("organisation"), site),
    )
    role = forms.ChoiceField(
        choices=Role.choices,
        initial=Role.MEMBER,
        widget=UnfoldAdminSelectWidget,
        help_text=Membership._meta.get_field("role").help_text,
    )

    class Meta:
        model = User
        fields = ("email", "name", "phone")
        error_messages = {
            "email": {
                "unique": (
                    "There is a user with this e-mail already. "
                    "Add them on the page of the organisation, under Members."
                )
            }
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        organisation = self.fields["organisation"]
        organisation.queryset = self.organisations  # type: ignore[attr-defined]
        organisation.required = self.is_organisation_required
