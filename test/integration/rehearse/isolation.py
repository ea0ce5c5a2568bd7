"""A network that holds nothing but its own loopback, for the copy of a cluster.

The records of a cluster name the addresses of its nodes, and its nodes believe the records. A copy on other ports would
therefore talk to the original. In a network namespace the copy has the same addresses, and reaches nothing else.
"""

import ctypes
import fcntl
import os
import socket
import struct

import network

_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP, _IFF_RUNNING = 0x1, 0x40


def _make():
    """Moves this thread into a new network with its loopback up. Returns a descriptor of the network."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _IFF_UP | _IFF_RUNNING))
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Isolation:
    """A network of its own. Errors: OSError if this machine does not permit network namespaces."""

    def __init__(self):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = network.on_own_thread(_make)

    def enter(self):
        """Moves the calling thread, or a child process before its program starts, into this network."""
        if self._libc.setns(self._descriptor, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def run(self, work):
        """Runs `work` in this network, and returns its result."""
        def there():
            self.enter()
            return work()
        return network.on_own_thread(there)

    def close(self):
        os.close(self._descriptor)
