"""Breaks the lines of pages at 120 columns: paragraphs and items of lists that have a longer line are filled again.

    python3 -B test/house/reflow.py [FILE...]        # without files: all .md files under version control

Tables, code, headings, definitions of links and HTML stay as they are, and so do links and `code` within a line. A page that another
program makes is left out.
"""

import pathlib
import re
import sys

COLUMNS = 120
GENERATED = {"docs/reference/command-line.md", "docs/reference/configuration.md", "docs/reference/metrics.md", "docs/http/reference.md"}
FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])(\s+)(?=\S)")
VERBATIM = re.compile(r"\s*(\||#{1,6}\s|<|>|\[[^\]]+\]:\s|(-{3,}|\*{3,}|={3,})\s*$)")
WORD = re.compile(r"(?:`+[^`]*`+|\[[^\]]*\](?:\([^)\s]*\))?|\S)+")
NOT_FIRST = re.compile(r"([-*+]|\d+[.)]|#+|[>|=~<].*)$")  # Would begin something else at the beginning of a line.


def words_of(text):
    """Returns what may stand at the beginning of a line each: words, links and `code`, with what has to follow them."""
    words = []
    for word in WORD.findall(text):
        if words and NOT_FIRST.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    return words


class Block:
    """Lines that are filled together. `first` and `rest` stand before the first line and the others."""

    def __init__(self, number, first, rest, text):
        self.number, self.first, self.rest = number, first, rest
        self.lines = [first + text]
        self.texts = [text]

    def add(self, line):
        self.lines.append(line)
        self.texts.append(line.strip(" ") if not line.endswith("  ") else line.lstrip(" "))

    def filled(self):
        """Returns the block with lines that are short enough, as far as words permit."""
        parts, part = [], []
        for text in self.texts:
            part.append(text)
            if text.endswith("  "):  # The line ends there.
                parts.append(part)
                part = []
        parts += [part] if part else []
        result, start = [], self.first
        for part in parts:
            line = start
            for word in words_of(" ".join(part)):
                is_begun = line not in (self.first, self.rest)
                if is_begun and len(line) + 1 + len(word) > COLUMNS:
                    result.append(line)
                    line, is_begun = self.rest, False
                line += (" " if is_begun else "") + word
            result.append(line + ("  " if part[-1].endswith("  ") else ""))
            start = self.rest
        return result


def blocks(text):
    """Yields each Block, and each other line as it is."""
    block, fence, item_indents, was_blank, is_code = None, None, [], True, False
    for number, line in enumerate(text.splitlines(), 1):
        found = FENCE.match(line)
        indent = len(line) - len(line.lstrip(" "))
        inner = item_indents[-1] if item_indents else 0
        if fence or found:
            if block:
                yield block
                block = None
            if found:
                fence = None if fence == found.group(1) else fence or found.group(1)
            yield line
            was_blank = False
            continue
        if not line.strip():
            if block:
                yield block
                block = None
            yield line
            was_blank = True
            continue
        if was_blank:
            while item_indents and indent < item_indents[-1]:
                item_indents.pop()
            inner = item_indents[-1] if item_indents else 0
        item = ITEM.match(line)
        is_code = block is None and indent >= inner + 4 and (was_blank or is_code)
        if is_code or VERBATIM.match(line):
            if block:
                yield block
                block = None
            yield line
            is_code = is_code or line.startswith("#")
        elif item:
            if block:
                yield block
            while item_indents and indent < item_indents[-1]:
                item_indents.pop()
            item_indents.append(item.end())
            block = Block(number, item.group(), " " * item.end(), line[item.end():])
        elif block:
            block.add(line)
        else:
            block = Block(number, line[:indent], line[:indent], line[indent:])
        was_blank = False
    if block:
        yield block


def is_too_long(block):
    return any(len(line.rstrip()) > COLUMNS for line in block.lines) and block.filled() != block.lines


def reflow(text):
    lines = []
    for block in blocks(text):
        lines += [block] if isinstance(block, str) else block.filled() if is_too_long(block) else block.lines
    return "\n".join(lines) + "\n"


def long_lines(text):
    """Yields the number of each line that is too long and can be broken."""
    for block in blocks(text):
        if not isinstance(block, str) and is_too_long(block):
            yield block.number + next(i for i, line in enumerate(block.lines) if len(line.rstrip()) > COLUMNS)


def main():
    import house_rules
    for name, text in house_rules.files():
        if not name.endswith(".md") or name in GENERATED or sys.argv[1:] and name not in sys.argv[1:]:
            continue
        new = reflow(text)
        assert new.split() == text.split(), name
        if new != text:
            (house_rules.ROOT / name).write_text(new, encoding="utf-8")
            print(name)


if __name__ == "__main__":
    main()
