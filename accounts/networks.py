"""Lists of networks in CIDR notation, as administrators enter them."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address, ip_network

from django.core.exceptions import ValidationError

MAX_NETWORKS = 50


def canonical_networks(texts: Sequence[str], *, maximum: int = MAX_NETWORKS) -> list[str]:
    """The networks in canonical form. Raises ``ValidationError`` for an invalid one."""
    if len(texts) > maximum:
        raise ValidationError(f"At most {maximum} networks.", code="max_length")
    try:
        return [str(ip_network(text.strip())) for text in texts]
    except ValueError:
        raise ValidationError(
            "Enter networks such as 192.0.2.0/24 or 2001:db8::/48, or single addresses.",
            code="invalid",
        ) from None


def is_within(client_address: str, networks: Sequence[str]) -> bool:
    """Whether the address is in one of the networks; an empty list allows every address."""
    if not networks:
        return True
    if not client_address:
        return False
    address = ip_address(client_address)
    return any(address in _network(network) for network in networks)


# Parsing takes longer than everything else, and calls of a hook bring the same networks.
_network = lru_cache(maxsize=1024)(ip_network)
