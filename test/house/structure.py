"""How large the parts of the code are, and that they do not form cycles:

- no class has more than 500 lines (its declaration, and the definitions of its members wherever they are) or 40 methods;
- no function has more than 60 lines;
- no cycle of includes inside a module. A private header and the source of that name count as one; so a.cpp may not use b.h
  while b.cpp uses a.h. A public header stands alone: its source puts private parts together that use it.

exceptions.tsv lists what may go beyond that, with the reason. A function that is in no class and in no namespace below
fjord has its file before its name, as in bench/main.cpp:main, because several files have a function of that name. A row without use is a violation too, except for those
with the reason "is being split", which are only named. Universal Ctags reads the sources; without it the test is skipped.

Prints each violation as file:line, and ends with 1 if there is one. --all prints the largest classes and functions.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXCEPTIONS = pathlib.Path(__file__).with_name("exceptions.tsv")
CLASS_LINES_MAX, CLASS_METHODS_MAX, FUNCTION_LINES_MAX = 500, 40, 60
BEING_SPLIT = "is being split"
SKIPPED = 77
# Ctags does not expand macros; it would take these, in a declaration, for what is declared.
MACROS = ("FJORD_GUARDED_BY+", "FJORD_REQUIRES+")


def sources():
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "*.h", "*.cpp"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def read_tags(names):
    """Returns what Ctags finds in the files: dicts with path, line, end, kind, name, scope."""
    run = subprocess.run(["ctags", "--languages=C++", "--langmap=C++:.h.cpp", "--kinds-C++=cspfn", "--fields=+neKZ",
                          "--output-format=json", "-I", ",".join(MACROS), "-L", "-", "-f", "-"],
                         cwd=ROOT, input="\n".join(names), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def plain(name):
    """Returns a qualified name without the outermost namespace and without anonymous ones."""
    return "::".join(part for part in name.split("::") if part != "fjord" and not part.startswith("__anon"))


class Class:
    def __init__(self):
        self.places, self.lines, self.methods = [], 0, 0


def classes_of(tags):
    """Returns the classes by full name."""
    found = collections.defaultdict(Class)
    for tag in tags:
        if tag["kind"] in ("class", "struct") and "end" in tag:
            one = found["::".join(filter(None, (tag.get("scope"), tag["name"])))]
            one.places.append((tag["path"], tag["line"], tag["end"]))
            one.lines += tag["end"] - tag["line"] + 1
    for tag in tags:
        one = found.get(tag.get("scope")) if tag["kind"] in ("function", "prototype") else None
        if one is None:
            continue
        if any(path == tag["path"] and begin <= tag["line"] <= end for path, begin, end in one.places):
            one.methods += 1
        elif "end" in tag:
            one.lines += tag["end"] - tag["line"] + 1
    return found


def unit_of(name):
    """Returns what counts as one in the graph of includes."""
    return name if "/include/fjord/" in name else name.rsplit(".", 1)[0]


def includes(names):
    """Returns for each unit the units of its module that it includes."""
    known = set(names)
    public = {name.split("/include/", 1)[1]: name for name in names if "/include/fjord/" in name}
    graph = collections.defaultdict(set)
    for name in names:
        for included in re.findall(r'^\s*#include\s+["<]([^">]+)[">]', (ROOT / name).read_text(encoding="utf-8"), re.M):
            folders = pathlib.PurePosixPath(name).parents
            beside = (str(folder / included) for folder in folders if str(folder / included) in known)
            target = public.get(included) or next(beside, None)
            if target and target.split("/")[0] == name.split("/")[0] and unit_of(target) != unit_of(name):
                graph[unit_of(name)].add(unit_of(target))
    return graph


def cycles_of(graph):
    """Returns the groups of units that reach each other (Tarjan's algorithm)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def read_exceptions():
    rows = {}
    for number, line in enumerate(EXCEPTIONS.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            kind, name, reason = line.split("\t")
            rows[kind, name] = (number, reason)
    return rows


def violations(names, tags):
    """Yields (kind, name, place, text) of all that is beyond the limits."""
    for name, one in sorted(classes_of(tags).items()):
        path, line, _ = one.places[0] if one.places else ("", 0, 0)
        if one.lines > CLASS_LINES_MAX or one.methods > CLASS_METHODS_MAX:
            yield "class", plain(name), f"{path}:{line}", f"{one.lines} lines and {one.methods} methods"
    for tag in tags:
        lines = tag["end"] - tag["line"] + 1 if tag["kind"] == "function" and "end" in tag else 0
        if lines > FUNCTION_LINES_MAX:
            scope = plain(tag.get("scope", ""))
            name = f"{scope}::{tag['name']}" if scope else f"{tag['path']}:{tag['name']}"
            yield "function", name, f"{tag['path']}:{tag['line']}", f"{lines} lines"
    for cycle in cycles_of(includes(names)):
        yield "cycle", cycle[0], cycle[0], f"includes itself through {', '.join(cycle[1:])}"


def print_largest(tags):
    for name, one in sorted(classes_of(tags).items(), key=lambda item: -item[1].lines)[:40]:
        print(f"{one.lines:5} lines {one.methods:3} methods  {plain(name)}")
    functions = [tag for tag in tags if tag["kind"] == "function" and "end" in tag]
    for tag in sorted(functions, key=lambda tag: tag["line"] - tag["end"])[:20]:
        print(f"{tag['end'] - tag['line'] + 1:5} lines  {tag['name']} ({tag['path']}:{tag['line']})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="print the largest classes and functions")
    options = parser.parse_args()
    names = sources()
    try:
        tags = read_tags(names)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print(f"SKIPPED: Universal Ctags cannot be used ({error}); Debian's package universal-ctags has it")
        return SKIPPED
    if options.all:
        print_largest(tags)
        return 0
    rows = read_exceptions()
    used, faults = set(), []
    for kind, name, place, text in violations(names, tags):
        if (kind, name) in rows:
            used.add((kind, name))
        else:
            faults.append(f"{place}: the {kind} {name}: {text}")
    for key in rows.keys() - used:
        number, reason = rows[key]
        text = f"{EXCEPTIONS.relative_to(ROOT)}:{number}: the {key[0]} {key[1]} needs no exception any more"
        if reason == BEING_SPLIT:
            print(text)
        else:
            faults.append(text)
    for fault in faults:
        print(fault)
    print(f"{len(names)} files, {len(faults)} violations, {len(used)} exceptions")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
