#!/usr/bin/env python3
"""Makes small bugs mechanically, and counts how many of those that tests run are noticed.

`./run mutants random --seed S --count N [--folder F]` calls this. A mutation is a comparison that is another one, a condition that
is its opposite, a constant that is one more, a boundary that is one off, a call that is left out or a return that comes early, on one
line of a .cpp file. All of them are put into a copy of the sources at once, each behind a question `fjord_mutants::is(7)` that the
environment answers (FJORD_MUTANT=7), so that the copy is built once and not N times. What does not compile is taken out again.
A first run of each test program without any bug writes down which mutations it comes by (FJORD_MUTANTS_MET): others cannot be
noticed and do not count. Then each bug is tried with the programs that come by it, the fast ones first, and at last with the
simulation. The copy and its build are those of `./run mutants`.

Prints the score; what was not noticed is a diff, in build/mutants/random-S.diff. Exit code 1 if something was not noticed.
"""

import argparse
import collections
import difflib
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import time

import run as planted

ROOT, COPY, BUILD = planted.ROOT, planted.COPY, planted.BUILD
FOLDERS = ["storage", "distributor", "visitors", "mapreduce", "fleetcontroller", "client"]
SUITES = {"storage": ["provider"], "fleetcontroller": ["state_store"]}  # Folders of test/conformance.
SIMULATION = "fjord-sim --scenario chaos --seed 1 --runs 60"
# Additional mutations, because some do not compile and others are reached by no test.
SPARE = 2.0
MEMORY_BYTES = 8 << 30

HEADER = COPY / "fjord_mutants.h"
HEADER_TEXT = """\
#pragma once
#include <atomic>
#include <cstdio>
#include <cstdlib>

/// Written by test/mutants/random_mutants.py.
namespace fjord_mutants {

inline const int chosen = [] {
  const char* const text = std::getenv("FJORD_MUTANT");
  return text == nullptr ? 0 : std::atoi(text);
}();
inline std::FILE* const met_file = [] {
  const char* const path = std::getenv("FJORD_MUTANTS_MET");
  return path == nullptr ? nullptr : std::fopen(path, "ae");
}();
inline std::atomic<bool> met[%d];

inline bool is(int number) noexcept {
  if (met_file != nullptr && !met[number].exchange(true)) {
    std::fprintf(met_file, "%%d\\n", number);
    std::fflush(met_file);
  }
  return number == chosen;
}

}  // namespace fjord_mutants
"""

Mutant = collections.namedtuple("Mutant", "number file line kind before after text")  # text: what the line is in the copy

COMPARISONS = {" < ": " >= ", " <= ": " > ", " > ": " <= ", " >= ": " < ", " == ": " != ", " != ": " == "}
BOUNDARIES = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " + 1": "", " - 1": "", ".begin()": ".end()"}
LOGIC = {" && ": " || ", " || ": " && "}
CONSTANTS = {"true": "false", "false": "true"}
STATEMENT_ENDS = (";", "{", "}", ":")
NO_STATEMENT = re.compile(r"^(return|if|else|for|while|do|switch|case|default|break|continue|using|namespace|template|struct|class|"
                          r"static|constexpr|const|auto|enum|friend|public|private|protected|explicit|virtual|inline|delete|throw|"
                          r"FJORD_\w+|static_assert|co_\w+)\b")
CALL = re.compile(r"^[A-Za-z_][\w:]*((\.|->)\w+(\([^()]*\))?)*\(.*\);$")


def replaced(text, table, choose):
    """Returns `text` with one of the keys of `table` replaced, or None."""
    places = [(at.start(), key) for key in table for at in re.finditer(re.escape(key), text)
              if "<" not in key or not re.search(r"[<>]", text[max(0, at.start() - 1):at.start()] + text[at.end():at.end() + 1])]
    if not places:
        return None
    at, key = choose.choice(places)
    return text[:at] + table[key] + text[at + len(key):]


def more(text, choose):
    """Returns `text` with a number raised by one, or true for false."""
    numbers = [(at.start(), at.end()) for at in re.finditer(r"(?<![\w.'\"])\d+(?![\w.'\"])", text)]
    words = [(at.start(), at.end()) for at in re.finditer(r"\b(true|false)\b", text)]
    if not numbers and not words:
        return None
    begin, end = choose.choice(numbers + words)
    old = text[begin:end]
    return text[:begin] + (CONSTANTS[old] if old in CONSTANTS else str(int(old) + 1)) + text[end:]


def changed(expression, choose):
    """Returns (kind, changed expression) or None. Leaves strings alone."""
    if '"' in expression or "'" in expression:
        return None
    kinds = [("comparison", lambda: replaced(expression, COMPARISONS, choose)),
             ("boundary", lambda: replaced(expression, BOUNDARIES, choose)),
             ("condition", lambda: replaced(expression, LOGIC, choose)), ("constant", lambda: more(expression, choose))]
    choose.shuffle(kinds)
    for kind, make in kinds:
        after = make()
        if after is not None and after != expression:
            return kind, after
    return None


def closes_at(text, begin):
    """Returns the position of the parenthesis that closes the one at `begin`; None: on another line."""
    depth = 0
    for at in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None


def of_condition(line, choose):
    """For `if (...)` and `while (...)`: returns (kind, mutated line, function that makes the line of the copy)."""
    found = re.match(r"^(\s*(?:\} else )?(?:if|while) )\(", line)
    if not found:
        return None
    end = closes_at(line, found.end() - 1)
    if end is None:
        return None
    condition = line[found.end():end]
    if ";" in condition or re.search(r"[^=!<>]=[^=]", condition) or '"' in condition:
        return None  # A declaration.
    other = changed(condition, choose) if choose.random() < 0.6 else None
    kind, after = other or ("condition", f"!({condition})")
    head, tail = line[:found.end()], line[end:]
    return kind, head + after + tail, lambda is_it: f"{head}{is_it} ? static_cast<bool>({after}) : static_cast<bool>({condition}){tail}"


def of_statement(line, choose):
    """As of_condition(), for a statement on one line."""
    indent = line[:len(line) - len(line.lstrip())]
    text = line.strip()
    if not text.endswith(";") or text.count("(") != text.count(")") or text.count("{") != text.count("}"):
        return None
    if text.startswith("return ") or re.match(r"^[\w.\->\[\]()]+ [-+|&]?= [^=]", text):
        value = changed(text, choose)
        if value is None:
            return None
        kind, after = value
        return kind, indent + after, lambda is_it: f"{indent}if ({is_it}) {{ {after} }} else {{ {text} }}"
    if NO_STATEMENT.match(text) or not CALL.match(text):
        return None
    if choose.random() < 0.3:
        early = choose.choice(["return;", "return {};"])
        return "early return", f"{indent}{early}", lambda is_it: f"{indent}if ({is_it}) {early} {text}"
    return "call left out", indent + ";", lambda is_it: f"{indent}if (!{is_it}) {text}"


def candidates_in(path, choose):
    """Returns at most one mutation for each line."""
    lines = (ROOT / path).read_text().splitlines()
    before = ";"
    is_constant = False
    for number, line in enumerate(lines, 1):
        text = line.split("//")[0].rstrip()
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        starts, before = before.endswith(STATEMENT_ENDS), text
        is_constant = is_constant and not line.startswith("}") or "constexpr" in text and text.endswith("{")
        if not starts or is_constant or not line.startswith("  ") or "log::" in text or "//" in line:
            continue
        found = of_condition(text, choose) or of_statement(text, choose)
        if found:
            yield number, line, *found


def choose_mutants(folders, seed, count):
    """Chooses the same number of mutants for each folder; the seed decides files and lines."""
    choose = random.Random(seed)
    names = planted.run("git", "-C", ROOT, "ls-files", "*.cpp", capture_output=True, text=True).stdout.split()
    chosen, taken = [], set()
    each = -(-int(count * SPARE) // len(folders))
    for folder in folders:
        found = [(name, *one) for name in names if name.startswith(folder.rstrip("/") + "/") for one in candidates_in(name, choose)]
        found = [one for one in found if one[:2] not in taken]
        picked = choose.sample(found, min(each, len(found)))
        taken.update(one[:2] for one in picked)
        chosen += picked
    choose.shuffle(chosen)
    return [Mutant(i, name, line, kind, before, after, make(f"fjord_mutants::is({i})"))
            for i, (name, line, before, kind, after, make) in enumerate(chosen, 1)]


def put_in(mutants):
    """Writes the copy's sources with all these mutants; unchanged files keep their times."""
    by_file = collections.defaultdict(dict)
    for mutant in mutants:
        by_file[mutant.file][mutant.line] = mutant.text
    for name, texts in by_file.items():
        lines = (ROOT / name).read_text().splitlines()
        # The flag 3 of a line marker makes the rest a system header: no warning is an error.
        head = [f'#include "{HEADER}"', f'# 1 "{name}" 3']
        new = "\n".join(head + [texts.get(number, line) for number, line in enumerate(lines, 1)]) + "\n"
        target = COPY / name
        if target.read_text() != new:
            target.write_text(new)


def build(programs, mutants):
    """Builds, and removes the mutants that do not compile. Returns the rest."""
    left = list(mutants)
    while True:
        put_in(left + [])
        done = subprocess.run(["nice", "-n", "5", "ninja", "-k", "0", "-C", BUILD, *programs], capture_output=True, text=True)
        if done.returncode == 0:
            return left
        bad = {(name, int(line)) for name, line in re.findall(r"^(?:\.\./)*([\w/.]+\.cpp):(\d+):\d+: error", done.stdout, re.MULTILINE)}
        out = [mutant for mutant in left if (mutant.file, mutant.line) in bad]
        if not out:  # The error is in a header that the line uses.
            objects = re.findall(r"^FAILED: \S*?\.dir/(\S+)\.o", done.stdout, re.MULTILINE)
            out = [mutant for mutant in left if any(mutant.file.endswith("/" + name) for name in objects)]
        if not out:
            sys.exit("mutants: the copy does not build:\n" + done.stdout[-3000:])
        left = [mutant for mutant in left if mutant not in out]
        untouched = {mutant.file for mutant in out} - {mutant.file for mutant in left}
        for name in untouched:
            (COPY / name).write_bytes((ROOT / name).read_bytes())


def programs_of(folder):
    """Returns the test programs of a module, by its folder of test/."""
    module = folder.split("/")[0]
    places = [ROOT / "test" / module, *(ROOT / "test" / "conformance" / name for name in SUITES.get(module, []))]
    names = []
    for place in places:
        for path in sorted(place.rglob("CMakeLists.txt")):
            names += re.findall(r"fjord_test\(NAME (\w+)", path.read_text())
    return names


def try_test(test, environment, seconds):
    """Returns (failed or never ended, seconds taken)."""
    name, *arguments = test.split()
    program = next(path for path in BUILD.rglob(name) if path.is_file() and os.access(path, os.X_OK))
    begun = time.monotonic()

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        done = subprocess.run(["nice", "-n", "5", program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds,
                              cwd=program.parent, preexec_fn=limit, env={**os.environ, **environment})
        return done.returncode != 0, time.monotonic() - begun
    except subprocess.TimeoutExpired:
        return True, seconds


def first_runs(tests, seconds):
    """Returns by test: (seconds, numbers of the mutations that it reaches)."""
    runs = {}
    for test in tests:
        met = COPY / "met"
        met.unlink(missing_ok=True)
        failed, took = try_test(test, {"FJORD_MUTANTS_MET": str(met)}, seconds)
        if failed:
            sys.exit(f"mutants: {test} fails without any bug put in")
        runs[test] = took, set(map(int, met.read_text().split())) if met.exists() else set()
    return runs


def judge(mutant, runs, seconds):
    """Returns the test that notices the mutant, or None."""
    for test, (took, met) in sorted(runs.items(), key=lambda one: (one[0] == SIMULATION, one[1][0])):
        if mutant.number in met and try_test(test, {"FJORD_MUTANT": str(mutant.number)}, min(seconds, 10 * took + 20))[0]:
            return test
    return None


def as_diff(mutants):
    text = []
    for mutant in mutants:
        lines = (ROOT / mutant.file).read_text().splitlines()
        after = lines.copy()
        after[mutant.line - 1] = mutant.after
        text += [f"# {mutant.number}: {mutant.kind}", *difflib.unified_diff(lines, after, f"a/{mutant.file}", f"b/{mutant.file}", lineterm="", n=3)]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="./run mutants random", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="which mutations (1)")
    parser.add_argument("--count", type=int, default=60, help="how many that tests come by are tried (60)")
    parser.add_argument("--folder", action="append", help=f"where; several are possible ({', '.join(FOLDERS)})")
    parser.add_argument("--seconds", type=int, default=300, help="a test that takes longer has noticed (300)")
    parser.add_argument("--without-simulation", action="store_true", help="only the tests of the module")
    options = parser.parse_args()
    folders = options.folder or FOLDERS
    for folder in folders:
        if not (ROOT / folder).is_dir():
            parser.error(f"there is no folder {folder}")
    if options.count < 1:
        parser.error("--count: expected 1 or more")
    mutants = choose_mutants(folders, options.seed, options.count)
    tests = list(dict.fromkeys(name for folder in folders for name in programs_of(folder)))
    if not options.without_simulation:
        tests.append(SIMULATION)
    planted.copy_sources()
    HEADER.write_text(HEADER_TEXT % (len(mutants) + 1))
    planted.run("cmake", "--preset", "release", "-DFJORD_UNITY=OFF", f"-DFJORD_SHARED_DIR={ROOT.parent / 'shared'}", cwd=COPY, stdout=subprocess.DEVNULL)
    try:
        known = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], capture_output=True, text=True).stdout
        tests = [test for test in tests if f"\n{test.split()[0]}: phony" in known]
        compiled = build([test.split()[0] for test in tests], mutants)
        print(f"mutants: {len(compiled)} of {len(mutants)} compile", flush=True)
        runs = first_runs(tests, options.seconds)
        met = [mutant for mutant in compiled if any(mutant.number in numbers for _, numbers in runs.values())]
        print(f"mutants: tests come by {len(met)} of these; {min(options.count, len(met))} are tried", flush=True)
        missed, tried = [], met[:options.count]
        for mutant in tried:
            noticed = judge(mutant, runs, options.seconds)
            print(f"{'noticed' if noticed else 'MISSED':8} {mutant.number}: {mutant.file}:{mutant.line}: {mutant.kind}"
                  + (f" ({noticed})" if noticed else ""), flush=True)
            if not noticed:
                missed.append(mutant)
    finally:
        planted.copy_sources()
    diff = COPY / f"random-{options.seed}.diff"
    diff.write_text(as_diff(missed) if missed else "")
    print(f"mutants: {len(tried) - len(missed)} of {len(tried)} noticed" + (f"; the others are in {diff}" if missed else ""))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
