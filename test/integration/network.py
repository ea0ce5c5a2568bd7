"""Hosts in network namespaces, joined by a switch in this process, whose links can be cut, slow, one-way and lossy.

Each host is a namespace with a TUN device. The packets that a host sends are read from the device's descriptor here,
and the switch passes them on, delays or drops them, as set for the link between the two hosts. So the machine's own
network is not touched, the kernel needs no netem, and everything is gone when the descriptors are closed, that is, when
the test ends in any way. Needs /dev/net/tun and the right to make namespaces (root).
"""

import array
import ctypes
import errno
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import threading
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFMTU = 0x8914, 0x8916, 0x891C, 0x8922
IFF_UP, IFF_RUNNING = 0x1, 0x40
DEVICE = b"fjord0"
MTU = 9000
LIBC = ctypes.CDLL(None, use_errno=True)


class NotPermitted(Exception):
    """This machine does not permit namespaces or devices."""


def call(function, *arguments):
    if function(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def address_request(name, address):
    return struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(address))


def make_host(address, mtu):
    """Makes a namespace with a TUN device that has the address, in its own process. Returns the device's descriptor."""
    call(LIBC.unshare, CLONE_NEWNET)
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE, IFF_TUN | IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFADDR, address_request(DEVICE, address))
        fcntl.ioctl(control, SIOCSIFNETMASK, address_request(DEVICE, "255.255.255.0"))
        fcntl.ioctl(control, SIOCSIFMTU, struct.pack("16si20x", DEVICE, mtu))
        for name in (b"lo", DEVICE):
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", name, IFF_UP | IFF_RUNNING))
    return device


class Host:
    def __init__(self, name, address, mtu):
        self.name = name
        self.address = address
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            code = 0
            try:
                device = make_host(address, mtu)
                namespace = os.open("/proc/self/ns/net", os.O_RDONLY)
                theirs.sendmsg([b"ok"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [device, namespace]))])
            except OSError as error:
                theirs.send(str(error).encode())
                code = 1
            os._exit(code)
        theirs.close()
        text, control, _, _ = ours.recvmsg(1000, socket.CMSG_SPACE(8))
        ours.close()
        os.waitpid(child, 0)
        if not control:
            raise NotPermitted(f"a host in a network namespace: {text.decode()}")
        self.device, self.namespace = struct.unpack("ii", control[0][2][:8])

    def enter(self):
        """Called in a child process before it runs a program: moves it to this host."""
        call(LIBC.setns, self.namespace, CLONE_NEWNET)

    def close(self):
        os.close(self.device)
        os.close(self.namespace)


class Link:
    """One direction between two hosts. Delays in seconds."""

    def __init__(self, cut=False, delay=0.0, jitter=0.0, loss=0.0):
        self.cut, self.delay, self.jitter, self.loss = cut, delay, jitter, loss


GOOD = Link()


class Network:
    """A network of hosts; use it in a with statement. All links are good at first."""

    def __init__(self, names, seed, mtu=MTU):
        self.random = random.Random(seed)
        self.hosts = {}
        self.links = {}  # (From, to) -> Link, for links with faults.
        self.lost = 0
        self.delayed = 0
        self.passed = 0  # Packets on good links.
        self.passed_bytes = 0  # Bytes, IP headers included.
        self.ending = threading.Event()
        try:
            for index, name in enumerate(names, 1):
                self.hosts[name] = Host(name, f"10.77.0.{index}", mtu)
        except BaseException:
            self.close()
            raise
        self.thread = threading.Thread(target=self.switch, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        self.close()

    def close(self):
        for host in self.hosts.values():
            host.close()

    def set(self, source, target, link):
        """Sets the link from one host to another; None: good again."""
        if link is None:
            self.links.pop((source, target), None)
        else:
            self.links[source, target] = link

    def switch(self):
        by_device = {host.device: host.name for host in self.hosts.values()}
        by_address = {socket.inet_aton(host.address): host for host in self.hosts.values()}
        poller = select.poll()
        for device in by_device:
            os.set_blocking(device, False)
            poller.register(device, select.POLLIN)
        waiting = []  # (When, number, device, packet).
        number = 0
        while not self.ending.is_set():
            timeout = 0.1
            if waiting:
                timeout = min(timeout, max(0.0, waiting[0][0] - time.monotonic()))
            for device, _ in poller.poll(timeout * 1000):
                for packet in self.packets(device):
                    target = by_address.get(packet[16:20])
                    if packet[0] >> 4 != 4 or target is None:
                        continue
                    link = self.links.get((by_device[device], target.name), GOOD)
                    if link.cut or (link.loss and self.random.random() < link.loss):
                        self.lost += 1
                    elif link.delay:
                        self.delayed += 1
                        number += 1
                        when = time.monotonic() + link.delay + self.random.random() * link.jitter
                        heapq.heappush(waiting, (when, number, target.device, packet))
                    else:
                        self.passed += 1
                        self.passed_bytes += len(packet)
                        self.deliver(target.device, packet)
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, _, device, packet = heapq.heappop(waiting)
                self.deliver(device, packet)

    @staticmethod
    def packets(device):
        for _ in range(64):
            try:
                yield os.read(device, 65536)
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    return
                raise

    @staticmethod
    def deliver(device, packet):
        try:
            os.write(device, packet)
        except OSError as error:
            # The queue of the host is full: the packet is lost, as on a real network.
            if error.errno not in (errno.EAGAIN, errno.ENOBUFS):
                raise
