#!/usr/bin/python3
"""A client of another language against a running cluster, with nothing but Thrift and api/fjord.thrift.

Usage: client_check.py --gen-dir <output of `thrift --gen py -out`> HOST:PORT   (of any distributor)

Deploys a schema, puts a document as JSON, reads it back, removes it; changes one on a condition of its version, and reads
it from each replica; then sends garbage and a frame that is too long on connections of their own and sees that calls on
another connection still work. Exits with 0 if all of that holds.
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
    """Returns a client of the distributor at `address` over framed transport."""
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
    """Sends each operation to the distributor that the cluster names, and retries transient errors."""

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

    def execute(self, operation, features=()):
        """Returns the result of one operation. The client does not compute placement: it asks one distributor after the
        other.

        `features` are the fields of the operation that a server must know; one that does not know them refuses it.
        """
        from fjord_api.ttypes import Execute, ExecuteStrict, GetClusterInfo, StatusCode

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
                    batch = Execute(state_version=version, operations=[operation])
                    if features:
                        strict = self.client(address).executeStrict(ExecuteStrict(batch=batch, features=list(features)))
                        require(strict.status.code != StatusCode.NOT_IMPLEMENTED, strict.status.message)
                        reply = strict.batch
                    else:
                        reply = self.client(address).execute(batch)
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
        # The schema reaches every node with a short delay.
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


def check_versions(address, protocol_name, deadline):
    """The optimistic loop: read, change, and write if no other client has written meanwhile; otherwise repeat."""
    from fjord_api.ttypes import Execute, ExecuteStrict, Operation, OperationKind, ShowBucket, StatusCode

    cluster = Cluster(address, protocol_name, deadline)
    name = "id:check:pycheck::versions"

    def put(year, version):
        # 0 is a version: that of a missing document. None means any version.
        return cluster.execute(Operation(kind=OperationKind.PUT, id=name, json=json.dumps({"year": year}),
                                         required_version=version), ["required_version"])

    try:
        cluster.execute(Operation(kind=OperationKind.REMOVE, id=name))
        first = put(1, 0)
        require(first.status.code == StatusCode.OK, "put with required_version 0: %s" % first.status)
        late = put(2, 0)
        require(late.status.code == StatusCode.TEST_AND_SET_FAILED, "put on a version that is gone: %s" % late.status)
        require(late.version_us == first.timestamp_us, "the error tells another version than the one that is there")
        version = late.version_us
        for year in (2, 3):
            done = put(year, version)
            require(done.status.code == StatusCode.OK, "put on the version that is there: %s" % done.status)
            version = done.timestamp_us
        for kind, json_text in ((OperationKind.UPDATE, json.dumps({"year": {"assign": 9}})), (OperationKind.REMOVE, "")):
            stale = cluster.execute(Operation(kind=kind, id=name, json=json_text, required_version=first.timestamp_us),
                                    ["required_version"])
            require(stale.status.code == StatusCode.TEST_AND_SET_FAILED and stale.version_us == version, "%s" % stale)

        view = cluster.client(address).showBucket(ShowBucket(id=name))
        require(view.status.code == StatusCode.OK and len(view.buckets) == 1, "showBucket: %s" % view.status)
        require(len(view.buckets[0].replica_set.nodes) == 2, "two replicas: %s" % view)
        for replica in view.buckets[0].replicas:
            require(replica.timestamp_us == version and replica.status.code == StatusCode.OK, "a replica: %s" % replica)
            read = cluster.execute(Operation(kind=OperationKind.GET, id=name, want_json=True, node=replica.node), ["node"])
            require(read.status.code == StatusCode.OK and read.timestamp_us == version, "of one replica: %s" % read)
            require(json.loads(read.json)["fields"] == {"year": 3}, "storage.%d has %s" % (replica.node, read.json))

        unknown = ExecuteStrict(batch=Execute(operations=[Operation(kind=OperationKind.REMOVE, id=name)]),
                                features=["teleport"])
        refused = cluster.client(address).executeStrict(unknown)
        require(refused.status.code == StatusCode.NOT_IMPLEMENTED, "an unknown feature: %s" % refused.status)
        still = cluster.execute(Operation(kind=OperationKind.GET, id=name))
        require(still.timestamp_us == version, "a batch that was refused has removed the document")
    finally:
        cluster.close()


def expect_closed(address, data, what):
    """Sends bytes that are no valid call; the server must close this connection."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as sock:
        try:
            sock.sendall(data)
            while sock.recv(4096):
                pass
        except socket.timeout:
            raise Failure("%s: the connection was not closed" % what)
        except ConnectionError:
            pass  # A reset closes it too.


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
        # A call that the server does not know leaves the connection open.
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
            check_versions(arguments.address, protocol_name, deadline)
            print("versions over the %s protocol: ok" % protocol_name)
        check_hostile(arguments.address)
        print("hostile bytes: ok")
    except Failure as failure:
        print("FAILED: %s" % failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
