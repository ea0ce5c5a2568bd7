"""Hosts in network namespaces, joined by a switch in this process, whose links can be cut.

Each host is a namespace with a TUN device. The switch reads the packets that a host sends and passes them to the device of
the host that they are for. The machine's own network is not touched, and everything is gone when the process ends.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import sys
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Set, Tuple, TypeVar

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
    """Runs `work` on a thread of its own, which ends with it, and returns its result."""
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


def _make_host(address: str) -> Tuple[int, int]:
    """Moves this thread into a new namespace with a TUN device. Returns the descriptors of device and namespace."""
    _check(_libc().unshare(_CLONE_NEWNET))
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", _DEVICE, _IFF_TUN | _IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFADDR, _address_request(address))
        fcntl.ioctl(control, _SIOCSIFNETMASK, _address_request("255.255.255.0"))
        fcntl.ioctl(control, _SIOCSIFMTU, struct.pack("16si20x", _DEVICE, _MTU))
        for name in (b"lo", _DEVICE):
            fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name, _IFF_UP | _IFF_RUNNING))
    os.set_blocking(device, False)
    return device, os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Host:
    """One host: a network namespace with an address."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        try:
            self.device, self._namespace = on_own_thread(lambda: _make_host(address))
        except OSError as error:
            raise PartitionNotPermitted(
                f"a host in a network namespace needs root and /dev/net/tun, and this machine says: {error}"
            ) from error

    def enter(self) -> None:
        """Moves the calling thread, or a child process before its program starts, to this host."""
        _check(_libc().setns(self._namespace, _CLONE_NEWNET))

    def run(self, work: Callable[[], T]) -> T:
        """Runs `work` on this host. Threads that it starts stay there."""

        def there() -> T:
            self.enter()
            return work()

        return on_own_thread(there)

    def close(self) -> None:
        os.close(self.device)
        os.close(self._namespace)


class Network:
    """Hosts that reach each other until cut() separates some of them."""

    def __init__(self, names: Iterable[str]) -> None:
        if not sys.platform.startswith("linux"):
            raise PartitionNotPermitted(f"network namespaces are of Linux, and this is {sys.platform}")
        self.hosts: Dict[str, Host] = {}
        self._cut: Set[Tuple[str, str]] = set()
        self._ending = threading.Event()
        try:
            for index, name in enumerate(names, 1):
                self.hosts[name] = Host(name, f"10.77.0.{index}")
        except BaseException:
            self._close_hosts()
            raise
        self._switch_thread = threading.Thread(target=self._switch, name="fjord-testing-switch", daemon=True)
        self._switch_thread.start()

    def cut(self, one: str, other: str) -> None:
        """Drops all packets between two hosts, in both directions."""
        self._cut |= {(one, other), (other, one)}

    def heal(self) -> None:
        self._cut = set()

    def close(self) -> None:
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
        while not self._ending.is_set():
            for device, _ in poller.poll(_WAKE_SECONDS * 1000):
                for packet in _packets(device):
                    target = by_address.get(packet[16:20])
                    if packet[0] >> 4 != 4 or target is None or (by_device[device], target.name) in self._cut:
                        continue
                    _deliver(target.device, packet)


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
