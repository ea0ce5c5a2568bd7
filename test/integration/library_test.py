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
HELPERS = SOURCE / "test" / "integration" / "library"


def samples_of(page):
    """The C++ samples of a page."""
    return re.findall(r"```cpp\n(.*?)```", (SOURCE / page).read_text(), re.DOTALL)


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
        with tempfile.TemporaryDirectory(prefix="fjord-library-") as folder, \
                harness.Cluster(storage=3, redundancy=2) as cluster:
            folder = pathlib.Path(folder)
            prefix = folder / "installed"
            run("cmake", "--install", BUILD, "--prefix", prefix)
            source = folder / "source"
            shutil.copytree(SOURCE / "examples" / "library", source)
            self.assertLessEqual(len((source / "music.cpp").read_text().splitlines()), 60)
            self.add_samples(source, cluster.address)
            run("cmake", "-S", source, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
            run("cmake", "--build", folder / "build")
            self.check_headers(prefix / "include")
            printed = run(folder / "build" / "music", cluster.address)
            self.assertEqual(printed.splitlines(), [
                "500 albums since 2000", "2009: 50", "2008: 50", "2007: 50", "1000 albums in the copy"])
            samples = subprocess.run([folder / "build" / "samples", cluster.address], capture_output=True, text=True,
                                     timeout=200, cwd=folder)
            self.assertEqual(samples.stdout, "0 complaints, all samples did something\n", samples.stderr + cluster.logs())
            self.assertTrue((folder / "items.jsonl.gz").exists())
            self.assertEqual(run(folder / "build" / "program"), "3\n")

    def check_headers(self, include):
        """Only what a user may include is installed, and none of it names a message of the protocol."""
        installed = {str(path.relative_to(include)) for path in include.rglob("*") if path.is_file()}
        of_client = self.reached_from(include, "fjord/fjord.h")
        of_plugins = self.reached_from(include, "fjord/plugins/plugin.h")
        self.assertEqual(installed, of_client | of_plugins)
        self.assertIn("fjord/library/visit.h", of_client)
        self.assertEqual([header for header in installed if "/detail/" in header or "/client/" in header], [])
        with_messages = {header for header in installed if re.search(r"rpc::|::rpc|/rpc/", (include / header).read_text())}
        self.assertEqual(with_messages & of_client, set())
        # Parameters of visitors are the one message that plugins see.
        self.assertEqual(with_messages, {"fjord/rpc/common_messages.h", "fjord/visitors/visitor.h"})

    def reached_from(self, include, header):
        """The header, and those of Fjord that it includes, directly or not."""
        seen, waiting = set(), [header]
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting += re.findall(r'#include "(fjord/[^"]+)"', (include / one).read_text())
        return seen

    def add_samples(self, source, address):
        """Each sample of the pages becomes a function of a program that is built beside the example and calls them."""
        samples = samples_of("docs/clients/cpp.md")
        self.assertGreater(len(samples), 12)
        programs = [sample for sample in samples if "int main" in sample]
        self.assertEqual(len(programs), 1)
        (source / "program.cpp").write_text(self.with_address(programs[0], "127.0.0.1:19110", address))
        text = (HELPERS / "samples_prefix.h").read_text() + (HELPERS / "samples_main.h").read_text()
        calls, last = [], []
        for number, sample in enumerate(sample for sample in samples if "int main" not in sample):
            if "co_await" in sample:
                text += sample
                continue
            text += f"void sample{number}(fjord::Client& client) {{\n{sample}}}\n"
            (last if "client.subscribe(" in sample else calls).append(f"  sample{number}(client);\n")
        self.assertEqual(len(last), 1)
        text += self.readme_sample(address)
        text += ("void run_samples(fjord::Client& client) {\n" + "".join(calls) +
                 "  readme_sample();\n"
                 "  read_two(client);\n"
                 "  const int before = documents_used;\n"
                 "  read_some(client);\n"
                 "  while (documents_used < before + 1000) std::this_thread::yield();\n"
                 "  const int used = documents_used;\n"
                 "  read_all(*new fjord::Visit(client.visit({.type = \"music\"})));\n"
                 "  follow(*new fjord::Subscription(client.subscribe({.type = \"music\"})));\n"
                 "  while (documents_used < used + 2000 || changes_stored < 2000) std::this_thread::yield();\n"
                 "  exits_at_save = true;\n" + last[0] + "}\n")
        (source / "samples.cpp").write_text(text)
        with open(source / "CMakeLists.txt", "a") as file:
            for name in "program", "samples":
                file.write(f"add_executable({name} {name}.cpp)\ntarget_link_libraries({name} PRIVATE fjord::client)\n")

    def readme_sample(self, address):
        """The sample of README.md as a function. It has a client of its own, and reads the document that it puts."""
        samples = samples_of("README.md")
        self.assertEqual(len(samples), 1)
        sample = self.with_address(samples[0], "127.0.0.1:19100", address)
        self.assertTrue(sample.startswith("#include <fjord/fjord.h>\n"), sample)
        body = sample.removeprefix("#include <fjord/fjord.h>\n")
        return (f"void readme_sample() {{\n  const int before = documents_used;\n  [] {{{body}  }}();\n"
                "  if (documents_used != before + 1) complain({fjord::StatusCode::Unknown, \"README.md read another number\"});\n}\n")

    def with_address(self, sample, shown, address):
        self.assertIn(shown, sample)
        return sample.replace(shown, address)

    def test_the_sample_of_the_client_module(self):
        """client/README.md shows headers that are not installed, so it is compiled with those of the repository."""
        samples = samples_of("client/README.md")
        self.assertEqual(len(samples), 1)
        folders = [*SOURCE.glob("*/include"), *SOURCE.glob("*/*/include"), BUILD / "rpc" / "include"]
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "sample.cpp"
            source.write_text((HELPERS / "client_sample_prefix.h").read_text() +
                              "void sample(const std::string& id, fjord::EncodedDocument document,\n"
                              f"            std::vector<fjord::rpc::Operation> operations) {{\n{samples[0]}}}\n")
            run("c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *(f"-I{folder}" for folder in folders), source)


if __name__ == "__main__":
    unittest.main(verbosity=2)
