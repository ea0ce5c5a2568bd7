"""Draws comments of the sources at random, for a review: can somebody who has not seen the code understand each one?

    python3 -B test/house/draw_comments.py --seed 1 --count 100 [--folder storage]

Prints each as file:line, its text and the code that it stands at. The same seed draws the same comments of the same tree.
"""

import argparse
import random
import re
import sys

import house_rules


def blocks(name, text):
    """Returns the comments of a file as (file, line, text, code); lines that follow each other are one comment."""
    lines = text.splitlines()

    def code_at(first, count):
        before = re.sub(r"\s*//.*", "", lines[first - 1]).strip()
        after = lines[first - 1 + count].strip() if first - 1 + count < len(lines) else ""
        return before or after

    found = []
    for number, comment, begins in house_rules.comments(text):
        if begins or not found:
            found.append((name, number, [comment]))
        else:
            found[-1][2].append(comment)
    return [(name, number, "\n".join(words), code_at(number, len(words))) for name, number, words in found
            if any(words) and not re.match(r"namespace\b|NOLINT", words[0])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", required=True, help="any text")
    parser.add_argument("--count", type=int, default=100, help="how many comments (100)")
    parser.add_argument("--folder", default="", help="only files below this folder of the repository")
    options = parser.parse_args()
    found = [block for name, text in sorted(house_rules.files()) if name.endswith((".h", ".cpp")) and name.startswith(options.folder)
             for block in blocks(name, text)]
    drawn = random.Random(options.seed).sample(found, min(options.count, len(found)))
    for name, line, text, code in sorted(drawn):
        print(f"{name}:{line}: {code}\n    " + text.replace("\n", "\n    "))
    print(f"{len(drawn)} of {len(found)} comments", file=sys.stderr)


if __name__ == "__main__":
    main()
