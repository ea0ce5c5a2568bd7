#include "text.h"

#include <cstdint>
#include <fmt/format.h>
#include <iterator>

#include "fjord/common/coding.h"

namespace fjord {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

/// The length of the well-formed sequence that begins with the non-ASCII byte text[at]; 0 if there is none.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() - at < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[at + i])) return 0;
  }
  // Refuses overlong forms, surrogates, and values above the last code point.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

}  // namespace

std::size_t utf8_prefix(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8 && (load_fixed<std::uint64_t>(text.data() + at) & kHighBits) == 0) {
      at += 8;
    } else if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
    } else {
      const std::size_t length = sequence_length(text, at);
      if (length == 0) return at;
      at += length;
    }
  }
  return at;
}

std::string quoted(std::string_view text, std::size_t bytes_max) {
  std::string out = "\"";
  for (char c : text.substr(0, bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out.push_back(c);
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    }
  }
  out += text.size() > bytes_max ? "...\"" : "\"";
  return out;
}

}  // namespace fjord
