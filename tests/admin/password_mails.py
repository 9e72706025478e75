"""Links that set a password, as the mails have them."""

import re
from typing import Any

from django.core import mail
from django.test import Client

from tests.factories import work

NEW = "a new password 1"
_LINK = re.compile(r"https?://\S+/admin/password/link/\?link=\S+")


def links_mailed() -> list[str]:
    """The links in all mails so far, after the background work that is due."""
    work()
    return [link for sent in mail.outbox for link in _LINK.findall(str(sent.body))]


def path_of(link: str) -> str:
    return link[link.index("/admin/") :]


def open_link(link: str, client: Client | None = None) -> Client:
    """A browser that has opened the link."""
    client = client or Client()
    client.get(path_of(link), follow=True)
    return client


def set_password(client: Client, password: str = NEW, again: str = "") -> Any:
    typed = {"new_password1": password, "new_password2": again or password}
    return client.post("/admin/password/link/", typed)


def use(link: str, password: str = NEW) -> Any:
    """Opens the link in a new browser, and sets the password there."""
    return set_password(open_link(link), password)
