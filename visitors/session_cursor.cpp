#include "fjord/visitors/session_cursor.h"

#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "cursor_text.h"
#include "fjord/common/hash.h"

namespace fjord::visitors {
namespace {

constexpr std::string_view kVisitPrefix = "fjord-visit-";
constexpr std::string_view kVisitVersion = "1";

Status wrong_session_cursor(const char* what) {
  return {StatusCode::InvalidArgument, std::string("the cursor of the visit ") + what};
}

}  // namespace

void SessionCursor::seal(std::string_view text) { beside = hash64(without_space(text)); }

Status SessionCursor::open_seal(std::string_view text) {
  const std::optional<std::uint64_t> expected = std::exchange(beside, std::nullopt);
  if (!expected || *expected == hash64(without_space(text))) return Status::ok();
  return wrong_session_cursor("is damaged: the text that is kept with it is not the one that was written");
}

std::string SessionCursor::to_text() const {
  std::string text = fmt::format("{}{}:{:x}:", kVisitPrefix, kVisitVersion, question);
  const char* separator = "";
  for (const PositionRange& range : done.ranges()) {
    fmt::format_to(std::back_inserter(text), "{}{:x}-{:x}", separator, range.first, range.last);
    separator = ",";
  }
  if (beside) fmt::format_to(std::back_inserter(text), ":{:016x}", *beside);
  return fmt::format("{}:{:016x}", text, hash64(text));
}

Result<SessionCursor> SessionCursor::parse(std::string_view text) {
  text = without_space(text);
  if (!text.starts_with(kVisitPrefix))
    return wrong_session_cursor("is not one: it does not begin with \"fjord-visit-\"");
  std::string_view rest = text.substr(kVisitPrefix.size());
  if (const std::string_view version = cut(rest, ':'); version != kVisitVersion) {
    return wrong_session_cursor("is of another version than this program knows");
  }
  const std::size_t last_colon = text.rfind(':');
  const auto checksum = parse_hex(text.substr(last_colon + 1));
  if (!checksum || *checksum != hash64(text.substr(0, last_colon)))
    return wrong_session_cursor("is damaged: its checksum is wrong");
  SessionCursor cursor;
  const auto question = parse_hex(cut(rest, ':'));
  if (!question) return wrong_session_cursor("is malformed");
  cursor.question = *question;
  std::string_view ranges = cut(rest, ':');
  while (!ranges.empty()) {
    std::string_view range = cut(ranges, ',');
    const auto first = parse_hex(cut(range, '-'));
    const auto last = parse_hex(range);
    if (!first || !last || *first > *last || *last > kLastPosition) return wrong_session_cursor("is malformed");
    cursor.done.add({*first, *last});
  }
  if (rest.find(':') != std::string_view::npos) {
    cursor.beside = parse_hex(cut(rest, ':'));
    if (!cursor.beside) return wrong_session_cursor("is malformed");
  }
  return cursor;
}

}  // namespace fjord::visitors
