import pytest

from accounts.models import Organisation
from scripts_engine.models import Hook
from tests.factories import make_hook, make_script


@pytest.fixture
def hook(acme: Organisation) -> Hook:
    return make_hook(make_script(acme)).hook
