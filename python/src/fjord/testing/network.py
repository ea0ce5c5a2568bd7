"""Hosts in network namespaces, joined by a switch in this process, whose links can be cut, slow, one-way and lossy.

Each host is a namespace with a TUN device. The switch reads the packets that a host sends and passes them to the device of
the host that they are for, at once, later or never, as the link between the two is set. The machine's own network is not
touched, the kernel needs no netem, and everything is gone when the process ends. It needs root and /dev/net/tun.

This file imports nothing of the package, so that programs without the package can load it by its path.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, TypeVar

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFMTU = 0x8914, 0x8916, 0x891C, 0x8922
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_DEVICE = b"fjord0"
_MTU = 9000
_WAKE_SECONDS = 0.1


class PartitionNotPermitted(RuntimeError):
    """This machine does not permit network namespaces, or the cluster was made without them."""


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _check(returned: int) -> None:
    if returned != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def on_own_thread(work: Callable[[], T]) -> T:
    """Runs `work` on a thread of its own, which ends with it, and returns its result.

    >>> from fjord.testing.network import on_own_thread
    >>> on_own_thread(lambda: 1 + 1)
    2
    """
    results: List[T] = []
    errors: List[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _address_request(address: str) -> bytes:
    return struct.pack("16sHH4s8x", _DEVICE, socket.AF_INET, 0, socket.inet_aton(address))


def _make_host(address: str, mtu: int) -> Tuple[int, int]:
    """Moves this thread into a new namespace with a TUN device. Returns the descriptors of device and namespace."""
    _check(_libc().unshare(_CLONE_NEWNET))
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", _DEVICE, _IFF_TUN | _IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFADDR, _address_request(address))
        fcntl.ioctl(control, _SIOCSIFNETMASK, _address_request("255.255.255.0"))
        fcntl.ioctl(control, _SIOCSIFMTU, struct.pack("16si20x", _DEVICE, mtu))
        for name in (b"lo", _DEVICE):
            fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name, _IFF_UP | _IFF_RUNNING))
    os.set_blocking(device, False)
    return device, os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Host:
    """One host: a network namespace with an address."""

    def __init__(self, name: str, address: str, mtu: int) -> None:
        self.name = name
        self.address = address
        try:
            self.device, self._namespace = on_own_thread(lambda: _make_host(address, mtu))
        except OSError as error:
            raise PartitionNotPermitted(
                f"a host in a network namespace needs root and /dev/net/tun, and this machine says: {error}"
            ) from error

    def enter(self) -> None:
        """Moves the calling thread, or a child process before its program starts, to this host.

        >>> with Network(["a"]) as network:
        ...     on_own_thread(network.hosts["a"].enter)
        """
        _check(_libc().setns(self._namespace, _CLONE_NEWNET))

    def run(self, work: Callable[[], T]) -> T:
        """Runs `work` on this host. Threads that it starts stay there.

        >>> with Network(["a"]) as network:
        ...     network.hosts["a"].run(lambda: 1 + 1)
        2
        """

        def there() -> T:
            self.enter()
            return work()

        return on_own_thread(there)

    def close(self) -> None:
        """Removes the host. Network.close() does it for all.

        >>> Network(["a"]).close()
        """
        os.close(self.device)
        os.close(self._namespace)


class Link(NamedTuple):
    """One direction between two hosts. Delays are in seconds."""

    cut: bool = False
    delay: float = 0.0
    jitter: float = 0.0
    """A random part of this is added to the delay."""
    loss: float = 0.0
    """The part of the packets that is lost, 0 to 1."""


_GOOD = Link()


class Network:
    """Hosts that reach each other as their links permit; all links are good at first. Use it in a with statement, or close() it.

    `seed` is for lost packets and delays. Errors: PartitionNotPermitted.
    """

    def __init__(self, names: Iterable[str], seed: int = 0, mtu: int = _MTU) -> None:
        if not sys.platform.startswith("linux"):
            raise PartitionNotPermitted(f"network namespaces are of Linux, and this is {sys.platform}")
        self.hosts: Dict[str, Host] = {}
        self.lost = 0
        self.delayed = 0
        self.passed = 0
        """Packets on good links."""
        self.passed_bytes = 0
        """Bytes on good links, IP headers included."""
        self._random = random.Random(seed)
        self._links: Dict[Tuple[str, str], Link] = {}
        self._ending = threading.Event()
        try:
            for index, name in enumerate(names, 1):
                self.hosts[name] = Host(name, f"10.77.0.{index}", mtu)
        except BaseException:
            self._close_hosts()
            raise
        self._switch_thread = threading.Thread(target=self._switch, name="fjord-testing-switch", daemon=True)
        self._switch_thread.start()

    def set(self, source: str, target: str, link: Optional[Link]) -> None:
        """Sets the link from one host to another; None: good again. Any thread may call it.

        >>> with Network(["a", "b"]) as network:
        ...     network.set("a", "b", Link(delay=0.01, loss=0.1))
        """
        self._links[source, target] = link or _GOOD

    def cut(self, one: str, other: str) -> None:
        """Drops all packets between two hosts, in both directions.

        >>> with Network(["a", "b"]) as network:
        ...     network.cut("a", "b")
        """
        self.set(one, other, Link(cut=True))
        self.set(other, one, Link(cut=True))

    def heal(self) -> None:
        """Makes all links good.

        >>> with Network(["a", "b"]) as network:
        ...     network.cut("a", "b")
        ...     network.heal()
        """
        self._links.clear()

    def __enter__(self) -> "Network":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes the hosts. The end of a with statement calls it.

        >>> Network(["a", "b"]).close()
        """
        self._ending.set()
        self._switch_thread.join()
        self._close_hosts()

    def _close_hosts(self) -> None:
        for host in self.hosts.values():
            host.close()
        self.hosts.clear()

    def _switch(self) -> None:
        by_device = {host.device: host.name for host in self.hosts.values()}
        by_address = {socket.inet_aton(host.address): host for host in self.hosts.values()}
        poller = select.poll()
        for device in by_device:
            poller.register(device, select.POLLIN)
        waiting = _Waiting()
        while not self._ending.is_set():
            for device, _ in poller.poll(waiting.milliseconds()):
                for packet in _packets(device):
                    target = by_address.get(packet[16:20])
                    if packet[0] >> 4 == 4 and target is not None:
                        self._pass_on(packet, self._links.get((by_device[device], target.name), _GOOD), target.device, waiting)
            waiting.deliver()

    def _pass_on(self, packet: bytes, link: Link, device: int, waiting: "_Waiting") -> None:
        if link.cut or (link.loss and self._random.random() < link.loss):
            self.lost += 1
        elif link.delay:
            self.delayed += 1
            waiting.add(time.monotonic() + link.delay + self._random.random() * link.jitter, device, packet)
        else:
            self.passed += 1
            self.passed_bytes += len(packet)
            _deliver(device, packet)


class _Waiting:
    """Packets that are late."""

    def __init__(self) -> None:
        self._packets: List[Tuple[float, int, int, bytes]] = []
        self._number = 0

    def add(self, when: float, device: int, packet: bytes) -> None:
        self._number += 1  # Packets of one moment keep their order.
        heapq.heappush(self._packets, (when, self._number, device, packet))

    def milliseconds(self) -> float:
        """Returns how long the switch may sleep."""
        left = self._packets[0][0] - time.monotonic() if self._packets else _WAKE_SECONDS
        return min(_WAKE_SECONDS, max(0.0, left)) * 1000

    def deliver(self) -> None:
        now = time.monotonic()
        while self._packets and self._packets[0][0] <= now:
            _, _, device, packet = heapq.heappop(self._packets)
            _deliver(device, packet)


def _packets(device: int) -> Iterator[bytes]:
    for _ in range(64):
        try:
            yield os.read(device, 65536)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return
            raise


def _deliver(device: int, packet: bytes) -> None:
    try:
        os.write(device, packet)
    except OSError as error:
        # The queue of the host is full: the packet is lost, as on a real network.
        if error.errno not in (errno.EAGAIN, errno.ENOBUFS):
            raise
