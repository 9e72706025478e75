"""`python -m benchmarks.floods.seeding`: migrates and fills an empty database, prints the cast.

Runs in the environment of the flooded node.
"""

import argparse
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from accounts import credentials  # noqa: E402
from accounts.credentials import SecretKind  # noqa: E402
from accounts.flows.api_keys import IssuedApiKey, issue_api_key  # noqa: E402
from accounts.flows.organisations import create_organisation  # noqa: E402
from accounts.flows.users import create_user  # noqa: E402
from accounts.models import Organisation, Role  # noqa: E402
from benchmarks.admin_pages import DAYS, insert, keep_house, made_up_runs  # noqa: E402
from benchmarks.comparison.order import SOURCE as ORDER  # noqa: E402
from benchmarks.floods.cast import Cast, Flooder, Neighbour  # noqa: E402
from core.admin.links import list_of  # noqa: E402
from core.http.origin import NOWHERE  # noqa: E402
from hooks.flows.hooks import IssuedHook, issue_hook  # noqa: E402
from scripts_engine.flows.scripts import create_script  # noqa: E402
from scripts_engine.models import Run  # noqa: E402
from scripts_engine.runs.spec import NOBODY  # noqa: E402
from sessions_api.flows import open_session  # noqa: E402
from sessions_api.models import Credential  # noqa: E402

ORGANISATIONS = 100
WRONG_SECRETS = 200
# The other runs are the neighbour's.
FLOODER_SHARE = 0.9
SCRIPTS = {
    "waits": 'return http.request{method = "GET", url = params.get("body"), timeout = 5}.status',
    "loops": "while true do end",
    "takes": 'return #params.get("body")',
    "gives": 'return ("x"):rep(1000000)',
    "counts": 'return store.increment("hits")',
    "logs": 'print(("x"):rep(65536))',
}


def make_hook(organisation: Organisation, name: str, source: str) -> IssuedHook:
    return issue_hook(
        create_script(organisation, name=name, source=source, author=NOBODY), name=name
    )


def path_of(issued: IssuedHook) -> str:
    return urlsplit(issued.hook.url_with(issued.call_token)).path


def session_of(key: IssuedApiKey) -> str:
    opened = open_session(
        credential=Credential.API_KEY,
        uid=key.api_key.key,
        password=key.secret,
        email="",
        origin=NOWHERE,
    )
    assert opened is not None
    return opened.token


def admin_cookie_of(organisation: Organisation, email: str) -> str:
    """The session cookie of a new administrator who is logged in."""
    user = create_user(organisation, email=email, role=Role.ADMINISTRATOR)
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def searches(hook: IssuedHook) -> list[str]:
    """Pages of the list of runs that are expensive for the database."""
    script = {"script__id__exact": hook.hook.script_id}
    pages = [
        {"p": 100},
        {"p": 1000},
        {"q": "nothing like it"},
        {"status__exact": "out-of-memory"},
        {**script, "status__exact": "out-of-memory"},
        {"trigger__exact": "admin"},
        {"within": "24h"},
    ]
    return ["/admin/", *(list_of(Run, **query) for query in pages)]


def fill(runs: int) -> Cast:
    acme, globex = create_organisation("Acme"), create_organisation("Globex")
    hooks = {name: make_hook(acme, name, source) for name, source in SCRIPTS.items()}
    order = make_hook(globex, "orders", ORDER)
    all_hooks = [issued.hook for issued in (*hooks.values(), order)]
    insert(made_up_runs(runs, all_hooks, acme_share=FLOODER_SHARE), runs)
    key = issue_api_key(acme, name="flood")
    now = datetime.now(UTC)
    flooder = Flooder(
        api_key=key.api_key.key,
        session=session_of(key),
        admin_cookie=admin_cookie_of(acme, "bob@example.com"),
        hooks={name: path_of(hook) for name, hook in hooks.items()},
        admin_pages=searches(hooks["takes"]),
        wrong_secrets=[
            credentials.generate_secret(SecretKind.API_KEY) for _ in range(WRONG_SECRETS)
        ],
        since=[
            f"{now - timedelta(days=DAYS, minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
            for minutes in range(30)
        ],
    )
    neighbour = Neighbour(
        session=session_of(issue_api_key(globex, name="neighbour")),
        admin_cookie=admin_cookie_of(globex, "charlie@example.org"),
        hook=path_of(order),
        runs_page=list_of(Run),
    )
    others = [create_organisation(f"Organisation {number}") for number in range(ORGANISATIONS)]
    return Cast(
        flooder, neighbour, [path_of(make_hook(each, "one", "return 1")) for each in others]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, required=True)
    runs: int = parser.parse_args().runs
    call_command("migrate", verbosity=0)
    cast = fill(runs)
    keep_house()
    print(cast.as_json())


if __name__ == "__main__":
    main()
