"""The outputs made from the table of commands: versions, completion for shells, manual pages."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

import command_line_page
import harness
from harness import NOT_FOUND, OK, USAGE

ROOT = pathlib.Path(__file__).resolve().parents[2]


def commands():
    """Returns the words of each command, without "fjord" itself."""
    return [command[1:] for command in command_line_page.commands_of("fjord") if len(command) > 1]


def options_of(*command):
    """Returns the names of the options in the help text."""
    arguments = command_line_page.arguments_of(command_line_page.help_of(("fjord", *command)))
    names = [name.split()[0].split(",") for name, _ in arguments if name.startswith("-")]
    return sorted(["-h", "--help", *(one for pair in names for one in pair)])


class VersionTest(unittest.TestCase):
    def test_every_program_says_its_version(self):
        version = re.search(r"project\(fjord VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        said = {}
        for program in ("fjord", "fjordd", "fjord-inspect", "fjord-plugin-host", "fjord-script-host"):
            finished = harness.run_program(program, "--version")
            self.assertEqual((finished.code, finished.err), (OK, ""), finished)
            said[program] = re.fullmatch(rf"{program} {re.escape(version)}( \(revision [0-9a-f]{{12}}(-dirty)?\))?\n", finished.out)
            self.assertIsNotNone(said[program], finished)
        self.assertEqual(len({match.group(1) for match in said.values()}), 1, "they are of one build")

    def test_the_revision_is_that_of_the_working_tree(self):
        script = ROOT / "tools" / "version" / "write_revision.cmake"
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder) / "tree"
            (tree / "copy").mkdir(parents=True)
            header = pathlib.Path(folder) / "revision.h"

            def written(source):
                subprocess.run(["cmake", f"-DSOURCE={source}", f"-DOUTPUT={header}", "-P", script], check=True)
                return re.search(r'FJORD_REVISION "(.*)"', header.read_text()).group(1)

            def git(*arguments):
                done = subprocess.run(["git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
                                      check=True, capture_output=True, text=True)
                return done.stdout.strip()

            self.assertEqual(written(tree), "")
            git("init", "-q")
            (tree / "file").write_text("one")
            git("add", "file")
            git("commit", "-qm", "one")
            self.assertEqual(written(tree), git("rev-parse", "--short=12", "HEAD"))
            before = header.stat().st_mtime_ns
            written(tree)
            self.assertEqual(header.stat().st_mtime_ns, before, "a header that is the same is not written again")
            (tree / "file").write_text("two")
            self.assertEqual(written(tree), git("rev-parse", "--short=12", "HEAD") + "-dirty")
            self.assertEqual(written(tree / "copy"), "", "a folder in a working tree is not of its revision")


class BashTest(unittest.TestCase):
    def complete(self, *words):
        """Returns the completions that bash offers for the last word."""
        script = 'source <("$1" completion bash); shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fjord; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", harness.BIN / "fjord", "fjord", *words],
                              capture_output=True, text=True, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split("\n")[:-1] if done.stdout.strip() else []

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "my file.json").write_text("{}")
        (self.folder / "my folder").mkdir()

    def test_commands(self):
        self.assertEqual(self.complete("nod"), ["node"])
        self.assertEqual(self.complete("node", "st"), ["stop-check"])
        self.assertEqual(self.complete("wibble", "x"), [])
        self.assertEqual(self.complete("get", "node", "st"), [], "an argument is not a command")
        top = [command[0] for command in commands() if len(command) == 1]
        self.assertEqual(sorted(self.complete("")), sorted(top))
        for group in {command[0] for command in commands() if len(command) == 2}:
            self.assertEqual(sorted(self.complete(group, "")), sorted(c[1] for c in commands() if len(c) == 2 and c[0] == group))

    def test_options_of_every_command(self):
        for command in [(), *commands()]:
            with self.subTest(command=command):
                self.assertEqual(sorted(self.complete(*command, "-")), options_of(*command))
        self.assertEqual(self.complete("node", "retire", "--dr"), ["--dry-run"])

    def test_values(self):
        self.assertEqual(self.complete("status", "-o", ""), ["text", "json", "yaml"])
        self.assertEqual(self.complete("status", "--output", "j"), ["json"])
        self.assertEqual(self.complete("status", "--output", "=", "j"), ["json"])
        self.assertEqual(self.complete("status", "--output", "="), ["text", "json", "yaml"])
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.complete("get", "--timeout", ""), [])
        self.assertEqual(self.complete("put", "id:a:music::1", "my"), ["my file.json", "my folder"])
        self.assertEqual(self.complete("visit", "--cursor", "my f"), ["my file.json", "my folder"])
        self.assertEqual(self.complete("visit", "--progress", ""), ["auto", "always", "never"])
        self.assertEqual(self.complete("local", "stop", "--dir", "my"), ["my folder"])


class OtherShellsTest(unittest.TestCase):
    """Tests of other shells; they run if these are installed."""

    def shell(self, name):
        found = shutil.which(name)
        if found is None:
            self.skipTest(f"{name} is not installed")
        return found

    def script(self, shell):
        finished = harness.run_program("fjord", "completion", shell)
        self.assertEqual((finished.code, finished.err), (OK, ""))
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "_fjord"
        path.write_text(finished.out)
        return path

    def test_every_script_names_every_command(self):
        for shell in ("bash", "zsh", "fish"):
            text = self.script(shell).read_text()
            for command in commands():
                name = "_fjord_" + "_".join(command).replace("-", "_") + "() {" if shell == "zsh" else "'fjord " + " ".join(command) + "'"
                self.assertIn(name, text)
        self.assertEqual(harness.run_program("fjord", "completion", "tcsh").code, USAGE)
        self.assertEqual(harness.run_program("fjord", "completion").code, USAGE)

    def test_fish(self):
        fish = self.shell("fish")
        script = self.script("fish")

        def complete(line):
            done = subprocess.run([fish, "--no-config", "-c", f"source {script}; complete -C '{line}'"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return [entry.split("\t")[0] for entry in done.stdout.splitlines()]

        self.assertEqual(complete("fjord nod"), ["node"])
        self.assertEqual(complete("fjord node st"), ["stop-check"])
        self.assertEqual(sorted(complete("fjord status -o ")), ["json", "text"])
        self.assertEqual(complete("fjord node retire --dr"), ["--dry-run"])
        self.assertEqual(complete("fjord get node st"), [])
        for command in commands():
            long_names = [name for name in options_of(*command) if name.startswith("--")]
            self.assertEqual(sorted(complete(f"fjord {' '.join(command)} --")), long_names)

    def test_zsh(self):
        zsh = self.shell("zsh")
        script = self.script("zsh")
        self.assertEqual(subprocess.run([zsh, "-n", script], capture_output=True).stderr, b"")
        child, terminal = pty.fork()
        if child == 0:
            os.execve(zsh, [zsh, "-f", "-i"], {**os.environ, "PS1": "", "TERM": "dumb"})
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.write, terminal, b"\x15exit\n")

        def seen(keys, what):
            """Types the keys and reads until `what` appears."""
            os.write(terminal, keys.encode())
            text = ""
            deadline = time.monotonic() + 20
            while what not in text:
                self.assertLess(time.monotonic(), deadline, f"after {keys!r} no {what!r} in {text!r}")
                if select.select([terminal], [], [], 0.1)[0]:
                    text += os.read(terminal, 65536).decode(errors="replace")

        seen(f"bindkey -e; autoload -U compinit; compinit -u -D; source {script}; echo rea''dy\n", "ready")
        for typed, whole in (("fjord nod", "fjord node"), ("fjord node sto", "fjord node stop-check"),
                             ("fjord status -o js", "fjord status -o json"),
                             ("fjord node retire --dr", "fjord node retire --dry-run"),
                             ("fjord visit --prio", "fjord visit --priority")):
            # Completes the line, and prints it instead of running it.
            seen(f"\x15{typed}\t\x01print -r -- '<\x05>'\n", f"<{whole}")


class ManualTest(unittest.TestCase):
    def page(self, *command):
        finished = harness.run_program("fjord", "man", *command)
        self.assertEqual((finished.code, finished.err), (OK, ""))
        return finished.out

    def test_pages_say_what_the_help_says(self):
        for command in [(), *commands()]:
            with self.subTest(command=command):
                page = self.page(*command)
                name = "-".join(("fjord", *command)).replace("-", r"\-")
                lines = page.splitlines()
                self.assertTrue(lines[0].startswith(f".TH {'-'.join(('fjord', *command)).upper()} 1 "), lines[0])
                self.assertTrue(any(line.startswith(name + r" \- ") for line in lines), page)
                for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", '"EXIT STATUS"', "EXAMPLES"):
                    self.assertEqual(lines.count(f".SH {section}"), 1, section)
                for option in options_of(*command):
                    self.assertIn(rf"\fB{option}\fR".replace("-", r"\-"), page)
                for line in lines:
                    self.assertRegex(line, r"^(\.(TH|SH|TP|PP|nf|fi|nh|ad)\b|[^.'])", "a line of text that roff takes for a request")
        self.assertEqual(harness.run_program("fjord", "man", "nod").code, NOT_FOUND)
        self.assertEqual(harness.run_program("fjord", "man", "node", "--dir", "/nowhere").code, USAGE)

    def test_all_pages_are_read_without_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            written = harness.run_program("fjord", "man", "--dir", pathlib.Path(folder) / "man1")
            self.assertEqual(written.code, OK, written)
            pages = sorted((pathlib.Path(folder) / "man1").iterdir())
            self.assertEqual([page.name for page in pages], sorted("-".join(("fjord", *command)) + ".1" for command in [(), *commands()]))
            self.assertEqual((pages[0].parent / "fjord-node-retire.1").read_text(), self.page("node", "retire"))
            checks = [check for check in (["groff", "-man", "-ww", "-Tascii", "-z"], ["man", "--warnings", "-l"]) if shutil.which(check[0])]
            if not checks:
                self.skipTest("neither groff nor man is installed")
            for check in checks:
                for page in pages:
                    done = subprocess.run([*check, page], capture_output=True, text=True, env={**os.environ, "MANPAGER": "cat"})
                    self.assertEqual((done.returncode, done.stderr), (0, ""), f"{check} {page.name}")

    def test_they_are_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["cmake", "--install", harness.BIN.parent, "--component", "reference", "--prefix", "/usr"],
                                  capture_output=True, text=True, env={**os.environ, "DESTDIR": folder})
            self.assertEqual(done.returncode, 0, done.stderr)
            share = pathlib.Path(folder) / "usr" / "share"
            for shell, place in (("bash", "bash-completion/completions/fjord"), ("zsh", "zsh/site-functions/_fjord"),
                                 ("fish", "fish/vendor_completions.d/fjord.fish")):
                self.assertEqual((share / place).read_text(), harness.run_program("fjord", "completion", shell).out)
            self.assertEqual((share / "man" / "man1" / "fjord-visit.1").read_text(), self.page("visit"))


if __name__ == "__main__":
    harness.main()
