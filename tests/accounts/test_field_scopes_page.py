"""docs/api.md tells the scopes of every field, out of the table that the server asks."""

from docs.tools.field_scopes import PAGE, names_of_tables, tables, with_tables


def test_the_page_has_the_tables() -> None:
    """After a change of a field's scopes, run: python -m docs.tools.field_scopes."""
    page = PAGE.read_text()

    assert names_of_tables(page) == list(tables())
    assert with_tables(page) == page
