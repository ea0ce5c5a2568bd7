#include "fjord/common/printable.h"

#include <cstdint>
#include <fmt/format.h>
#include <iterator>

namespace fjord {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool is_valid = false;  ///< Without it `code` is the first byte, which belongs to no character of UTF-8.
};

/// Returns the first character of a text that is not empty.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t head = byte(0);
  if (head < 0x80) return {head, 1, true};
  const std::size_t bytes = head >= 0xf0 ? 4 : head >= 0xe0 ? 3 : 2;
  if (head < 0xc2 || head > 0xf4 || text.size() < bytes) return {head, 1, false};
  std::uint32_t code = head & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {head, 1, false};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool is_short = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  if (is_short || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {head, 1, false};
  return {code, bytes, true};
}

bool is_plain(const Character& one) {
  if (!one.is_valid || one.code < 0x20 || (one.code >= 0x7f && one.code < 0xa0)) return false;
  const bool ends_line = one.code == 0x2028 || one.code == 0x2029;
  const bool turns = (one.code >= 0x202a && one.code <= 0x202e) || (one.code >= 0x2066 && one.code <= 0x2069);
  return !ends_line && !turns;
}

void append_escaped(std::string& to, const Character& one) {
  if (one.code == '\n') {
    to += "\\n";
  } else if (one.code == '\r') {
    to += "\\r";
  } else if (one.code == '\t') {
    to += "\\t";
  } else if (!one.is_valid || one.code < 0x80) {
    fmt::format_to(std::back_inserter(to), "\\x{:02x}", one.code);
  } else {
    fmt::format_to(std::back_inserter(to), "\\u{{{:x}}}", one.code);
  }
}

}  // namespace

bool is_printable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character one = first_of(text.substr(at));
    if (!is_plain(one)) return false;
    at += one.bytes;
  }
  return true;
}

std::string to_printable(std::string_view text, std::size_t bytes_max) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const Character one = first_of(text.substr(at));
    const std::size_t before = shown.size();
    if (is_plain(one)) {
      shown += text.substr(at, one.bytes);
    } else {
      append_escaped(shown, one);
    }
    if (shown.size() > bytes_max) {
      shown.resize(before);
      return shown + fmt::format("... ({} bytes more)", text.size() - at);
    }
    at += one.bytes;
  }
  return shown;
}

}  // namespace fjord
