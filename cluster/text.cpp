#include "text.h"

#include <cmath>
#include <fmt/format.h>

namespace fjord::cluster_text {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\r\f\v";

}  // namespace

std::optional<std::string_view> next_token(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) {
    text = {};
    return std::nullopt;
  }
  const std::size_t end = std::min(text.find_first_of(kWhiteSpace, begin), text.size());
  const std::string_view token = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return token;
}

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        if (c <= ' ' || c > '~') {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out;
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char kind = ++i < text.size() ? text[i] : '\0';
    switch (kind) {
      case 't':
        out += '\t';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 'f':
        out += '\f';
        break;
      case '\\':
      case '"':
        out += kind;
        break;
      case 'x': {
        unsigned value = 0;
        const std::string_view digits = text.substr(std::min(i + 1, text.size()), 2);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) {
          return Status(StatusCode::InvalidArgument, fmt::format("\\x needs two hexadecimal digits in '{}'", text));
        }
        out += static_cast<char>(value);
        i += 2;
        break;
      }
      default:
        return Status(StatusCode::InvalidArgument, fmt::format("unknown escape in '{}'", text));
    }
  }
  return out;
}

std::optional<double> parse_amount(std::string_view text) {
  const std::optional<double> value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || std::signbit(*value)) return std::nullopt;
  return value;
}

}  // namespace fjord::cluster_text
