"""Real HTTP clients for tests, from the package indexes. Each is installed once for a machine, below ~/.cache, and a test
that needs one is skipped with the reason if its index cannot be reached."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

CACHE = pathlib.Path(os.environ.get("FJORD_CLIENTS_DIR", pathlib.Path.home() / ".cache" / "fjord-clients"))
CLIENTS = pathlib.Path(__file__).resolve().parent / "clients"
PYTHON_CLIENTS = ("vespacli==8.763.13", "pyvespa==1.2.9")
SCHEMATHESIS = ("schemathesis==4.32.5",)
SPEC_VALIDATOR = ("openapi-spec-validator==0.9.0",)
PYTHON_GENERATOR = ("openapi-python-client==0.29.0",)
NODE_PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20.19.43")
JAVA_CLIENT = ("com.yahoo.vespa", "vespa-feed-client", "8.700.24")

POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>fjord</groupId><artifactId>clients</artifactId><version>1</version>
<dependencies><dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency></dependencies>
</project>"""


@contextlib.contextmanager
def locked(name):
    """One process at a time installs."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        last = (done.stderr + done.stdout).strip().splitlines()[-1:]
        raise unittest.SkipTest(f"{command[0]} cannot install the client: {' '.join(last)}")


def python_folder(packages=PYTHON_CLIENTS):
    """Returns the folder of programs of a virtual environment with these packages from PyPI."""
    with locked("python"):
        folder = CACHE / "-".join(["python", *(one.replace("==", "-") for one in packages)])
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            install([sys.executable, "-m", "venv", str(folder)])
            install([str(folder / "bin" / "pip"), "install", "--quiet", *packages])
            (folder / "complete").touch()
    return folder / "bin"


def node_folder():
    """Returns the folder node_modules with NODE_PACKAGES from the npm registry."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise unittest.SkipTest(f"there is no {program}; packages-console.txt has it")
    with locked("node"):
        folder = CACHE / "-".join(["node", *(one.replace("/", "-") for one in NODE_PACKAGES)])
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            install(["npm", "install", "--prefix", str(folder), "--no-fund", "--no-audit", "--ignore-scripts", *NODE_PACKAGES])
            (folder / "complete").touch()
    return folder / "node_modules"


def java_class_path():
    """Returns the class path of the Java client from Maven's central repository."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise unittest.SkipTest(f"there is no {program}; packages-clients.txt has it")
    with locked("java"):
        folder = CACHE / f"java-{JAVA_CLIENT[2]}"
        found = folder / "class-path"
        if not found.exists():
            folder.mkdir(exist_ok=True)
            (folder / "pom.xml").write_text(POM.format(*JAVA_CLIENT))
            install(["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:build-classpath",
                     f"-Dmdep.outputFile={folder / 'new-class-path'}"])
            (folder / "new-class-path").rename(found)
    return found.read_text().strip()
