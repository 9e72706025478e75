"""Whatever is stored can be looked at, or there is a reason why not."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group

from accounts.admin.members import MembersInline, UserMembershipsInline
from accounts.admin.tenancy import TenantModelAdmin
from accounts.models import Membership
from tests.admin.pages import OUR_MODELS

EXEMPT = {
    "ReleaseChange": "Shown on the page of its release.",
    "RequiredLibrary": "Listed on the pages of the script and of the library.",
    "Plan": "Lives for an hour; the pages of releases show and apply it.",
    "Blob": "A source on its way into a version.",
    "Membership": "Listed on the pages of its organisation and of its user.",
    "PinCode": "Nothing but a digest and a time; its challenge shows what there is to know.",
    "PinTries": "Their number is on the page of their challenge.",
    "RunStorage": "Shown on the page of its organisation, and on the home page.",
    "IdempotencyKey": "Its duplicates are shown on the page of its run.",
    "FailureNotice": "What was last told; the runs of its script show the same.",
    "AlertScript": "Chosen on the page of the organisation.",
    "DailyUsage": "Drawn on the pages of the organisation, the script and the hook.",
    "UsagePosition": "Bookkeeping of the count.",
    "RunLease": "Lives as long as its run.",
    "RunLimits": "Shown on the page of their hook, as its limits.",
    "ScheduleTick": "Drawn on the page of its schedule.",
    "QueueKey": "Remembers for a day which run was queued with a key.",
    "PausedQueue": "Shown on the page of the queue.",
    "SigningSecret": "Listed on the page of its hook; its value is never shown.",
    "CredentialUse": "Shown beside its signing secret or call token on the page of its hook.",
    "RefusalCount": "Drawn on the page of its hook.",
    "AnsweredHandshake": "The newest are listed on the page of their hook.",
    "DeviceAuthorization": "Lives for minutes; its page asks for its code, and its key has a page.",
    "RateCounter": "Counters of the rate limits, which end by themselves.",
}


@pytest.mark.parametrize("model", OUR_MODELS, ids=lambda model: model.__name__)
def test_every_model_is_in_the_admin(model: type) -> None:
    assert admin.site.is_registered(model) or model.__name__ in EXEMPT


@pytest.mark.parametrize(
    "model_admin",
    [admin.site.get_model_admin(model) for model in OUR_MODELS if admin.site.is_registered(model)],
    ids=lambda model_admin: type(model_admin).__name__,
)
def test_every_page_separates_tenants(model_admin: object) -> None:
    assert isinstance(model_admin, TenantModelAdmin)


def test_the_exempt_membership_has_its_inlines() -> None:
    assert MembersInline.model is UserMembershipsInline.model is Membership


def test_djangos_groups_have_no_page() -> None:
    assert not admin.site.is_registered(Group)
