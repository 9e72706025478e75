"""The interfaces' documents as committed: a change of the interface shows in the diff."""

from pathlib import Path

import graphene
import pytest
from django.test import Client

from config.api import admin_schema, user_schema
from config.api.openapi import OPENAPI_JSON

SNAPSHOTS = Path(__file__).resolve().parents[2] / "snapshots"
OPENAPI = SNAPSHOTS.parent.parent / "docs" / "openapi.json"
SCHEMAS = {"user": user_schema.schema, "admin": admin_schema.schema}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_is_the_committed_one(name: str) -> None:
    """After a wanted change: manage.py export_schemas."""
    assert f"{SCHEMAS[name]}\n" == (SNAPSHOTS / f"{name}.graphql").read_text()


def test_the_openapi_document_is_the_committed_one() -> None:
    """After a wanted change: manage.py export_schemas."""
    assert OPENAPI.read_text() == OPENAPI_JSON


def test_the_openapi_document_is_served_to_anybody_and_to_caches(client: Client) -> None:
    response = client.get("/openapi.json")

    assert response.status_code == 200
    assert response["Content-Type"] == "application/vnd.oai.openapi+json;version=3.1"
    assert response["Cache-Control"] == "public, max-age=3600"
    assert response.content == OPENAPI.read_bytes()
    assert (
        client.get("/openapi.json", headers={"If-None-Match": response["ETag"]}).status_code == 304
    )


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
