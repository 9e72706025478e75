"""Drafts, publishing, conflicts, undoing and promoting in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.flows.organisations import create_organisation
from accounts.models import Role, User
from scripts_engine.flows.scripts import create_script, update_script
from scripts_engine.models import Release, Script, ScriptVersion
from scripts_engine.runs.spec import NOBODY
from tests import factories
from tests.browser.axe import findings
from tests.browser.conftest import AdminBrowser
from tests.browser.editor import source_on, write_source
from tests.browser.looks import in_both_looks

pytestmark = pytest.mark.browser


@pytest.fixture
def script(bob: User) -> Script:
    return factories.make_script(bob.organisations.get(), "return 'live'", "orders")


@pytest.fixture
def page(admin_browser: AdminBrowser, bob: User, script: Script) -> Page:
    admin_browser.enter_as(bob)
    return admin_browser.open(f"/admin/scripts_engine/script/{script.pk}/change/")


@in_both_looks
def test_ctrl_s_saves_a_draft_without_a_reload_and_shows_the_difference(
    page: Page, script: Script
) -> None:
    page.get_by_label("Time limit").fill("7")
    write_source(page, "return 'draft'")
    page.keyboard.press("Control+s")

    expect(page.locator("#draft-status")).to_contain_text("Draft saved")
    expect(page.locator("#draft-state .mh-added")).to_have_text("+return 'draft'")
    expect(page.locator("#draft-line")).to_contain_text("The editor holds your draft")
    assert page.get_by_label("Time limit").input_value() == "7"
    assert ScriptVersion.objects.drafts().get().source == "return 'draft'"
    script.refresh_from_db()
    assert script.source == "return 'live'"
    assert findings(page) == []


def test_page_can_be_left_after_the_draft_is_saved(page: Page, script: Script) -> None:
    write_source(page, "return 'draft'")
    page.keyboard.press("Control+s")
    expect(page.locator("#draft-status")).to_contain_text("Draft saved")

    page.reload()

    assert source_on(page) == "return 'draft'"


def test_publishing_ends_the_draft_and_names_the_release(page: Page, script: Script) -> None:
    write_source(page, "return 'draft'")
    page.keyboard.press("Control+s")
    expect(page.locator("#draft-status")).to_contain_text("Draft saved")
    page.get_by_label("Note for the release").fill("Faster")
    page.locator("#submit-row").get_by_role("button", name="Publish").click()

    expect(page.locator(".mh-live-bar")).to_contain_text("is live, published")
    expect(page.locator(".mh-live-bar")).to_contain_text("release 2")
    assert Release.objects.values_list("note", flat=True).first() == "Faster"
    script.refresh_from_db()
    assert script.source == "return 'draft'"


@in_both_looks
def test_conflict_keeps_the_text_and_offers_a_merged_one(page: Page, script: Script) -> None:
    write_source(page, "return 'mine'")
    update_script(script, author=NOBODY, source="return 'theirs'")
    page.keyboard.press("Control+s")

    conflict = page.locator("#conflict")
    expect(conflict).to_contain_text("Version 2, live")
    expect(conflict).to_contain_text("return 'theirs'")
    assert source_on(page) == "return 'mine'"
    assert not ScriptVersion.objects.drafts().exists()
    assert findings(page) == []

    page.get_by_label("Merged").fill("return 'both'")
    page.get_by_role("button", name="Put the merged text into the editor").click()
    expect(conflict).to_have_count(0)
    page.keyboard.press("Control+s")
    expect(page.locator("#draft-status")).to_contain_text("Draft saved")
    assert ScriptVersion.objects.drafts().get().source == "return 'both'"


def test_conflict_of_publishing_keeps_the_text(page: Page, script: Script) -> None:
    write_source(page, "return 'mine'")
    update_script(script, author=NOBODY, source="return 'theirs'")
    page.locator("#submit-row").get_by_role("button", name="Publish").click()

    expect(page.locator("#conflict")).to_contain_text("return 'theirs'")
    assert source_on(page) == "return 'mine'"
    script.refresh_from_db()
    assert script.source == "return 'theirs'"


@in_both_looks
def test_release_is_undone_after_what_will_change_was_shown(
    admin_browser: AdminBrowser, bob: User, script: Script
) -> None:
    update_script(script, author=NOBODY, source="return 'worse'")
    admin_browser.enter_as(bob)
    page = admin_browser.open("/admin/scripts_engine/release/")
    assert findings(page) == []
    page.get_by_role("link", name="Release 2").click()
    expect(page.locator(".mh-added")).to_have_text("+return 'worse'")
    assert findings(page) == []

    # On a narrow screen the button is in a menu.
    release = Release.objects.get(number=2)
    admin_browser.open(f"/admin/scripts_engine/release/{release.pk}/undo/")
    expect(page.get_by_text("What will change")).to_be_visible()
    assert findings(page) == []
    page.get_by_role("button", name="Undo release 2").click()

    expect(page.get_by_text(re.compile("Undid release 2"))).to_be_visible()
    script.refresh_from_db()
    assert script.source == "return 'live'"


@in_both_looks
def test_script_is_promoted_to_another_organisation(
    admin_browser: AdminBrowser, bob: User, script: Script
) -> None:
    staging = create_organisation("Acme staging")
    bob.memberships.create(organisation=staging, role=Role.ADMINISTRATOR)
    create_script(staging, name="refunds", source="return 'refund'", author=NOBODY)
    admin_browser.enter_as(bob)
    page = admin_browser.open("/admin/scripts_engine/release/promote/")
    page.get_by_label("From").select_option(label="Acme staging")
    page.get_by_label("To", exact=True).select_option(label="Acme")
    page.get_by_role("button", name="Show scripts").click()
    page.get_by_label("refunds").check()
    assert findings(page) == []
    page.get_by_role("button", name="Show the plan").click()

    expect(page.get_by_text("Script “refunds” created")).to_be_visible()
    assert findings(page) == []
    page.get_by_role("button", name="Apply to Acme").click()

    expect(page.get_by_text(re.compile("Applied to Acme"))).to_be_visible()
    assert Script.objects.filter(organisation=script.organisation, name="refunds").exists()
    assert admin_browser.script_errors == []
