"""A client of api/client.thrift with nothing but python3-thrift, for the integration tests."""

import os
import sys

sys.path.insert(0, os.environ["FJORD_GENERATED_PYTHON"])

from fjord_api.ttypes import StatusCode  # noqa: E402
from fjord_client import ClientService  # noqa: E402
from thrift.protocol import TBinaryProtocol, TCompactProtocol  # noqa: E402
from thrift.transport import TSocket, TTransport  # noqa: E402


class Connection:
    """One connection to one distributor. Use it in a with statement."""

    def __init__(self, address, protocol=TCompactProtocol.TCompactProtocol, timeout_s=60):
        host, port = address.rsplit(":", 1)
        socket = TSocket.TSocket(host, int(port))
        socket.setTimeout(1000 * timeout_s)
        self.transport = TTransport.TFramedTransport(socket)
        self.transport.open()
        self.calls = ClientService.Client(protocol(self.transport))

    def __enter__(self):
        return self.calls

    def __exit__(self, *_):
        self.transport.close()


def binary(address):
    return Connection(address, TBinaryProtocol.TBinaryProtocol)


def name_of(status):
    """Returns the name of a status code; a missing status is not OK."""
    return "MISSING" if status is None else StatusCode._VALUES_TO_NAMES.get(status.code, str(status.code))


def must(reply):
    """Returns the reply, which has to be OK."""
    assert name_of(reply.status) == "OK", reply.status
    return reply
