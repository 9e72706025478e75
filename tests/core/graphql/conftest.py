import pytest

from tests.core.graphql import schema


@pytest.fixture(autouse=True)
def calls() -> list[str]:
    """The names of the resolvers that ran."""
    schema.calls.clear()
    return schema.calls
