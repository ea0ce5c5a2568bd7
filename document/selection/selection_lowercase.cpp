#include "selection_lowercase.h"

#include <algorithm>
#include <utf8proc.h>

namespace fjord::selection {

std::optional<std::string_view> lowercase(std::string_view text, Scratch& scratch) {
  if (!scratch.budget().spend(text.size())) return std::nullopt;
  const bool is_ascii = std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
  // A character of two bytes can become one of three.
  char* const begin = scratch.take(is_ascii ? text.size() : text.size() + text.size() / 2 + 1);
  if (begin == nullptr) return std::nullopt;
  char* end = begin;
  if (is_ascii) {
    for (const char c : text) *end++ = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    return std::string_view(begin, text.size());
  }
  constexpr std::size_t kStepsOfByte = 8;
  if (!scratch.budget().spend(kStepsOfByte * text.size())) return std::nullopt;
  while (!text.empty()) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                    static_cast<utf8proc_ssize_t>(text.size()), &character);
    if (bytes <= 0) {
      *end++ = text[0];
      text.remove_prefix(1);
      continue;
    }
    end += utf8proc_encode_char(utf8proc_tolower(character), reinterpret_cast<utf8proc_uint8_t*>(end));
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return std::string_view(begin, static_cast<std::size_t>(end - begin));
}

}  // namespace fjord::selection
