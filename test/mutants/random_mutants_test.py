"""`./run mutants random` on a module of one file with a test of a few lines."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import run as planted
import random_mutants

SOURCE = """\
int twice(int n) {
  int result = 0;
  if (n < 0) {
    result = -1;
  }
  if (n > 5 && n < 9) {
    result = 70;
  }
  result = result + 1;
  return result + 2 * n;
}
bool is_even(int n) {
  return n % 2 == 0;
}
int never(int n) {
  return n + 1;
}
int last = 0;
void note(int n) {
  last = n + 1;
}
"""
TEST = """\
int twice(int); bool is_even(int); void note(int);
int main() { note(1); return twice(3) == 7 && twice(-1) == -2 && twice(7) == 85 && is_even(4) && !is_even(5) ? 0 : 1; }
"""
NINJA = """\
rule cc
  command = g++ -std=c++20 -Wall -Wextra -Werror -c $in -o $out
rule ld
  command = g++ $in -o $out
build lib.dir/thing.cpp.o: cc ../thing/thing.cpp
build thing_test.dir/test.cpp.o: cc ../test/thing/test.cpp
build thing_test: ld lib.dir/thing.cpp.o thing_test.dir/test.cpp.o
"""


class RandomMutantsTest(unittest.TestCase):
    def test_from_the_choice_to_the_diff(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name) / "root"
            copy = pathlib.Path(name) / "copy"
            for folder in (root, copy):
                for path, text in {"thing/thing.cpp": SOURCE, "test/thing/test.cpp": TEST}.items():
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path).write_text(text)
            (root / "test" / "thing" / "CMakeLists.txt").write_text("fjord_test(NAME thing_test SOURCES test.cpp)\n")
            (copy / "build").mkdir()
            (copy / "build" / "build.ninja").write_text(NINJA)
            random_mutants.ROOT, random_mutants.COPY, random_mutants.BUILD = root, copy, copy / "build"
            random_mutants.HEADER = copy / "fjord_mutants.h"
            planted.run("git", "-C", root, "init", "-q")
            planted.run("git", "-C", root, "add", "-A")

            mutants = random_mutants.choose_mutants(["thing"], 3, 50)
            self.assertEqual(mutants[0][:6], random_mutants.choose_mutants(["thing"], 3, 50)[0][:6])
            self.assertGreaterEqual(len(mutants), 8)
            (copy / "fjord_mutants.h").write_text(random_mutants.HEADER_TEXT % (len(mutants) + 2))
            bad = mutants[0]._replace(number=len(mutants) + 1, line=5, text="  this_does_not_compile; }")
            compiled = random_mutants.build(random_mutants.programs_of("thing"), mutants + [bad])
            self.assertNotIn(bad, compiled)
            self.assertGreaterEqual(len(compiled), 7)

            runs = random_mutants.first_runs(["thing_test"], 60)
            met = {one.line for one in compiled if one.number in runs["thing_test"][1]}
            self.assertNotIn(16, met)  # Never called.
            self.assertIn(13, met)
            missed = [one for one in compiled if one.line in met and not random_mutants.judge(one, runs, 60)]
            self.assertEqual({one.line for one in missed} - {20, 3, 6}, set())  # No test sees what note() keeps.
            self.assertIn(20, {one.line for one in missed})
            noticed = [one for one in compiled if one.line in met and one not in missed]
            self.assertGreaterEqual(len(noticed), 4)
            diff = random_mutants.as_diff(missed)
            self.assertIn("-  last = n + 1;", diff)
            self.assertIn("+++ b/thing/thing.cpp", diff)


if __name__ == "__main__":
    unittest.main()
