"""Codes on paper, each good once, for who has lost the authenticator app."""

import secrets

from django_otp.plugins.otp_static.models import StaticDevice, StaticToken

from accounts import credentials
from accounts.models import User

COUNT = 10
# Without letters and digits that are mistaken for each other: 49 bits in ten of them.
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
_LENGTH = 10
# As long as django-otp's column: 64 bits of the digest.
_KEPT = 16


def replace_recovery_codes(user: User) -> list[str]:
    """New codes, of which only digests are kept; the earlier ones are worth nothing."""
    StaticDevice.objects.filter(user=user).delete()
    device = StaticDevice.objects.create(user=user, name="Recovery codes")
    codes = ["".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH)) for _ in range(COUNT)]
    StaticToken.objects.bulk_create(
        StaticToken(device=device, token=credentials.digest(code).value[:_KEPT]) for code in codes
    )
    return [f"{code[:5]}-{code[5:]}" for code in codes]


def count_recovery_codes(user: User) -> int:
    return StaticToken.objects.filter(device__user=user).count()


def token_of(device: StaticDevice, code: str) -> str:
    """The device's token for the code; one that it does not have for a wrong code."""
    digests = [digest[:_KEPT] for digest in credentials.digests(code)]
    found: StaticToken | None = device.token_set.filter(token__in=digests).first()
    return digests[0] if found is None else found.token
