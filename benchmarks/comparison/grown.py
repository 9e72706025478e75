"""`python -m benchmarks.comparison.grown ROWS`: fills PostgreSQL and prints what to call as JSON.

Creates that many scripts, hooks, sessions and runs. Calls are random: hooks of the organisation
that has a tenth of them, so that switching sandboxes between organisations is not measured;
sessions and devices of all users. No device whose session is called also logs in, because a login
ends its oldest session.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402

from accounts import credentials  # noqa: E402
from accounts.credentials import SecretKind  # noqa: E402
from accounts.models import DeviceToken  # noqa: E402
from benchmarks import growth_fill  # noqa: E402
from benchmarks.comparison.order import SOURCE  # noqa: E402
from benchmarks.growth_fill import GivenDigest  # noqa: E402
from hooks.models import Hook  # noqa: E402

CALLED = 2_000


class Called:
    """A random choice of objects of one kind, with their secrets."""

    def __init__(self, kind: int, secret_kind: SecretKind, numbers: Sequence[int]) -> None:
        chosen = random.sample(numbers, min(CALLED, len(numbers)))
        secrets = [credentials.generate_secret(secret_kind) for _ in chosen]
        self.secrets = {credentials.digest(secret).value: secret for secret in secrets}
        self.digests = [
            GivenDigest(kind, number, digest)
            for number, digest in zip(chosen, self.secrets, strict=True)
        ]


def fill(rows: int) -> dict[str, Any]:
    sizes = growth_fill.counts(rows, scripts=rows)
    hooks = Called(growth_fill.HOOK, SecretKind.CALL_TOKEN, range(10, rows + 1, 10))
    devices = Called(growth_fill.DEVICE, SecretKind.DEVICE_TOKEN, range(1, sizes["users"] + 1, 2))
    sessions = Called(
        growth_fill.SESSION_OF_DEVICE,
        SecretKind.SESSION,
        range(1, sizes["sessions_of_devices"] + 1, 2),
    )
    growth_fill.fill(
        sizes,
        source=SOURCE,
        digests=[*hooks.digests, *devices.digests, *sessions.digests],
        say=lambda line: print(f"{rows:,} rows: {line}", file=sys.stderr, flush=True),
    )
    return {
        "hooks": urls(hooks),
        "logins": logins(devices),
        "sessions": list(sessions.secrets.values()),
    }


def urls(called: Called) -> list[str]:
    hooks = Hook.objects.select_related("script").filter(digest__in=called.secrets)
    return [hook.url_with(called.secrets[hook.digest]) for hook in hooks.order_by("?")]


def logins(called: Called) -> list[dict[str, str]]:
    tokens = DeviceToken.objects.select_related("user").filter(digest__in=called.secrets)
    return [
        {
            "credential": "Token",
            "uid": str(token.pk),
            "password": called.secrets[token.digest],
            "email": token.user.email,
        }
        for token in tokens.order_by("?")
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int)
    made = fill(parser.parse_args().rows)
    with connection.cursor() as cursor:
        # Or it comes while something is measured.
        cursor.execute("CHECKPOINT")
    print(json.dumps(made))


if __name__ == "__main__":
    main()
