#include "text.h"

#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <utf8proc.h>

#include "fjord/common/coding.h"

namespace fjord {

std::size_t utf8_prefix(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8 && (load_fixed<std::uint64_t>(text.data() + at) & kHighBits) == 0) {
      at += 8;
    } else if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
    } else {
      utf8proc_int32_t character = 0;
      const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                                       static_cast<utf8proc_ssize_t>(text.size() - at), &character);
      if (length <= 0) return at;
      at += static_cast<std::size_t>(length);
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
