"""Checks rpc/generate, which makes the C++ structs of the messages from the IDL."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "rpc/generate"))

import idl  # noqa: E402
import messages  # noqa: E402

TEXT = """
/** The file. */
namespace cpp fjord.api

typedef i64 u64 (fjord.type = "std::uint64_t")
typedef i64 BucketId (fjord.type = "BucketId", fjord.header = "fjord/document/bucket_id.h")

// ----
// First (C++: first_messages.h)

enum Phase {
  UNKNOWN = 0,
  /** All is
   *  tidy. */
  CLEAN_UP = 7,
}

struct Own {
  1: optional u64 a = 0
} (fjord.header = "fjord/own.h")

// ----
// Second (C++: second_messages.h)

/** Asks. */
struct Ask {
  /** Comes first, with the higher number. */
  4: optional BucketId bucket = 0
  // A note for readers of the IDL.
  2: optional list<u64> numbers = []
  3: optional Phase phase = Phase.UNKNOWN
  5: optional u64 last = -1
  6: optional i64 version
  7: optional bool flag = true
  8: optional Own own
  9: optional list<string> assignments = [] (fjord.name = "set")
}
struct AskReply {
}

service S {
  AskReply ask(1: Ask request)
}
service T {
  /** Again. */
  AskReply ask(1: Ask request)
}
"""
HEADERS = ["first_messages.h", "second_messages.h"]


def files(text=TEXT):
    return messages.Generator(idl.parse(text)).files(HEADERS)


class MessagesGeneratorTest(unittest.TestCase):
    def test_members_have_types_defaults_and_comments(self):
        self.assertIn("""struct AskReply;
/// Asks.
struct Ask {
  using Reply = AskReply;
  static constexpr const char* kName = "ask";

  /// Comes first, with the higher number.
  BucketId bucket = {};
  std::vector<std::uint64_t> numbers = {};
  Phase phase = Phase::Unknown;
  std::uint64_t last = static_cast<std::uint64_t>(-1);
  std::optional<std::int64_t> version = {};
  bool flag = true;
  Own own = {};
  std::vector<std::string> set = {};

  friend bool operator==(const Ask&, const Ask&) = default;
};
""", files()["include/fjord/rpc/second_messages.h"])

    def test_enumerators(self):
        self.assertIn("""enum class Phase : std::int32_t {
  Unknown = 0,
  /// All is
  /// tidy.
  CleanUp = 7,
};
""", files()["include/fjord/rpc/first_messages.h"])

    def test_fields_are_listed_by_rising_number(self):
        self.assertIn("""void fields(V& visit, M& m) {
  visit(2, m.numbers);
  visit(3, m.phase);
  visit(4, m.bucket);
  visit.always(5, m.last);
  visit(6, m.version);
  visit.always(7, m.flag);
  visit(8, m.own);
  visit(9, m.set);
}
""", files()["private/message_fields.h"])

    def test_a_header_includes_what_it_uses(self):
        second = files()["include/fjord/rpc/second_messages.h"]
        for name in ("fjord/own.h", "fjord/document/bucket_id.h", "fjord/rpc/first_messages.h"):
            self.assertIn(f'#include "{name}"\n', second)
        self.assertNotIn("struct Own", files()["include/fjord/rpc/first_messages.h"])

    def test_a_call_of_two_services_is_listed_once(self):
        self.assertIn("using Request = std::variant<Ask>;", files()["include/fjord/rpc/calls.h"])
        self.assertIn("using ApiReplies = std::tuple<api::AskReply>;", files()["private/api_calls.h"])

    def refused(self, old, new, why):
        self.assertIn(old, TEXT)
        with self.assertRaisesRegex(idl.IdlError, why):
            files(TEXT.replace(old, new))

    def test_mistakes_are_refused_with_their_line(self):
        self.refused("2: optional list", "4: optional list", "line 30: Ask has the number 4")
        self.refused("6: optional i64 version", "6: i64 version", "line 33: expected optional")
        self.refused("optional Own own", "optional Other own", "line 35: the type Other is not declared above")
        self.refused("Phase.UNKNOWN", "Phase.LOST", "line 31: Phase.LOST is not a value of Phase")
        self.refused("second_messages.h", "third_messages.h", "line 26: Ask belongs to no header")
        self.refused("struct AskReply", "struct Ask", "Ask is declared twice")
        self.refused("/** Again. */\n  AskReply ask(1: Ask", "Ask ask(1: AskReply", "differs from the method")

    def test_an_unchanged_file_is_not_written_again(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "x.thrift"
            source.write_text(TEXT)
            self.assertEqual(messages.main(str(source), folder, *HEADERS), 0)
            paths = [pathlib.Path(folder) / "include/fjord/rpc" / name for name in HEADERS]
            before = [path.stat().st_mtime_ns for path in paths]
            source.write_text(TEXT.replace("/** Asks. */", "/** Asks again. */"))
            self.assertEqual(messages.main(str(source), folder, *HEADERS), 0)
            after = [path.stat().st_mtime_ns for path in paths]
            self.assertEqual(before[0], after[0])
            self.assertIn("/// Asks again.", paths[1].read_text())

    def test_a_mistake_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "x.thrift"
            source.write_text("struct X {")
            self.assertRegex(messages.main(str(source), folder, *HEADERS), r"x.thrift: line 1: expected number, found")


if __name__ == "__main__":
    unittest.main()
