"""A cluster of real fjordd processes on this machine, for one test or many."""

from __future__ import annotations

import atexit
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, TextIO, Union

from fjord.errors import WrongType
from fjord.testing.network import Network, PartitionNotPermitted
from fjord.testing.processes import find_program, start_process, wait_for_end

if TYPE_CHECKING:
    import types

    import fjord

__all__ = ["ClusterError", "LocalCluster", "PartitionNotPermitted"]

Node = Union[str, int]
Schema = Union[str, "os.PathLike[str]"]

_ATTEMPTS = 4
_LOG_TAIL_BYTES = 2000
_STOP_SECONDS = 10.0
_CHECK_SECONDS = 0.005
_PROBE_SECONDS = 2.0
# Below the range from which the system takes ports of outgoing connections.
_PORTS = range(20000, 32000)


class ClusterError(RuntimeError):
    """A node has ended, or the cluster did not become ready in time. The message has the ends of the logs."""


class LocalCluster:
    """A cluster of `storage` storage nodes, `distributors` distributors and a fleet controller on loopback.

    >>> with LocalCluster(storage=3, schemas="document item { field price type int {} }") as mine:
    ...     written = mine.client().put("id:shop:item::1", {"price": 3})
    ...     mine.kill(1)

    A node is named as in the configuration, "storage.1", or by the number of a storage node, 1. The processes end with this
    process, however it ends. The data are in a temporary folder, which close() removes, unless `directory` names one.

    `schemas`: document types to deploy, as texts or paths of .sd files. `settings`: sections of the configuration file, such
    as {"storage_options": {"durability": "sync"}}. `network`: give each node a network namespace, so that partition() works;
    it needs root, and PartitionNotPermitted says what is missing. `keep_logs`: print the ends of the logs when the with
    statement is left by an exception.
    """

    def __init__(
        self,
        storage: int = 3,
        *,
        distributors: int = 1,
        redundancy: Optional[int] = None,
        schemas: Union[Schema, Sequence[Schema], None] = None,
        settings: Optional[Mapping[str, Any]] = None,
        directory: Union[str, "os.PathLike[str]", None] = None,
        network: bool = False,
        timeout: float = 30.0,
        keep_logs: bool = True,
    ) -> None:
        for name, number in (("storage", storage), ("distributors", distributors)):
            if not isinstance(number, int) or isinstance(number, bool):
                raise WrongType(name, "int", number)
        if storage < 1 or distributors < 1:
            raise ValueError(f"storage is {storage} and distributors is {distributors}: expected at least 1 of each")
        self.storage = storage
        self.distributors = distributors
        self.redundancy = min(2, storage) if redundancy is None else redundancy
        self._schemas = _texts_of(schemas)
        self._settings = dict(settings or {})
        self._timeout = timeout
        self._keep_logs = keep_logs
        self._wants_network = network
        self._network: Optional[Network] = None
        self._program = str(find_program("fjordd"))
        self._owns_directory = directory is None
        self._directory = None if directory is None else Path(directory).absolute()
        self._config: Dict[str, Any] = {}
        self._processes: Dict[str, subprocess.Popen[bytes]] = {}
        self._paused: Set[str] = set()
        self._clients: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_deployed = False

    # --- Life

    def start(self) -> "LocalCluster":
        """Starts all nodes and waits until the cluster serves. The with statement calls it.

        >>> other = LocalCluster(storage=1).start()
        >>> other.close()
        """
        if self._processes:
            raise ClusterError("the cluster runs already")
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="fjord-cluster-"))
        self._directory.mkdir(parents=True, exist_ok=True)
        atexit.register(self.close)
        try:
            if self._wants_network and self._network is None:
                self._network = Network([*self._names(), "client"])
            self._start_nodes()
            self._deploy()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Ends all nodes, closes the clients that client() has made, and removes the temporary folder.

        >>> other = LocalCluster(storage=1).start()
        >>> other.close()
        >>> other
        LocalCluster(storage=1, distributors=1): not started
        """
        atexit.unregister(self.close)
        for client in list(self._clients):
            client.close()
        self._stop(list(self._processes))
        if self._network is not None:
            self._network.close()
            self._network = None
        if self._owns_directory and self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
            self._config = {}
            self._is_deployed = False

    def __enter__(self) -> "LocalCluster":
        return self.start()

    def __exit__(
        self, kind: Optional[type], error: Optional[BaseException], _: Optional["types.TracebackType"]
    ) -> None:
        if error is not None and self._keep_logs:
            self.print_logs()
        self.close()

    def __repr__(self) -> str:
        running = f"{len(self._processes)} of {len(self._names())} nodes run" if self._processes else "not started"
        return f"LocalCluster(storage={self.storage}, distributors={self.distributors}): {running}"

    # --- What a test uses

    @property
    def address(self) -> str:
        """Addresses for fjord.Client, "host:port,host:port"; also the value for FJORD_CLUSTER.

        >>> with fjord.Client(cluster.address) as own:
        ...     own.ping()
        """
        return ",".join(one["address"] for one in self._configured()["distributors"])

    @property
    def metrics(self) -> List[str]:
        """The addresses of the metrics of all nodes, for Client.tune.

        >>> len(cluster.metrics) == len(cluster.nodes)
        True
        """
        return [self._http_address(name) for name in self._names()]

    @property
    def directory(self) -> Path:
        """The folder with configuration, data and logs.

        >>> (cluster.directory / "cluster.yaml").exists()
        True
        """
        if self._directory is None:
            raise ClusterError("the cluster was not started")
        return self._directory

    @property
    def nodes(self) -> List[str]:
        """The names of all nodes: "fleetcontroller.0", "distributor.0", "storage.0", ...

        >>> cluster.nodes
        ['fleetcontroller.0', 'distributor.0', 'storage.0', 'storage.1']
        """
        return self._names()

    def client(self, **options: Any) -> "fjord.Client":
        """Returns a new client of the cluster, which close() closes. `options` are those of fjord.Client.

        >>> cluster.client(timeout=5).ping()
        """
        import fjord

        client = fjord.Client(self.address, **options)
        self._clients.add(client)
        if self._network is not None:
            # The client's connections belong to the host of the thread that opens them.
            self._network.hosts["client"].run(client.ping)
        return client

    def log(self, node: Node) -> str:
        """Returns the log of a node.

        >>> "storage.0" in cluster.log("storage.0")
        True
        """
        path = self._log_file(self._name_of(node))
        return path.read_text(errors="replace") if path.exists() else ""

    def print_logs(self, file: Optional[TextIO] = None) -> None:
        """Prints the end of each node's log, to standard error unless `file` is given.

        >>> cluster.print_logs()
        """
        for name in self._names():
            text = self.log(name)[-_LOG_TAIL_BYTES:]
            if text:
                print(f"--- {name}\n{text}", file=file or sys.stderr)

    # --- Faults

    def kill(self, node: Node) -> None:
        """Ends a node with SIGKILL, as a crash does. It is gone when this returns.

        >>> cluster.kill(1)
        >>> cluster.restart(1)
        """
        name = self._name_of(node)
        process = self._running(name)
        process.kill()
        process.wait()
        self._forget(name)

    def stop(self, node: Node) -> None:
        """Ends a node in the ordinary way (SIGTERM).

        >>> cluster.stop("storage.1")
        >>> cluster.restart("storage.1")
        """
        self._stop([self._name_of(node)])

    def pause(self, node: Node) -> None:
        """Stops the node's process (SIGSTOP) until resume(): it holds its connections and does not answer.

        >>> cluster.pause(1)
        >>> cluster.resume(1)
        >>> cluster.wait_ready()
        """
        name = self._name_of(node)
        process = self._running(name)
        process.send_signal(signal.SIGSTOP)
        # A signal only asks for it: a thread that runs stops a little later.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._paused.add(name)

    def resume(self, node: Node) -> None:
        """Lets a paused node go on.

        >>> cluster.pause("distributor.0")
        >>> cluster.resume("distributor.0")
        >>> cluster.wait_ready()
        """
        name = self._name_of(node)
        self._running(name).send_signal(signal.SIGCONT)
        self._paused.discard(name)

    def restart(self, node: Node) -> None:
        """Starts a node that has ended, or ends and starts one that runs, and waits until the cluster serves with it.

        >>> cluster.restart("distributor.0")
        """
        name = self._name_of(node)
        self._stop([name])
        self._start_process(name)
        self.wait_ready()

    def partition(self, *groups: Iterable[Node]) -> None:
        """Cuts the connections between nodes of different groups. Nodes in no group reach all others.

        >>> with LocalCluster(storage=3, network=True) as parted:
        ...     parted.partition([0], [1, 2, "fleetcontroller.0"])
        ...     parted.heal()

        "client" is the name of the host of this process. The cluster needs `network=True`. Errors: PartitionNotPermitted.
        """
        if self._network is None:
            raise PartitionNotPermitted(
                "the nodes share this machine's loopback; LocalCluster(network=True) gives each its own network"
            )
        named = [["client" if node == "client" else self._name_of(node) for node in group] for group in groups]
        for index, group in enumerate(named):
            for other in named[index + 1 :]:
                for one in group:
                    for two in other:
                        self._network.cut(one, two)

    def heal(self) -> None:
        """Ends all partitions.

        >>> cluster.heal()
        """
        if self._network is not None:
            self._network.heal()

    def wait_ready(self, timeout: Optional[float] = None) -> None:
        """Waits until every running node serves and knows the current cluster state. Errors: ClusterError.

        >>> cluster.wait_ready(timeout=10)
        """
        seconds = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        running = {name: process for name, process in self._processes.items() if name not in self._paused}
        wait = _CHECK_SECONDS
        while True:
            missing = self._on_client_host(self._missing)
            if missing is None:
                return
            ended = wait_for_end(running, wait)
            if ended:
                raise ClusterError(f"{ended[0]} has ended; the end of its log:\n{self.log(ended[0])[-_LOG_TAIL_BYTES:]}")
            if time.monotonic() > deadline:
                raise ClusterError(f"the cluster is not ready after {seconds} s: {missing}")

    # --- Start

    def _names(self) -> List[str]:
        return [
            "fleetcontroller.0",
            *(f"distributor.{index}" for index in range(self.distributors)),
            *(f"storage.{index}" for index in range(self.storage)),
        ]

    def _name_of(self, node: Node) -> str:
        name = f"storage.{node}" if isinstance(node, int) else node
        if name not in self._names():
            raise ValueError(f"there is no node {node!r}: expected one of {', '.join(self._names())}, or a number")
        return name

    def _start_nodes(self) -> None:
        """Starts a new cluster with other ports if another program takes one of them meanwhile."""
        config = self.directory / "cluster.yaml"
        if config.exists():
            self._config = json.loads(config.read_text())
            self._is_deployed = True
            self._start_processes()
            return
        for attempt in range(1, _ATTEMPTS + 1):
            self._config = self._make_config()
            config.write_text(json.dumps(self._config, indent=1))  # YAML reads JSON.
            try:
                self._start_processes()
                return
            except ClusterError as error:
                self._stop(list(self._processes))
                if attempt == _ATTEMPTS or "cannot listen on" not in str(error):
                    raise
            for name in self._names():  # The fleet controller has stored the addresses of this attempt.
                shutil.rmtree(self.directory / name, ignore_errors=True)
                self._log_file(name).unlink()

    def _start_processes(self) -> None:
        for name in self._names():
            self._start_process(name)
        self.wait_ready()

    def _start_process(self, name: str) -> None:
        command = [self._program, "--config", str(self.directory / "cluster.yaml"), "--node", name]
        enter = None if self._network is None else self._network.hosts[name].enter
        self._processes[name] = start_process(command, self._log_file(name), enter)

    def _make_config(self) -> Dict[str, Any]:
        names = self._names()
        if self._network is None:
            ports = iter(_free_ports(2 * len(names)))
            addresses = {name: (f"127.0.0.1:{next(ports)}", f"127.0.0.1:{next(ports)}") for name in names}
        else:
            hosts = self._network.hosts
            addresses = {name: (f"{hosts[name].address}:19100", f"{hosts[name].address}:19200") for name in names}

        def node(name: str, **more: Any) -> Dict[str, Any]:
            address, http_address = addresses[name]
            return {"address": address, "http": http_address, **more}

        config: Dict[str, Any] = {
            "cluster": {"redundancy": self.redundancy},
            # Tests run on disks that are nearly full, too, where a cluster with the usual 85 % would not become healthy.
            "storage_options": {"space_warn_percent": 95, "space_throttle_percent": 95},
            "fleetcontroller": node("fleetcontroller.0", directory="fleetcontroller.0", poll_interval_ms=100),
            "distributors": [node(f"distributor.{index}") for index in range(self.distributors)],
            "storage": [
                node(f"storage.{index}", directory=f"storage.{index}") for index in range(self.storage)
            ],
        }
        if self._network is not None:
            config["allow_remote"] = True
        for section, values in self._settings.items():
            if isinstance(values, Mapping) and isinstance(config.get(section), dict):
                config[section].update(values)
            else:
                config[section] = values
        return config

    def _configured(self) -> Dict[str, Any]:
        if not self._config:
            raise ClusterError("the cluster was not started")
        return self._config

    def _deploy(self) -> None:
        if not self._schemas or self._is_deployed:
            return
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / f"{number}.sd" for number in range(len(self._schemas))]
            for file, text in zip(files, self._schemas):
                file.write_text(text, encoding="utf-8")
            command = [str(find_program("fjord")), "schema", "deploy", "--cluster", self.address, *map(str, files)]
            enter = None if self._network is None else self._network.hosts["client"].enter
            log = self.directory / "schema-deploy.log"
            if start_process(command, log, enter).wait() != 0:
                raise ClusterError(f"the schemas were not deployed: {log.read_text(errors='replace')}")
        self._is_deployed = True

    # --- Processes

    def _log_file(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _running(self, name: str) -> "subprocess.Popen[bytes]":
        process = self._processes.get(name)
        if process is None:
            raise ClusterError(f"{name} does not run")
        return process

    def _forget(self, name: str) -> None:
        self._processes.pop(name, None)
        self._paused.discard(name)

    def _stop(self, names: Sequence[str]) -> None:
        processes = [(name, self._processes[name]) for name in names if name in self._processes]
        # A process that ends with SIGTERM lets the fleet controller take it out of the cluster first.
        is_whole = len(processes) == len(self._processes)
        for name, process in processes:
            process.send_signal(signal.SIGINT if is_whole else signal.SIGTERM)
            if name in self._paused:
                process.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + _STOP_SECONDS
        for name, process in processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._forget(name)

    # --- Readiness

    def _on_client_host(self, work: "Callable[[], Optional[str]]") -> Optional[str]:
        return work() if self._network is None else self._network.hosts["client"].run(work)

    def _http_address(self, name: str) -> str:
        config = self._configured()
        role, index = name.split(".")
        if role == "fleetcontroller":
            return str(config["fleetcontroller"]["http"])
        return str(config["distributors" if role == "distributor" else "storage"][int(index)]["http"])

    def _missing(self) -> Optional[str]:
        """Returns the first reason why the cluster is not ready, or None."""
        versions = set()
        running = [name for name in self._processes if name not in self._paused]
        for name in running:
            try:
                health = json.loads(_page(self._http_address(name), "/health"))
            except (OSError, http.client.HTTPException) as error:
                return f"{name} does not answer: {error}"
            if not health["healthy"]:
                return f"{name} is {health['status']}: {'; '.join(health['reasons'])}"
            if not name.startswith("fleetcontroller"):
                versions.add(health["state_version"])
        if len(versions) > 1:
            return "not all nodes have the current cluster state"
        away = len(running) < len(self._names())
        for name in running:
            if not name.startswith("distributor"):
                continue
            metrics = _metrics(_page(self._http_address(name), "/metrics"))
            collecting = metrics.get("fjord_distributor_buckets_collecting", 0)
            unavailable = metrics.get("fjord_distributor_buckets_unavailable", 0)
            # Without some of the nodes, there may be documents that no node can serve.
            if collecting > 0 or (unavailable > 0 and len(running) == len(self._names())):
                return f"{name} does not serve {max(collecting, unavailable):.0f} buckets yet"
        return None


def _texts_of(schemas: Union[Schema, Sequence[Schema], None]) -> List[str]:
    if schemas is None:
        return []
    if isinstance(schemas, (str, os.PathLike)):
        schemas = [schemas]
    return [
        schema if isinstance(schema, str) and "{" in schema else Path(schema).read_text(encoding="utf-8")
        for schema in schemas
    ]


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
            one.listen(1)
        except OSError:
            return False
        return True


def _free_ports(count: int) -> List[int]:
    start = random.SystemRandom().randrange(len(_PORTS))
    free = (port for port in (_PORTS[(start + index) % len(_PORTS)] for index in range(len(_PORTS))) if _is_free(port))
    ports = [port for port, _ in zip(free, range(count))]
    if len(ports) < count:
        raise ClusterError(f"there are no {count} free ports from {_PORTS.start} to {_PORTS.stop - 1}")
    return ports


def _page(address: str, path: str) -> str:
    connection = http.client.HTTPConnection(address, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def _metrics(text: str) -> Dict[str, float]:
    values = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#") and "{" not in name:
            values[name] = float(value)
    return values
