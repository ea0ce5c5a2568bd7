"""The switch of the Python package, fjord.testing.network, for tests that have no such package: loaded by its path."""

import importlib.util
import pathlib
import sys

_FILE = pathlib.Path(__file__).resolve().parents[2] / "python" / "src" / "fjord" / "testing" / "network.py"
_SPEC = importlib.util.spec_from_file_location("fjord_testing_network", _FILE)
_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _MODULE
_SPEC.loader.exec_module(_MODULE)

Link = _MODULE.Link
Network = _MODULE.Network
NotPermitted = _MODULE.PartitionNotPermitted
on_own_thread = _MODULE.on_own_thread
