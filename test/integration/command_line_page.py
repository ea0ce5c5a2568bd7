"""docs/reference/command-line.md, made from what the programs say of themselves; the test of the command line compares.

    FJORD_BIN=build/release/bin python3 test/integration/command_line_page.py > docs/reference/command-line.md
"""

import pathlib
import re

import harness

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"
HEAD = """# The command line

Made from `--help` of each program by `test/integration/command_line_page.py`; a test compares. Every command has
`-h` and `--help` besides. Exit codes of `fjord`: {exit_codes}.
"""


def help_of(command):
    return harness.run_program(command[0], *command[1:], "--help").out


def subcommands(text):
    """The names below "Subcommands:" of a help text."""
    found = re.search(r"^Subcommands:\n((?:  .*\n?)+)", text, re.MULTILINE)
    return re.findall(r"^  (\S+)", found.group(1), re.MULTILINE) if found else []


def commands_of(program):
    """All that can be called, in the order of the help texts."""
    found = []

    def add(command):
        found.append(command)
        for name in subcommands(help_of(command)):
            add((*command, name))
    add((program,))
    return found


def arguments_of(text):
    """Pairs of how an argument is written and what it means, from the lists of a help text."""
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
