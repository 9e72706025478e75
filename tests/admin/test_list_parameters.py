"""What a list takes from its address: what it offers itself, and nothing else from anybody.

A look-up that is answered tells true from false about columns that no page shows, of any row that
a relation leads to.
"""

import re
from collections.abc import Iterator
from html import unescape
from itertools import cycle
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import Model
from django.http import QueryDict
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from unfold.views import ChangeList

from accounts.models import AuthEvent, Organisation, User
from config.admin.site import MoonhookAdminSite
from scripts_engine.models import Script
from tests.admin.addresses import REGISTERED, list_addresses, object_addresses
from tests.admin.pages import OUR_MODELS, action_on, list_of, page_of, text_of
from tests.written import nothing_written

pytestmark = pytest.mark.postgresql

OURS = [model for model in REGISTERED if model in OUR_MODELS]
every_model = pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model.__name__)
by_model = pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)

OF_EVERY_LIST = {"q": "a", "o": "", "p": "1", "all": "", "e": "1"}
OF_DJANGO_ALONE = ("_popup", "_to_field", "_facets", "_changelist_filters", "nothing", "")
# A value for which a row is likely to match, and one for which none does.
LOOK_UPS = {
    "": ("1", "0"),
    "__exact": ("1", "0"),
    "__startswith": ("", "\x7f"),
    "__regex": (".*", "a^"),
    "__isnull": ("False", "True"),
    "__in": ("1,2,True", ","),
    "__gt": ("0", "\x7f"),
}
EACH = [(suffix, value) for suffix, values in LOOK_UPS.items() for value in values]
# How many of the parameters are tried on the page itself: each refusal there is a whole request.
SEEN_ON_THE_PAGE = 5
# Of the session, which is asked for with the time of the request.
TIME = re.compile(r"'\d{4}-\d\d-\d\d[^']*'")


class Answer(NamedTuple):
    status: int
    content: bytes
    statements: list[str]


def answer_to(client: Client, address: str, query: dict[str, str]) -> Answer:
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address, query)
    statements = [TIME.sub("", entry["sql"]) for entry in captured.captured_queries]
    return Answer(response.status_code, response.content, statements)


def names_of(model: type[Model]) -> Iterator[str]:
    """What a look-up on the model may begin with: its columns and relations, also those to it."""
    yield "pk"
    for field in model._meta.get_fields():
        yield field.name
        if getattr(field, "attname", field.name) != field.name:
            yield field.attname


def annotations_of(model: type[Model], user: User) -> list[str]:
    rows = admin.site.get_model_admin(model).get_queryset(request_of(user))
    return list(rows.query.annotations)


def across_relations(model: type[Model]) -> Iterator[str]:
    for field in model._meta.get_fields():
        if field.related_model is None:
            continue
        for name in {field.name, getattr(field, "attname", field.name)}:
            yield from (f"{name}__{further}" for further in names_of(field.related_model))


def request_of(user: User, query: dict[str, str] | None = None) -> Any:
    request = RequestFactory().get("/admin/", query)
    request.user = user
    return request


def offered(model: type[Model], user: User) -> list[str]:
    """The parameters of the list's own filters."""
    model_admin, request = admin.site.get_model_admin(model), request_of(user)
    filters = model_admin.get_changelist_instance(request).filter_specs
    return [name for spec in filters for name in spec.expected_parameters()]


def foreign_parameters(model: type[Model], user: User) -> list[tuple[str, str]]:
    """Each path with each of its look-ups; those across relations take turns with the look-ups."""
    near = [*names_of(model), *annotations_of(model, user)]
    far = sorted(across_relations(model))
    found = [(name + suffix, value) for name in near for suffix, value in EACH]
    found += [(name + suffix, value) for name, (suffix, value) in zip(far, cycle(EACH))]
    own = set(offered(model, user))
    return [(name, value) for name, value in found if name not in own]


def is_refused_unasked(model_admin: Any, request: Any, name: str, value: str) -> bool:
    """Whether the list refuses the parameter before it is looked up: what the view goes by."""
    request.GET = QueryDict(urlencode({name: value}))
    try:
        model_admin.get_changelist_instance(request)
    except DisallowedModelAdminLookup:
        return True
    return False


def answered_differently(client: Client, user: User, model: type[Model]) -> list[str]:
    """The parameters that are not refused exactly as a word that means nothing is.

    All are tried on the rule that the view goes by, which may not ask the database; some on the
    view itself.
    """
    parameters = foreign_parameters(model, user)
    model_admin, request = admin.site.get_model_admin(model), request_of(user)
    # Whose organisations they are is read once a request.
    model_admin.get_queryset(request)
    with CaptureQueriesContext(connection) as captured:
        taken = [
            f"{name}={value}"
            for name, value in parameters
            if not is_refused_unasked(model_admin, request, name, value)
        ]
    address = list_of(model)
    # The first request of a session writes its beginning down.
    client.get(address)
    refusal = answer_to(client, address, {"nothing": "1"})
    return [
        *taken,
        *(entry["sql"] for entry in captured.captured_queries),
        *[f"not refused: {refusal.status}"] * (refusal.status != 400),
        *(
            f"page: {name}={value}"
            for name, value in parameters[:: len(parameters) // SEEN_ON_THE_PAGE]
            if answer_to(client, address, {name: value}) != refusal
        ),
    ]


@pytest.mark.slow
@every_model
def test_a_superuser_asks_about_no_column_by_typing_it(
    as_root: Client, root: User, acme_objects: dict[type, Any], model: type[Model]
) -> None:
    assert answered_differently(as_root, root, model) == []


@pytest.mark.slow
@by_model
def test_an_administrator_asks_about_no_column_by_typing_it(
    as_bob: Client,
    bob: User,
    acme_objects: dict[type, Any],
    globex_objects: dict[type, Any],
    model: type[Model],
) -> None:
    assert answered_differently(as_bob, bob, model) == []


@pytest.mark.parametrize(
    "lookup",
    [
        "user_id__password__startswith",
        "user_id__phone__regex",
        "user_id__totpdevice__key__startswith",
        "user_id__staticdevice__token_set__token__startswith",
        "user_id__memberships__organisation__scripts__current_version__source__regex",
        "user__id__exact__isnull",
        "USER__id__exact",
        "user__id__exact ",
    ],
)
def test_the_audit_log_cannot_be_filtered_by_users_columns(
    as_bob: Client, acme_objects: dict[type, Any], lookup: str
) -> None:
    as_bob.get(list_of(AuthEvent))
    refusal = answer_to(as_bob, list_of(AuthEvent), {"nothing": "1"})

    assert refusal.status == 400
    assert answer_to(as_bob, list_of(AuthEvent), {lookup: ""}) == refusal
    assert answer_to(as_bob, list_of(AuthEvent), {lookup: ".*", "q": "a"}) == refusal
    assert answer_to(as_bob, list_of(AuthEvent), {"kind__exact": "", lookup: "\x7f"}) == refusal


def test_lists_take_none_of_djangos_parameters_that_no_page_of_ours_uses(as_root: Client) -> None:
    taken = [
        (model, name)
        for model in REGISTERED
        for name in OF_DJANGO_ALONE
        if as_root.get(list_of(model), {name: "id"}).status_code != 400
    ]

    assert taken == []


def test_no_action_is_narrowed_by_a_look_up(as_root: Client, acme_objects: dict[type, Any]) -> None:
    body = action_on(next(iter(acme_objects.values())), "delete_selected")
    with nothing_written():
        answers = {
            model: as_root.post(list_of(model) + "?pk__isnull=False", body) for model in REGISTERED
        }

    assert [model for model, answer in answers.items() if answer.status_code != 400] == []


@pytest.mark.slow
@every_model
def test_a_list_takes_the_parameters_that_it_offers(
    as_root: Client, root: User, acme_objects: dict[type, Any], model: type[Model]
) -> None:
    query = OF_EVERY_LIST | dict.fromkeys(offered(model, root), "")

    assert [name for name in query if not is_taken(as_root, model, name, query[name])] == []
    assert as_root.get(list_of(model), query).status_code == 200


def is_taken(client: Client, model: type[Model], name: str, value: str) -> bool:
    """Shown, or brought back to the whole list with a mark in its address."""
    response = client.get(list_of(model), {name: value}, follow=True)
    return response.status_code == 200


def asked_for(page: str) -> set[str]:
    """The names of the fields of the page's forms that lead to an address: search and filters."""
    forms = re.findall(r'<form[^>]*method="get".*?</form>', page, re.DOTALL)
    return {name for form in forms for name in re.findall(r'\sname="([^"]+)"', form)}


@pytest.mark.slow
@every_model
def test_a_list_accepts_the_parameters_of_its_forms(
    as_root: Client, acme_objects: dict[type, Any], model: type[Model]
) -> None:
    names = asked_for(text_of(as_root.get(list_of(model), {"o": "", "p": "1"})))

    assert as_root.get(list_of(model), dict.fromkeys(names, "")).status_code == 200


def linked_lists(client: Client, addresses: list[str]) -> list[str]:
    """The links with parameters that stand on the pages."""
    found: set[str] = set()
    for address in addresses:
        texts = text_of(client.get(address))
        for link in re.findall(r'(?:href|action)="([^"]*\?[^"]*)"', texts):
            target = unescape(link)
            found.add(address + target if target.startswith("?") else target)
    return sorted(link for link in found if link.partition("?")[0] in LISTS)


LISTS = {list_of(model) for model in REGISTERED}


@pytest.mark.slow
def test_every_link_to_a_list_is_answered(as_root: Client, acme_objects: dict[type, Any]) -> None:
    pages = ["/admin/", *LISTS]
    pages += [a.of(acme_objects, None) for model in REGISTERED for a in list_addresses(model)]
    pages += [
        address.of(acme_objects, row)
        for model, row in acme_objects.items()
        for address in object_addresses(model)
    ]
    links = linked_lists(as_root, pages)

    assert len(links) > 20
    assert [link for link in links if as_root.get(link).status_code != 200] == []


def filled_in(rows: dict[type, Any]) -> dict[str, str]:
    """A query that names the rows in every relation that a form for a new row may have."""
    names = {field.name for model in REGISTERED for field in model._meta.get_fields()}
    return {
        name: str(row.pk)
        for row in rows.values()
        for name in names
        if name in {row._meta.model_name, *SYNONYMS.get(type(row), ())}
    }


SYNONYMS = {User: ("created_by", "author"), Organisation: ("home",)}


def test_forms_for_new_rows_name_nothing_of_globex_that_their_address_does(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    query = filled_in(globex_objects)

    answers = {model: as_bob.get(list_of(model, "add"), query, follow=True) for model in OURS}

    assert {answer.status_code for answer in answers.values()} == {200, 403}
    telling = [each for each, answer in answers.items() if "globex" in text_of(answer).lower()]
    assert telling == []


@every_model
def test_a_row_is_named_by_its_key_and_no_other_column(root: User, model: type[Model]) -> None:
    model_admin, request = admin.site.get_model_admin(model), request_of(root)

    allowed = {name for name in names_of(model) if model_admin.to_field_allowed(request, name)}

    assert allowed == {model._meta.pk.name}


def test_a_page_that_is_asked_for_by_a_relation_is_refused(
    as_bob: Client, acme_objects: dict[type, Any]
) -> None:
    page = page_of(acme_objects[Script])

    assert as_bob.get(page, {"_to_field": "id"}).status_code == 200
    assert as_bob.get(page, {"_to_field": "hooks"}).status_code == 400
    assert as_bob.get(page, {"_to_field": "name"}).status_code == 400


class _OwnChangeList(ChangeList):
    pass


class _PlainAdmin(ModelAdmin):
    list_filter = ("name",)

    def get_changelist(self, request: Any, **kwargs: Any) -> type[ChangeList]:
        return _OwnChangeList

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        return True

    def lookup_allowed(self, lookup: str, value: str, request: Any) -> bool:
        return True


def test_every_registered_list_accepts_only_its_own_parameters(root: User) -> None:
    site = MoonhookAdminSite("another")
    site.register(Group, _PlainAdmin)
    list_of_groups = site.get_model_admin(Group).get_changelist_instance

    changelist = list_of_groups(request_of(root, {"name": "a"}))
    assert isinstance(changelist, _OwnChangeList)
    with pytest.raises(DisallowedModelAdminLookup):
        list_of_groups(request_of(root, {"permissions__codename__startswith": ""}))
