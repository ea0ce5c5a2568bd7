#include "keys.h"

#include <algorithm>
#include <fmt/core.h>

#include "fjord/common/hash.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kKeyInIdMax = 512;

bool needs_escape(unsigned char c, bool escape_high) {
  return c < 0x20 || c == 0x7f || c == '%' || (escape_high && c >= 0x80);
}

std::string percent_encoded(std::string_view key, bool escape_high) {
  std::string text;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (needs_escape(byte, escape_high)) {
      text += fmt::format("%{:02X}", byte);
    } else {
      text += c;
    }
  }
  return text;
}

/// Returns the length of the UTF-8 character at the beginning; 0 if it is malformed.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) return 0;
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// What stands behind a text that replaces a key.
std::string mark_of(std::string_view key) { return fmt::format("%~{:016x}{:016x}", hash64(key, 1), hash64(key, 2)); }

}  // namespace

bool is_plain_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0 || static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f) return false;
    // Control characters U+0080 to U+009F.
    if (length == 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_plain_name(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), is_plain);
}

std::string printable_key(std::string_view key) {
  return is_utf8(key) ? std::string(key) : percent_encoded(key, true) + mark_of(key);
}

std::string key_in_id(std::string_view key) {
  std::string text = percent_encoded(key, !is_plain_utf8(key));
  if (text.size() <= kKeyInIdMax) return text;
  // The hash identifies a long key. The beginning of the key only helps people who read the id.
  std::size_t cut = 256;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return text.substr(0, cut) + mark_of(key);
}

}  // namespace fjord::mapreduce
