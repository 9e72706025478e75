"""The form of a user in the admin: creates users and changes profiles, through flows."""

from typing import Any

from django import forms
from django.contrib.admin import site
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.admin.reach import (
    administered_organisation_ids,
    is_superuser,
    maker_of,
    person,
)
from accounts.flows.minting import Maker
from accounts.flows.users import (
    change_any_user,
    create_user,
    create_user_without_home,
    locked,
    update_user,
)
from accounts.models import Membership, Organisation, Role, User
from accounts.scopes import ROLE_HELP
from core.admin.flow_forms import RowChoiceField
from core.http.origin import Origin, origin_of

PROFILE_HELP = {
    "email": (
        "Used to log in, such as ann@example.com; PIN codes are sent there. Changing it cancels "
        "codes already sent."
    ),
    "name": "Shown in messages and lists, such as “Ann Lee”. Optional.",
    "phone": (
        "With country code, such as +491701234567. PIN codes by SMS are sent there, so the holder "
        "of this number can log in. Leave empty to send codes by e-mail only."
    ),
}


class NewUserForm(forms.ModelForm[User]):
    """Profile and first membership; ``organisations`` are those to choose from."""

    organisations: QuerySet[Organisation]
    is_organisation_required = True

    organisation = RowChoiceField(
        Organisation.objects.none(),
        widget=AutocompleteSelect(Membership._meta.get_field("organisation"), site),
        help_text=(
            "The user's home organisation, which sees and manages the profile. Other organisations "
            "can invite the user later and see only the e-mail."
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
                    "A user with this e-mail already exists. "
                    "Invite them under Members on the organisation's page."
                )
            }
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        organisation = self.fields["organisation"]
        organisation.queryset = self.organisations  # type: ignore[attr-defined]
        organisation.required = self.is_organisation_required


class UserSaving:
    """Mixin for the model admin of users."""

    def save_by_flow(self, request: HttpRequest, form: forms.ModelForm[User], change: bool) -> User:
        if not change:
            organisation = form.cleaned_data["organisation"]
            maker = maker_of(request, organisation)
            return _create(form.cleaned_data, origin_of(request), maker)
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        # The form's instance already has the changes, so read the stored row.
        user = locked(form.instance)
        if is_superuser(request):
            return change_any_user(user, by=person(request), origin=origin_of(request), **changes)
        if (
            changes
            and user.home is not None
            and user.home_id in administered_organisation_ids(request)
        ):
            maker = maker_of(request, user.home)
            return update_user(user.home, user, origin=origin_of(request), maker=maker, **changes)
        return user


def _create(data: dict[str, Any], origin: Origin, maker: Maker) -> User:
    profile = {name: data[name] for name in ("email", "name", "phone")}
    if data["organisation"] is None:
        return create_user_without_home(origin=origin, **profile)
    return create_user(
        data["organisation"], role=data["role"], origin=origin, maker=maker, **profile
    )
