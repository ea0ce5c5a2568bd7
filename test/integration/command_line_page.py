"""docs/reference/command-line.md, made from what the programs say of themselves; the test of the command line compares.

    FJORD_BIN=build/release/bin python3 test/integration/command_line_page.py > docs/reference/command-line.md
"""

import pathlib
import re

import harness

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"
HEAD = """# The command line

Made from `--help` of each program by `test/integration/command_line_page.py`; a test compares. Every command has
`-h` and `--help` besides. Exit codes of `fjord`: {exit_codes}. The same mistake gives the same
one in every command:

| exit code | when |
|---|---|
| 0 | All was done. |
| 1 | The cluster cannot be reached, refuses the call, or fails at it; a record of a feed or import is wrong; a job failed. |
| 2 | No cluster can do it: an unknown command or option, a value out of its bounds, an id, selection, field, address, time or setting's value that is none, or a text or file that the command names (a document, changes, a schema, a specification, a workload, a cursor) and that is not understood. |
| 3 | A document, document type, job, node, setting, file or folder that the command names is not there. |
| 4 | A condition is false (`--condition`, `--if-version`): nothing was written. |
| 5 | A part was done; the messages say what was not. |
| 6 | It took longer than `--timeout` or `--wait`. |
| 7 | It may have been done: the answer was lost. |
| 8 | Refused because it could lose documents or make them unavailable, or needs `--yes`. |

`fjord status` exits with 0 if all is well, with 5 if all is served but something is down or out of sync, and with 1 if
something is not served or the cluster cannot be reached.

`eval "$(fjord completion bash)"` lets a shell complete commands, options and their values (also `zsh` and `fish`), and
`fjord man node retire | man -l -` shows a manual page. `cmake --install` installs the scripts and the pages.

`fjord help COMMAND` prints the help text of a command, `fjord help TOPIC` one about ids, selections, cursors, times, exit codes
or the environment. `--cluster`, `--timeout` and `-o` may stand before the command too: `fjord --cluster HOST:PORT status`.

An option that is a number takes whole numbers within its bounds. `--limit` is 1 or more; without it nothing is left out.
With `-o json` each line is a JSON value; `-o yaml` prints the same values as YAML documents. A DURATION is a number of seconds, `1.5`, or has a unit: `500ms`, `2m`, `1h`, `3d`.

## Former names

These are accepted, and help texts do not show them.

| former name | commands | today |
|---|---|---|
| `--token KEY` | `put`, `update`, `remove` | `--idempotency-key KEY` |
| `--where CONDITION` | `update`, `remove` | `--selection CONDITION` |
| `--token FILE` | `subscribe` | `--cursor FILE` |
| `--print-tokens` | `subscribe` | `--print-cursors`, whose lines are `{{"cursor": TEXT}}` instead of `{{"token": TEXT}}` |
| `--resume FILE` | `import` | `--cursor FILE` |
| `--resume FILE` | `visit`, `update`, `remove` | `--cursor FILE`, which needs no file to begin with |
| `--progress FILE` | `visit`, `update`, `remove` | `--cursor FILE`, which goes on from the file if it is there; `--progress` is `auto`, `always` or `never` in all commands |
| `--show-progress WHEN` | `visit` | `--progress WHEN` |
"""


def help_of(command):
    return harness.run_program(command[0], *command[1:], "--help").out


def subcommands(text):
    """Returns the names below "Subcommands:" of a help text."""
    found = re.search(r"^Subcommands:\n((?:  .*\n?)+)", text, re.MULTILINE)
    return re.findall(r"^  (\S+)", found.group(1), re.MULTILINE) if found else []


def commands_of(program):
    """Returns all commands in the order of the help texts."""
    found = []

    def add(command):
        found.append(command)
        for name in subcommands(help_of(command)):
            add((*command, name))
    add((program,))
    return found


def arguments_of(text):
    """Returns pairs of the form and the meaning of an argument, from the lists of a help text."""
    found = []
    for block in re.findall(r"^(?:Positionals|Options):\n((?:  .*\n?)+)", text, re.MULTILINE):
        for line in block.splitlines():
            if line.startswith(" " * 30):
                found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}".strip())
                continue
            name, _, meaning = line.strip().partition("  ")
            found.append((name, meaning.strip()))
    return [(name, meaning) for name, meaning in found if not name.startswith("-h,")]


def cell(text):
    return text.replace("|", "\\|")


def section(command):
    text = help_of(command)
    usage = re.search(r"^Usage: (.*)$", text, re.MULTILINE).group(1)
    title = " ".join(text[:text.index("\nUsage:")].split())
    example = re.search(r"^Example:\s*(.*)$", text, re.MULTILINE)
    lines = [f"## {' '.join(command)}", "", f"{title}{'' if title.endswith('.') else '.'}", "", f"    {usage}", ""]
    arguments = arguments_of(text)
    if arguments:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [f"| `{cell(name)}` | {cell(meaning)} |" for name, meaning in arguments]
        lines.append("")
    if example:
        lines += [f"Example: `{example.group(1)}`", ""]
    return "\n".join(lines)


def page():
    exit_codes = re.search(r"^Exit codes: (.*)$", help_of(("fjord",)), re.MULTILINE).group(1)
    commands = [command for program in ("fjord", "fjordd", "fjord-inspect") for command in commands_of(program)]
    return "\n".join([HEAD.format(exit_codes=exit_codes)] + [section(command) for command in commands])


if __name__ == "__main__":
    print(page(), end="")
