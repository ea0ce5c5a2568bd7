#!/usr/bin/python3
"""A client of another language against a running cluster, with nothing but Thrift and api/fjord.thrift.

Usage: client_check.py --gen-dir <output of `thrift --gen py -out`> HOST:PORT   (of any distributor)

Deploys a schema, puts a document as JSON, reads it back, removes it; then sends garbage and a frame that is too long on
connections of their own and sees that calls on another connection still work. Exits with 0 if all of that holds.
"""
import argparse
import json
import os
import socket
import struct
import sys
import time

SCHEMA = """search pycheck {
  document pycheck {
    field title type string { indexing: summary | header }
    field year type int { indexing: summary | header }
    field text type string { indexing: summary | body }
  }
}
"""
DOCUMENT_ID = "id:check:pycheck::one"
FIELDS = {"title": "Fjord \u00e6\u00f8\u00e5", "year": 2007, "text": "long enough " * 50}


class Failure(Exception):
    pass


def require(condition, message):
    if not condition:
        raise Failure(message)


def connect(address, protocol_name):
    """A client of the distributor at `address` over framed transport."""
    from fjord_api import DistributorService
    from thrift.protocol import TBinaryProtocol, TCompactProtocol
    from thrift.transport import TSocket, TTransport

    host, port = address.rsplit(":", 1)
    sock = TSocket.TSocket(host, int(port))
    sock.setTimeout(10000)
    transport = TTransport.TFramedTransport(sock)
    if protocol_name == "binary":
        protocol = TBinaryProtocol.TBinaryProtocol(transport)
    else:
        protocol = TCompactProtocol.TCompactProtocol(transport)
    transport.open()
    return DistributorService.Client(protocol), transport


class Cluster:
    """Sends each operation to the distributor that the cluster names, and repeats what is transient."""

    def __init__(self, address, protocol_name, deadline):
        self.first = address
        self.protocol_name = protocol_name
        self.deadline = deadline
        self.clients = {}

    def client(self, address):
        if address not in self.clients:
            self.clients[address] = connect(address, self.protocol_name)
        return self.clients[address][0]

    def close(self):
        for _, transport in self.clients.values():
            transport.close()

    def execute(self, operation):
        """The result of one operation. The client does not compute placement: it asks one distributor after the other."""
        from fjord_api.ttypes import Execute, GetClusterInfo, StatusCode

        transient = (StatusCode.BUSY, StatusCode.WRONG_DISTRIBUTION, StatusCode.UNAVAILABLE, StatusCode.NOT_READY)
        while True:
            info = self.client(self.first).getClusterInfo(GetClusterInfo()).info
            addresses = [self.first]
            version = 0
            if info is not None:
                addresses += [a for a in info.distributor_addresses if a]
                version = info.state_version
            result = None
            for address in dict.fromkeys(addresses):
                try:
                    reply = self.client(address).execute(Execute(state_version=version, operations=[operation]))
                except OSError:
                    self.clients.pop(address, None)
                    continue
                if reply.status is None or reply.status.code != StatusCode.OK:
                    continue
                require(len(reply.results) == 1, "one operation must have one result, not %d" % len(reply.results))
                result = reply.results[0]
                if result.status.code not in transient:
                    return result
            if time.monotonic() > self.deadline:
                raise Failure("operation on %s did not end: %s" % (operation.id, result and result.status))
            time.sleep(0.1)


def check_document(address, protocol_name, deadline):
    from fjord_api.ttypes import DeploySchemas, Operation, OperationKind, StatusCode

    cluster = Cluster(address, protocol_name, deadline)
    try:
        while True:
            deployed = cluster.client(address).deploySchemas(DeploySchemas(schemas=[SCHEMA]))
            if deployed.status.code == StatusCode.OK:
                break
            require(time.monotonic() < deadline, "deploySchemas: %s" % deployed.status)
            time.sleep(0.2)
        require(deployed.schema_version > 0, "deploySchemas gave no version")

        def put():
            return cluster.execute(Operation(kind=OperationKind.PUT, id=DOCUMENT_ID, json=json.dumps(FIELDS)))

        result = put()
        # The schema takes a moment to reach every node.
        while result.status.code == StatusCode.UNKNOWN_TYPE and time.monotonic() < deadline:
            time.sleep(0.2)
            result = put()
        require(result.status.code == StatusCode.OK, "put: %s" % result.status)
        require(result.timestamp_us > 0, "put gave no timestamp")

        read = cluster.execute(Operation(kind=OperationKind.GET, id=DOCUMENT_ID, want_json=True))
        require(read.status.code == StatusCode.OK, "get: %s" % read.status)
        document = json.loads(read.json)
        require(document.get("put") == DOCUMENT_ID, "the document has another id: %s" % document)
        require(document.get("fields") == FIELDS, "the document came back different: %s" % document)
        require(read.timestamp_us == result.timestamp_us, "the version read is not the one written")

        removed = cluster.execute(Operation(kind=OperationKind.REMOVE, id=DOCUMENT_ID))
        require(removed.status.code == StatusCode.OK and removed.existed, "remove: %s" % removed)
        gone = cluster.execute(Operation(kind=OperationKind.GET, id=DOCUMENT_ID, want_json=True))
        require(gone.status.code == StatusCode.NOT_FOUND, "the removed document is still there: %s" % gone.status)
        broken = cluster.execute(Operation(kind=OperationKind.GET, id="not an id"))
        require(broken.status.code == StatusCode.INVALID_ID, "a malformed id: %s" % broken.status)
    finally:
        cluster.close()


def expect_closed(address, data, what):
    """Sends bytes that are no call; the server must close this connection."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as sock:
        try:
            sock.sendall(data)
            while sock.recv(4096):
                pass
        except socket.timeout:
            raise Failure("%s: the connection was not closed" % what)
        except ConnectionError:
            pass  # a reset closes it too


def check_hostile(address):
    from fjord_api.ttypes import GetClusterInfo, StatusCode
    from thrift.Thrift import TApplicationException

    survivor, transport = connect(address, "compact")
    try:
        require(survivor.getClusterInfo(GetClusterInfo()).status.code == StatusCode.OK, "getClusterInfo failed")
        expect_closed(address, struct.pack(">I", 0x7FFFFFFF) + b"x" * 1000, "a frame that is too long")
        expect_closed(address, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "an HTTP request")
        expect_closed(address, struct.pack(">I", 64) + os.urandom(64), "a frame of random bytes")
        expect_closed(address, struct.pack(">I", 4) + b"\x82\x21\x01\x7f", "a frame that ends early")
        require(survivor.getClusterInfo(GetClusterInfo()).status.code == StatusCode.OK, "others were disturbed")
        # A call that the server does not know leaves the connection as it is.
        survivor._oprot.writeMessageBegin("dance", 1, 99)
        survivor._oprot.writeStructBegin("dance_args")
        survivor._oprot.writeFieldStop()
        survivor._oprot.writeStructEnd()
        survivor._oprot.writeMessageEnd()
        survivor._oprot.trans.flush()
        _, kind, seqid = survivor._iprot.readMessageBegin()
        require(kind == 3 and seqid == 99, "an unknown call must be answered with an exception")
        error = TApplicationException()
        error.read(survivor._iprot)
        survivor._iprot.readMessageEnd()
        require(error.type == TApplicationException.UNKNOWN_METHOD, "an unknown call gave exception %s" % error.type)
        require(survivor.getClusterInfo(GetClusterInfo()).status.code == StatusCode.OK, "the unknown call broke the connection")
    finally:
        transport.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", help="HOST:PORT of a distributor")
    parser.add_argument("--gen-dir", required=True, help="folder that holds the generated package fjord_api")
    parser.add_argument("--timeout", type=float, default=60, help="seconds")
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.gen_dir)
    deadline = time.monotonic() + arguments.timeout
    try:
        for protocol_name in ("compact", "binary"):
            check_document(arguments.address, protocol_name, deadline)
            print("documents over the %s protocol: ok" % protocol_name)
        check_hostile(arguments.address)
        print("hostile bytes: ok")
    except Failure as failure:
        print("FAILED: %s" % failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
