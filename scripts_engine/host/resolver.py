"""Resolves host names, within a run's deadline and an organisation's share of the threads."""

import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from core.metrics.catalogue import HTTP_LOOK_UPS_IN_USE
from scripts_engine.host.deadline import remaining
from scripts_engine.host.public_addresses import IPAddress, without_zone
from scripts_engine.sandbox.parent.observer import PoolObserver
from scripts_engine.sandbox.parent.slots import FairSlots, NoSlot

MAX_LOOK_UPS = 32
MAX_LOOK_UPS_PER_TENANT = 4

AddressInfo = Sequence[tuple[Any, ...]]
LookUp = Callable[..., AddressInfo]


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
