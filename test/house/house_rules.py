"""Rules of the house that a program can check, over all files under version control:

- a comment of C++ begins with what it is about: not with "Of", "What of", "Which", "Who" and the like;
- a function that a comment names as `name()` is there;
- a link of a page leads to a file of the repository, and so does a page that any text names as `docs/….md`;
- no file of code has more than 800 lines;
- lines of pages end at 120 columns, but for tables and code (reflow.py breaks them);
- a file that uses fmt includes a header of it, itself or by its own header: sources are compiled in groups, and another source of a group
  may have included it;
- comments, pages, descriptions and texts of the programs have no "somebody", "nobody", "anew" or "so many";
- a text of the programs says "not a slice: 5/4 (expected K/N)", and not "5/4 is no slice";
- the papers are cited by the keys of docs/references.md;
- nothing names a path of the machine that it was written on;
- every setting is declared once, in the table of common/include/fjord/common/setting.h: no other code of the product
  declares a tunable with bounds of its own, and each row of the table is used.

Prints each violation as file:line, and ends with 1 if there is one.
"""

import pathlib
import re
import subprocess
import sys

import reflow

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES_MAX = 800
SETTINGS = "common/include/fjord/common/setting.h"
BAD_START = re.compile(r"(Of|What of|Which|Who|Whoever|Nobody|Somebody|Those of|That of)\b(?!:)")
CALL = re.compile(r"(?<![\w.:>`-])(?:\w+::)*(~?[A-Za-z_]\w*)\(\)")
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
PAGE = re.compile(r"(?<![\w./-])docs/[\w/.-]+\.md\b")
MACHINE = re.compile(r"(?<![\w/.])/(?:work|root|home/\w+)/\w")
VAGUE = re.compile(r"(?<![a-z])(somebody|nobody|anew|so many)(?![a-z])", re.I)
IS_NO = re.compile(r"(?<!there )\b(?:is|are) no\b(?! (?:longer|more)\b)", re.I)
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
# What was measured or found on a day keeps its words, and so do names of tests.
VAGUE_ALLOWED = ("docs/experiments/", "test/", "bench/", "python/tests/")
PROGRAM_ALLOWED = ("test/", "bench/", "python/tests/")
SEED = re.compile(r"\bseeds? `?00\d\b", re.I)
# Functions of the language, the system or of text that a user writes, which the sources do not define.
KNOWN = {"main", "count", "avg", "min", "max", "sum", "distinct", "now", "size", "begin", "end"}


def files():
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        path = ROOT / name
        if path.is_file() and not name.startswith("test/data/") and "/corpus/" not in name:
            try:
                yield name, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def comments(text):
    """(line, text, whether it begins a comment) of C++ comments that stand in `//` lines."""
    before = None
    for number, line in enumerate(text.splitlines(), 1):
        whole = re.match(r"\s*//+[<!]? ?(.*)", line)
        trailing = None if whole else re.search(r"[;,{}()>\w] +///?<? (.*)", line)
        found = whole or (trailing if trailing and line.count('"', 0, trailing.start()) % 2 == 0 else None)
        if found:
            # Under a comment behind code, only `///<` continues it.
            continues = whole and before and (not before[1] or line.lstrip().startswith("///<"))
            yield number, found.group(1), not continues
        before = (number, trailing) if found else None


def vague_words(name, text):
    """Yields the violations of the rules about words."""
    if name.endswith((".h", ".cpp")):
        for number, comment, _ in comments(text):
            if found := VAGUE.search(comment):
                yield f"{name}:{number}: \"{found.group()}\" in a comment: say who, or how many"
    elif name.endswith((".md", ".thrift", ".yaml", ".yml")) and not name.startswith(VAGUE_ALLOWED):
        for number, line in enumerate(text.splitlines(), 1):
            if found := VAGUE.search(line):
                yield f"{name}:{number}: \"{found.group()}\": say who, or how many"
    if not name.endswith((".h", ".cpp", ".py", ".lua")) or name.startswith(PROGRAM_ALLOWED):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for words in TEXT.findall(re.sub(r"^\s*(//|#(?!include)).*", "", line)):
            if found := VAGUE.search(words):
                yield f"{name}:{number}: \"{found.group()}\" in a text: say who, or how many"
            if found := IS_NO.search(words):
                yield f"{name}:{number}: \"{found.group()}\" in a text: say \"not a …\""


def settings_declared_elsewhere(sources):
    """Yields the violations of the rule about settings."""
    rows = re.findall(r'^    \{"([\w.]+)", (?:Integer|Bytes|Time|Ratio|Boolean),', sources[SETTINGS], re.MULTILINE)
    if len(rows) < 70:
        yield f"{SETTINGS}:1: only {len(rows)} settings were found in the table"
    for name in sorted({name for name in rows if rows.count(name) > 1}):
        yield f"{SETTINGS}:1: {name} is declared twice"
    product = {name: text for name, text in sources.items()
               if name.endswith((".h", ".cpp")) and not name.startswith(("test/", "bench/")) and name != SETTINGS}
    for name, text in product.items():
        if name.startswith("common/"):
            continue
        for found in re.finditer(r"\bdeclare\(\s*\{\s*\.name|Tunable::Declaration", text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{name}:{line}: a setting with bounds of its own; declare it in {SETTINGS}"
    code = "\n".join(product.values())
    keys = dict(re.findall(r'^    \{"([\w.]+)", .*?"([\w.]*)",\s+k(?:Live|Start),', sources[SETTINGS], re.MULTILINE))
    for name in rows:
        words = [f'"{name}"', f'"{keys.get(name) or name}"', f'"{name.split(".")[1]}"', f'"{re.sub("_(warn|max)$", "", name.split(".")[1])}"',
                 f'"{name.split("space_")[-1]}"']
        if not any(word in code for word in words):
            yield f"{SETTINGS}:1: nothing uses {name}"


def fmt_not_included(sources):
    """Yields the violations of the rule about fmt."""
    for name, text in sources.items():
        own_header = sources.get(str(pathlib.PurePath(name).with_suffix(".h")), "")
        if name.endswith((".h", ".cpp")) and re.search(r"\bfmt::\w+\(", text) and "#include <fmt/" not in text + own_header:
            yield f"{name}:1: uses fmt and does not include it"


def main():
    faults = []
    sources = dict(files())
    code = "\n".join(text for name, text in sources.items() if name.endswith((".h", ".cpp", ".thrift", ".py", ".lua", ".c")))
    without_comments = re.sub(r"//[^\n]*", "", code)
    words = set(re.findall(r"\w+", without_comments)) | KNOWN
    for name, text in sources.items():
        if name == "test/house/house_rules.py":
            continue
        lines = text.splitlines()
        if name.endswith((".h", ".cpp")):
            if len(lines) > LINES_MAX:
                faults.append(f"{name}:1: {len(lines)} lines; the most is {LINES_MAX}")
            for number, comment, begins in comments(text):
                if begins and BAD_START.match(comment):
                    faults.append(f"{name}:{number}: a comment begins with \"{comment.split()[0]}\"")
                for called in CALL.findall(comment):
                    if called.lstrip("~") not in words:
                        faults.append(f"{name}:{number}: there is no {called}()")
        for number, line in enumerate(lines, 1):
            if MACHINE.search(line):
                faults.append(f"{name}:{number}: a path of this machine")
            for page in PAGE.findall(line):
                if not (ROOT / page).is_file():
                    faults.append(f"{name}:{number}: there is no page {page}")
            if SEED.search(line):
                faults.append(f"{name}:{number}: cites a seed; docs/references.md has the keys")
            if name.endswith(".md"):
                for link in LINK.findall(line):
                    target = link.split("#")[0]
                    if target and not re.match(r"\w+:", target) and not (ROOT / name).parent.joinpath(target).exists():
                        faults.append(f"{name}:{number}: the link {link} leads nowhere")
        faults += vague_words(name, text)
        if name.endswith(".md") and name not in reflow.GENERATED:
            faults += [f"{name}:{number}: more than {reflow.COLUMNS} columns; test/house/reflow.py breaks them" for number in reflow.long_lines(text)]
    faults += settings_declared_elsewhere(sources)
    faults += fmt_not_included(sources)
    for fault in faults:
        print(fault)
    print(f"{len(sources)} files, {len(faults)} violations")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
