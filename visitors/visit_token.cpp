#include "fjord/visitors/visit_token.h"

#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <optional>

#include "fjord/common/hash.h"

namespace fjord::visitors {
namespace {

constexpr std::string_view kPrefix = "fjord-visit-";
constexpr std::string_view kVersion = "1";

std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Up to the next `separator`, which is taken off `rest` too.
std::string_view cut(std::string_view& rest, char separator) {
  const std::size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return part;
}

Status wrong(const char* what) { return {StatusCode::InvalidArgument, std::string("the progress token ") + what}; }

}  // namespace

std::string VisitToken::to_text() const {
  std::string text = fmt::format("{}{}:{:x}:", kPrefix, kVersion, question);
  const char* separator = "";
  for (const PositionRange& range : done.ranges()) {
    fmt::format_to(std::back_inserter(text), "{}{:x}-{:x}", separator, range.first, range.last);
    separator = ",";
  }
  return fmt::format("{}:{:016x}", text, hash64(text));
}

Result<VisitToken> VisitToken::parse(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  if (!text.starts_with(kPrefix)) return wrong("is none: it does not begin with \"fjord-visit-\"");
  std::string_view rest = text.substr(kPrefix.size());
  if (const std::string_view version = cut(rest, ':'); version != kVersion) {
    return wrong("is of another version than this program knows");
  }
  const std::size_t last_colon = text.rfind(':');
  const auto checksum = hex(text.substr(last_colon + 1));
  if (!checksum || *checksum != hash64(text.substr(0, last_colon))) return wrong("is damaged: its checksum is wrong");
  VisitToken token;
  const auto question = hex(cut(rest, ':'));
  if (!question) return wrong("is malformed");
  token.question = *question;
  std::string_view ranges = cut(rest, ':');
  while (!ranges.empty()) {
    std::string_view range = cut(ranges, ',');
    const auto first = hex(cut(range, '-'));
    const auto last = hex(range);
    if (!first || !last || *first > *last || *last > kLastPosition) return wrong("is malformed");
    token.done.add({*first, *last});
  }
  return token;
}

}  // namespace fjord::visitors
