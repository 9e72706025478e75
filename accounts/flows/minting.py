"""Nobody gives what they do not have: the one rule for keys, roles and others' ways in.

A flow that gives scopes, takes them away or touches what another person logs in with takes a
``Maker`` and asks it. Refusals are ``BeyondMakerError``; then nothing was changed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from uuid import UUID

from accounts.holders import scopes_of_key, scopes_of_person
from accounts.models import ApiKey, Membership, Organisation, User
from accounts.scopes import (
    EVERYTHING,
    NONE,
    Scopes,
    in_order,
    missing,
    names_of,
    scopes_named,
    scopes_of_role,
)
from core.errors import ForbiddenError


class BeyondMakerError(ForbiddenError):
    """The maker does not have what it would give or take.

    ``scope`` names the missing scopes, or those that would be given for longer or from more
    networks than the maker has them; ``field`` the input, where it is one.
    """

    def __init__(self, message: str, scope: str, field: str = "") -> None:
        super().__init__(message)
        self.scopes = in_order(scopes_named(scope.split()))
        self.extensions = {"scope": scope, **({"field": field} if field else {})}


@dataclass(frozen=True, slots=True)
class Maker:
    """Who gives, as of this moment: its scopes in one organisation, until when, from where.

    ``expires_at`` is ``None`` for no end, ``networks`` empty for any. ``is_program`` for API keys:
    what only people may do is refused to them. A key that a person approved ends with them, and so
    do the keys that it makes: ``approver_id`` is that person's. ``key_id`` is the key's, for
    ``as_of_now``.
    """

    scopes: Scopes
    expires_at: datetime | None = None
    networks: tuple[str, ...] = ()
    is_program: bool = False
    user: User | None = None
    approver_id: UUID | None = None
    key_id: UUID | None = None

    @classmethod
    def key(cls, api_key: ApiKey) -> "Maker":
        return cls(
            scopes_of_key(api_key),
            api_key.expires_at,
            tuple(api_key.allowed_networks),
            is_program=True,
            approver_id=api_key.approved_by_id,
            key_id=api_key.pk,
        )

    def as_of_now(self, *, is_locked: bool = False) -> "Maker":
        """What the maker's key has at present: it may have been revoked or narrowed meanwhile.

        ``is_locked`` keeps it so until the transaction ends. Raises ``ForbiddenError`` for a key
        that has ended.
        """
        if self.key_id is None:
            return self
        rows = ApiKey.objects.all()
        if is_locked:
            rows = rows.select_for_update(of=("self",))
        row = rows.with_owners().filter(pk=self.key_id).first()
        if row is None or row.revoked_at or row.is_expired or row.has_lost_approver:
            raise ForbiddenError("Your own key has ended.")
        return Maker.key(row)

    @classmethod
    def person(cls, user: User, organisation: Organisation | UUID | None) -> "Maker":
        """The person at the organisation; at none, only superusers hold anything."""
        if organisation is None:
            return cls(EVERYTHING if user.is_superuser else NONE, user=user)
        return cls(scopes_of_person(user, organisation), user=user)

    def gives(self, scopes: Scopes, field: str = "") -> None:
        """Raises ``BeyondMakerError`` unless the maker has all of the scopes."""
        if lacking := missing(self.scopes, scopes):
            names = names_of(lacking)
            raise BeyondMakerError(f"You do not have {names}, so cannot give it.", names, field)

    def gives_key(
        self, scopes: Scopes, expires_at: datetime | None, networks: Sequence[str]
    ) -> None:
        """Raises ``BeyondMakerError`` for a key with more scopes, a later end or more networks."""
        self.gives(scopes, "scopes")
        if ends_later(expires_at, self.expires_at):
            raise BeyondMakerError(
                f"Your own key expires at {self.expires_at:%Y-%m-%dT%H:%M:%SZ}, so no other "
                "may expire later.",
                names_of(scopes),
                "expiresAt",
            )
        if not are_within(networks, self.networks):
            raise BeyondMakerError(
                f"Your own key may be used from {', '.join(self.networks)} only, so no other "
                "from elsewhere.",
                names_of(scopes),
                "allowedNetworks",
            )

    def touches_key(self, api_key: ApiKey) -> None:
        """For a key that is changed or gets a new secret, as it is now: like giving it."""
        if self.approver_id is not None and api_key.approved_by_id != self.approver_id:
            raise BeyondMakerError(
                "Your own key ends with the person who approved it, this one does not.",
                names_of(api_key.held_scopes),
            )
        self.gives_key(api_key.held_scopes, api_key.expires_at, api_key.allowed_networks)

    def ends_session_of(self, api_key: ApiKey) -> None:
        """For a session of another key: at least that key's scopes."""
        if api_key.pk == self.key_id:
            return
        if lacking := missing(self.scopes, api_key.held_scopes):
            names = names_of(lacking)
            raise BeyondMakerError(f"This key has {names}, which you do not have.", names)

    def changes_role(self, *roles: str) -> None:
        """For a role that is given or taken: the maker has all scopes of each."""
        for role in roles:
            if lacking := missing(self.scopes, scopes_of_role(role)):
                names = names_of(lacking)
                raise BeyondMakerError(
                    f"You do not have {names}, so cannot give or take the role {role}.", names
                )

    def touches(self, user: User, organisation: Organisation | None) -> None:
        """For another person's ways in: at least that person's scopes.

        ``organisation`` is where the maker acts. Its ways in open every organisation of the person,
        so a role elsewhere counts too. What the maker holds counts only where it acts: who has all
        there is trusted with the person (home's administrators), who has less needs ``All`` once
        the person holds anything elsewhere, whatever it is: the refusal must not tell that role.
        """
        self.touches_all([user], None if organisation is None else organisation.pk)

    def touches_all(self, users: Iterable[User], organisation_id: UUID | None) -> None:
        """``touches`` for several users, in one query.

        A role counts even where it has no effect yet, because the user has no access to the
        admin: an invitation would make it count.
        """
        others = [user for user in users if self.user is None or self.user.pk != user.pk]
        held = {user.pk: EVERYTHING if user.is_superuser else NONE for user in others}
        rows = Membership.objects.filter(user__in=others).order_by()
        for user_id, place, role in rows.values_list("user_id", "organisation_id", "role"):
            scopes = scopes_of_role(role)
            held[user_id] |= EVERYTHING if scopes and place != organisation_id else scopes
        for scopes in held.values():
            if lacking := missing(self.scopes, scopes):
                names = names_of(lacking)
                raise BeyondMakerError(
                    f"You do not have {names}, so cannot do this to this user.", names
                )


# What the installation does itself: management commands and what superusers start.
PLATFORM = Maker(EVERYTHING)


def capped(maker: Maker, expires_at: datetime | None, networks: Sequence[str] | None) -> "Limits":
    """The limits of a new key; what is not given is the maker's own."""
    return Limits(
        maker.expires_at if expires_at is None else expires_at,
        list(maker.networks if networks is None else networks),
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Until when and from where a key works."""

    expires_at: datetime | None
    networks: list[str]


def ends_later(end: datetime | None, than: datetime | None) -> bool:
    """Whether the former end is later; ``None`` is no end."""
    return than is not None and (end is None or end > than)


def are_within(networks: Sequence[str], allowed: Sequence[str]) -> bool:
    """Whether all of the networks lie in allowed ones; an empty list is every network."""
    if not allowed:
        return True
    outer = [ip_network(text) for text in allowed]
    return bool(networks) and all(_is_in_one(ip_network(text), outer) for text in networks)


def within_both(some: Sequence[str], others: Sequence[str]) -> list[str] | None:
    """The networks that lie in both lists; an empty list is every network. ``None`` for none."""
    if not some or not others:
        return list(some or others)
    # Of two networks that have an address in common, one lies in the other.
    inner = [text for text in some if are_within([text], others)]
    inner += [text for text in others if are_within([text], some)]
    return list(dict.fromkeys(inner)) or None


def _is_in_one(
    network: IPv4Network | IPv6Network, outer: Iterable[IPv4Network | IPv6Network]
) -> bool:
    return any(
        network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]
        for other in outer
    )
