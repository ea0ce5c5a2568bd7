#include "import_progress.h"

#include <charconv>
#include <fmt/format.h>
#include <zlib.h>

namespace fjord {
namespace {

constexpr std::string_view kPrefix = "fjord-import-2 ";
constexpr std::string_view kFormerPrefix = "fjord-import-1 ";

std::string checksum_of(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const Bytef*>(text.data());
  return fmt::format("{:08x}", ::crc32(0, bytes, static_cast<uInt>(text.size())));
}

}  // namespace

std::string import_progress_text(std::string_view input, std::uint64_t done) {
  const std::string text = fmt::format("{}{} {} ", kPrefix, input, done);
  return text + checksum_of(text) + '\n';
}

Result<std::uint64_t> parse_import_progress(std::string_view text, std::string_view input) {
  const bool is_former = text.starts_with(kFormerPrefix);
  const std::string start = fmt::format("{}{} ", is_former ? kFormerPrefix : kPrefix, input);
  if (!text.starts_with(start)) {
    return Status(StatusCode::InvalidArgument, fmt::format("not a progress file of {}", input));
  }
  std::uint64_t done = 0;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data() + start.size(), end, done);
  const std::string expected = is_former ? fmt::format("{}{}\n", start, done) : import_progress_text(input, done);
  if (number.ec != std::errc() || text != expected) {
    return Status(StatusCode::InvalidArgument, "is damaged: its checksum is wrong, or its end is missing");
  }
  return done;
}

}  // namespace fjord
