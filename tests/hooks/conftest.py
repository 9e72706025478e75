import pytest

from accounts.models import Organisation
from hooks.flows.hooks import IssuedHook
from tests.hooks.github import make_github


@pytest.fixture
def github(acme: Organisation) -> IssuedHook:
    """A hook that GitHub calls."""
    return make_github(acme)
