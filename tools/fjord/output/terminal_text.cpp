#include "output/terminal_text.h"

#include <fmt/format.h>
#include <iterator>

namespace fjord::cli {

std::string terminal_text(std::string_view text) {
  constexpr unsigned char kHeadOfC1 = 0xc2;
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : '\0';
    const bool is_c1 = byte == kHeadOfC1 && next >= 0x80 && next < 0xa0;
    if (is_c1 || (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      fmt::format_to(std::back_inserter(shown), "\\u{:04x}", is_c1 ? next : byte);
      if (is_c1) ++i;
    } else {
      shown += text[i];
    }
  }
  return shown;
}

}  // namespace fjord::cli
