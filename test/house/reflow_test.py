"""reflow.py fills what is too long, and leaves alone what is not a paragraph or an item of a list."""

import unittest

import reflow

WORDS = " ".join(["word"] * 40)


class ReflowTest(unittest.TestCase):
    def assert_stays(self, text):
        self.assertEqual(reflow.reflow(text), text)
        self.assertEqual(list(reflow.long_lines(text)), [])

    def test_a_long_paragraph_is_filled_and_a_short_one_stays(self):
        text = f"short\nlines\n\n{WORDS}\nlast\n"
        self.assertEqual(list(reflow.long_lines(text)), [4])
        lines = reflow.reflow(text).splitlines()
        self.assertEqual(lines[:3], ["short", "lines", ""])
        self.assertTrue(all(len(line) <= reflow.COLUMNS for line in lines))
        self.assertTrue(lines[-1].endswith("word last"))
        self.assert_stays(reflow.reflow(text))

    def test_items_keep_their_indent(self):
        lines = reflow.reflow(f"1. {WORDS}\n2. two\n   - {WORDS}\n").splitlines()
        self.assertEqual([line[:5] for line in lines], ["1. wo", "   wo", "2. tw", "   - ", "     "])

    def test_tables_code_headings_and_definitions_stay(self):
        for line in (f"| {WORDS} |", f"    {WORDS}", f"```sh\n{WORDS}\n```", f"# {WORDS}", f"[x]: {WORDS}"):
            self.assert_stays(f"before\n\n{line}\n\nafter\n")

    def test_code_in_an_item_stays(self):
        self.assert_stays(f"- item\n\n      {WORDS}\n      - {WORDS}\n")

    def test_links_and_code_within_a_line_are_not_broken(self):
        for whole in ("[a long name of a link](page.md)", "`two words of code`"):
            self.assertIn(whole, reflow.reflow(f"{'x' * 100} {whole} {WORDS}\n").replace("\n", "|"))

    def test_a_line_that_ends_with_two_spaces_still_ends_there(self):
        lines = reflow.reflow(f"**Meaning**: {WORDS}  \n**Do**: this\n").splitlines()
        self.assertTrue(lines[-2].endswith("word  "))
        self.assertEqual(lines[-1], "**Do**: this")

    def test_no_line_begins_with_what_begins_a_list(self):
        for sign in ("-", "+", "1.", "#", ">"):
            text = f"{'x' * 117} a {sign} {WORDS}\n"
            self.assertFalse(any(line.startswith(sign) for line in reflow.reflow(text).splitlines()), sign)


if __name__ == "__main__":
    unittest.main()
