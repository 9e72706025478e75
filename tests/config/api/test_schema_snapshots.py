"""The committed GraphQL schemas, where a diff shows each change of the interface."""

import graphene
import pytest
from django.conf import settings

from config.api import admin_schema, user_schema
from tests.client import Client

COMMITTED = settings.BASE_DIR / "docs/schemas"
SCHEMAS = {"user": user_schema.schema, "admin": admin_schema.schema}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_is_the_committed_one(name: str) -> None:
    """After an intended change, run: manage.py export_schemas."""
    assert f"{SCHEMAS[name]}\n" == (COMMITTED / f"{name}.graphql").read_text()


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_is_served_to_everyone(name: str, client: Client) -> None:
    response = client.get(f"/{name}/schema.graphql")

    assert response.status_code == 200
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert "Content-Security-Policy" not in response
    assert response.content == (COMMITTED / f"{name}.graphql").read_bytes()


@pytest.mark.parametrize("name", SCHEMAS)
def test_everything_in_the_schema_is_described(name: str) -> None:
    assert undescribed(SCHEMAS[name]) == []


def undescribed(schema: graphene.Schema) -> list[str]:
    types = [
        kind for kind in schema.graphql_schema.type_map.values() if not kind.name.startswith("__")
    ]
    missing = [kind.name for kind in types if not kind.description]
    for kind in types:
        for field_name, field in getattr(kind, "fields", {}).items():
            missing += [] if field.description else [f"{kind.name}.{field_name}"]
            missing += [
                f"{kind.name}.{field_name}({name})"
                for name, argument in getattr(field, "args", {}).items()
                if not argument.description
            ]
    return missing
