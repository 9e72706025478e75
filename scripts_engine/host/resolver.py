"""Host names and addresses that scripts may connect to: resolved in time, and only public ones."""

import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from scripts_engine.host.capabilities import remaining
from scripts_engine.metrics import HTTP_LOOK_UPS_IN_USE
from scripts_engine.sandbox import FairSlots, NoSlot, PoolObserver

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
# IANA's IPv4 special-purpose registry (RFC 6890), and other blocks that may lead to internal
# services. Listed in full, because ``is_global`` differs between Python versions. Includes blocks
# that the registry calls globally reachable: no website has such an address, but the nearest router
# or relay may answer for it.
_NOT_PUBLIC_IPV4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host on this network
        "10.0.0.0/8",  # private use
        "100.64.0.0/10",  # shared address space (carrier-grade NAT)
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure platform services, reachable from its virtual machines
        "169.254.0.0/16",  # link-local: cloud metadata
        "172.16.0.0/12",  # private use
        "192.0.0.0/24",  # IETF protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # multicast tunnels (AMT)
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private use
        "192.175.48.0/24",  # AS112, direct delegation
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, limited broadcast
    )
)
# In IPv6, global unicast is one block and everything outside it is not public: for example
# ::/8 (loopback, IPv4-compatible and translated, 64:ff9b:1::/48), 100::/64, 5f00::/16 (SRv6),
# fc00::/7, fe80::/10, fec0::/10 and ff00::/8.
_GLOBAL_UNICAST_IPV6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_IPV6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # IETF protocol assignments: Teredo, benchmarking, ORCHID, AMT, …
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries an IPv4 address
        "2620:4f:8000::/48",  # AS112, direct delegation
        "3fff::/20",  # documentation
    )
)
# NAT64 (RFC 6052) translates to the IPv4 address in the last 32 bits.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# The upper half of an ISATAP interface identifier (RFC 5214), which carries an IPv4 address. The
# mask ignores the universal/local bit.
_ISATAP = 0x0000_5EFE
_ISATAP_MASK = 0xFDFF_FFFF
MAX_LOOK_UPS = 32
MAX_LOOK_UPS_PER_TENANT = 4
AddressInfo = Sequence[tuple[Any, ...]]
LookUp = Callable[..., AddressInfo]


def without_zone(text: str) -> IPAddress:
    """Parses an address and drops its zone, if any (``fe80::1%eth0``)."""
    return ipaddress.ip_address(text.partition("%")[0])


def is_allowed(address: IPAddress, allowed_networks: Sequence[IPNetwork]) -> bool:
    """Whether the address is public, or in a network that the operator allows.

    An IPv4-mapped address counts as the IPv4 address to which the system connects. A NAT64 address
    is allowed by its own network, or if the IPv4 address that it carries is allowed.
    """
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in allowed_networks):
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return _is_public_ipv4(address)
    if address in _NAT64:
        return is_allowed(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF), allowed_networks)
    return _is_public_ipv6(address)


def _is_public_ipv4(address: ipaddress.IPv4Address) -> bool:
    return address.is_global and not any(address in network for network in _NOT_PUBLIC_IPV4)


def _is_public_ipv6(address: ipaddress.IPv6Address) -> bool:
    return (
        address.is_global
        and address in _GLOBAL_UNICAST_IPV6
        and not any(address in network for network in _NOT_PUBLIC_IPV6)
        and (int(address) >> 32) & _ISATAP_MASK != _ISATAP
    )


class _LookUpMetrics(PoolObserver):
    def slots_in_use(self, count: int) -> None:
        HTTP_LOOK_UPS_IN_USE.set(count)


class Resolver:
    """Resolves names in threads, because ``getaddrinfo`` takes no timeout.

    A look-up holds its slot until its thread ends, even if the run has stopped waiting. Slots are
    limited per organisation, so an unresponsive name server of one leaves threads to the others.
    """

    def __init__(
        self,
        look_up: LookUp = socket.getaddrinfo,
        size: int = MAX_LOOK_UPS,
        tenant_share: int = MAX_LOOK_UPS_PER_TENANT,
    ) -> None:
        self._look_up = look_up
        self._slots = FairSlots(size, tenant_share, _LookUpMetrics())

    @property
    def busy(self) -> int:
        """Number of look-ups in progress."""
        return self._slots.busy

    def resolve(self, host: str, port: int, *, tenant: str, ends_at: float) -> list[IPAddress]:
        """The addresses of a name; a literal address needs no look-up.

        Raises ``TimeoutError``, or another ``OSError`` such as ``socket.gaierror`` for an unknown
        name.
        """
        # Python passes bytes on as they are, but encodes text with its IDNA codec.
        name = host.encode("ascii")
        try:
            # Accepts every spelling of an address that the system does, without a name server.
            answers: AddressInfo = socket.getaddrinfo(
                name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except socket.gaierror:
            answers = self._look_up_in_thread(name, port, tenant, ends_at)
        return list(dict.fromkeys(without_zone(address[0]) for *_, address in answers))

    def _look_up_in_thread(
        self, name: bytes, port: int, tenant: str, ends_at: float
    ) -> AddressInfo:
        try:
            self._slots.acquire(tenant, remaining(ends_at))
        except NoSlot:
            raise TimeoutError from None
        answer: Future[AddressInfo] = Future()
        # Not an executor: the interpreter waits for its threads at exit.
        thread = threading.Thread(
            target=self._run_look_up,
            args=[answer, name, port, tenant],
            name="resolver",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError as error:
            self._slots.release(tenant)
            raise OSError("no thread available for a look-up") from error
        return answer.result(timeout=remaining(ends_at))

    def _run_look_up(
        self, answer: Future[AddressInfo], name: bytes, port: int, tenant: str
    ) -> None:
        try:
            found = self._look_up(name, port, type=socket.SOCK_STREAM)
        except BaseException as error:  # noqa: BLE001
            # The waiting run raises it.
            self._slots.release(tenant)
            answer.set_exception(error)
        else:
            self._slots.release(tenant)
            answer.set_result(found)


resolver = Resolver()
