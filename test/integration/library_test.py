"""The C++ library: its calls against a cluster, and a user's build with the installed package."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = harness.BIN.parent
PAGE = SOURCE / "docs" / "clients" / "cpp.md"


def run(*command):
    finished = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert finished.returncode == 0, f"{command}\n{finished.stdout[-3000:]}\n{finished.stderr[-3000:]}"
    return finished.stdout


class LibraryTest(unittest.TestCase):
    def test_every_call_on_a_cluster(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            checked = subprocess.run([harness.BIN / "fjord-library-check", cluster.address, cluster.folder], capture_output=True, text=True,
                                     timeout=300)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr + cluster.logs())

    def test_a_program_against_the_installed_package(self):
        with tempfile.TemporaryDirectory(prefix="fjord-library-") as folder:
            folder = pathlib.Path(folder)
            prefix = folder / "installed"
            run("cmake", "--install", BUILD, "--prefix", prefix)
            source = folder / "source"
            shutil.copytree(SOURCE / "examples" / "library", source)
            self.add_samples(source)
            run("cmake", "-S", source, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
            run("cmake", "--build", folder / "build")
            with harness.Cluster(storage=2) as cluster:
                printed = run(folder / "build" / "music", cluster.address)
                self.assertEqual(printed.splitlines(), [
                    "500 albums since 2000", "2009: 50", "2008: 50", "2007: 50", "1000 albums in the copy"])

    def add_samples(self, source):
        """Each sample of the page becomes a function of a library that is built beside the example."""
        samples = re.findall(r"```cpp\n(.*?)```", PAGE.read_text(), re.DOTALL)
        self.assertGreater(len(samples), 8)
        programs = [sample for sample in samples if "int main" in sample]
        self.assertEqual(len(programs), 1)
        (source / "program.cpp").write_text(programs[0])
        text = (SOURCE / "test" / "integration" / "library" / "samples_prefix.h").read_text()
        for number, sample in enumerate(sample for sample in samples if "int main" not in sample):
            if "co_await" in sample:
                text += sample
            else:
                text += f"void sample{number}(fjord::Client& client) {{\n{sample}}}\n"
        (source / "samples.cpp").write_text(text)
        with open(source / "CMakeLists.txt", "a") as file:
            file.write("add_executable(program program.cpp)\ntarget_link_libraries(program PRIVATE fjord::client)\n"
                       "add_library(samples STATIC samples.cpp)\ntarget_link_libraries(samples PRIVATE fjord::client)\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
