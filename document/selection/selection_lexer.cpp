#include "selection_lexer.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>

namespace fjord::selection {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_identifier_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_identifier_part(char c) { return is_identifier_start(c) || is_digit(c); }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

template <typename T>
std::optional<T> parse_whole(std::string_view text, int base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string shorten(std::string_view text) {
  constexpr std::size_t kShown = 40;
  return text.size() <= kShown ? std::string(text) : std::string(text.substr(0, kShown)) + "...";
}

}  // namespace

Status error_at(std::size_t column, std::string_view message) {
  return {StatusCode::InvalidSelection, fmt::format("selection, column {}: {}", column, message)};
}

Status unexpected_token(const Token& token, std::string_view expected) {
  return error_at(token.column, fmt::format("unexpected {}: expected {}", token.describe(), expected));
}

bool Token::is_keyword(std::string_view lower_case) const {
  if (kind != TokenKind::Identifier || text.size() != lower_case.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (to_lower(text[i]) != lower_case[i]) return false;
  }
  return true;
}

std::string Token::describe() const { return kind == TokenKind::End ? "end of the text" : "'" + shorten(text) + "'"; }

Status Lexer::advance() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  token_ = Token{};
  token_.column = at_ + 1;
  if (at_ == text_.size()) return Status::ok();

  const std::size_t begin = at_;
  const char c = text_[at_];
  if (is_identifier_start(c)) {
    token_.kind = TokenKind::Identifier;
    while (at_ < text_.size() && is_identifier_part(text_[at_])) ++at_;
  } else if (is_digit(c)) {
    FJORD_TRY(read_number());
  } else if (c == '"' || c == '\'') {
    FJORD_TRY(read_string(c));
  } else {
    constexpr std::string_view kTwoBytes[] = {"==", "!=", "<=", ">=", "=~"};
    constexpr std::string_view kOneByte = "=<>().[]{}+-*/%$,";
    token_.kind = TokenKind::Symbol;
    at_ += 1;
    for (const std::string_view symbol : kTwoBytes) {
      if (text_.substr(begin).starts_with(symbol)) at_ = begin + 2;
    }
    if (at_ == begin + 1 && kOneByte.find(c) == std::string_view::npos) {
      return error_at(begin + 1, fmt::format("unexpected character {}", quote(std::string_view(&c, 1))));
    }
  }
  token_.text = text_.substr(begin, at_ - begin);
  return Status::ok();
}

Status Lexer::read_number() {
  const std::size_t begin = at_;
  const std::string_view rest = text_.substr(at_);
  if (rest.starts_with("0x") || rest.starts_with("0X")) {
    at_ += 2;
    while (at_ < text_.size() && is_identifier_part(text_[at_])) ++at_;
    const auto value = parse_hex_integer(text_.substr(begin + 2, at_ - begin - 2));
    if (!value)
      return error_at(begin + 1, fmt::format("not a hexadecimal number of up to 16 digits: '{}'",
                                             shorten(text_.substr(begin, at_ - begin))));
    token_.kind = TokenKind::Integer;
    token_.integer = *value;
    return Status::ok();
  }
  bool is_float = false;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const char before = text_[at_ - (at_ > begin ? 1 : 0)];
    const bool is_sign = (c == '+' || c == '-') && to_lower(before) == 'e' && is_float;
    // A second point, or a point before a name, starts a function call.
    const bool is_name_next = at_ + 1 < text_.size() && is_identifier_start(text_[at_ + 1]);
    if (c == '.' && (is_float || is_name_next)) break;
    if (c == '.' || to_lower(c) == 'e') is_float = true;
    if (!is_identifier_part(c) && c != '.' && !is_sign) break;
    ++at_;
  }
  const std::string_view text = text_.substr(begin, at_ - begin);
  auto integer = is_float ? std::nullopt : parse_integer(text);
  token_.needs_minus = text == "9223372036854775808";
  if (token_.needs_minus) integer = std::numeric_limits<std::int64_t>::min();
  const auto number = is_float ? parse_double(text) : std::nullopt;
  if (!integer && !number)
    return error_at(begin + 1, fmt::format("not a number, or out of range: '{}'", shorten(text)));
  token_.kind = integer ? TokenKind::Integer : TokenKind::Float;
  token_.integer = integer.value_or(0);
  token_.number = number.value_or(0.0);
  return Status::ok();
}

Status Lexer::read_string(char quote_char) {
  token_.kind = TokenKind::String;
  const std::size_t begin = at_++;
  for (;; ++at_) {
    if (at_ >= text_.size()) return error_at(begin + 1, "string without a closing quote");
    const char c = text_[at_];
    if (c == quote_char) break;
    if (c != '\\') {
      token_.string += c;
      continue;
    }
    const char kind = ++at_ < text_.size() ? text_[at_] : '\0';
    switch (kind) {
      case 't':
        token_.string += '\t';
        break;
      case 'n':
        token_.string += '\n';
        break;
      case 'r':
        token_.string += '\r';
        break;
      case 'f':
        token_.string += '\f';
        break;
      case '\\':
      case '"':
      case '\'':
        token_.string += kind;
        break;
      case 'x': {
        const std::string_view digits = text_.substr(at_ + 1, 2);
        const auto byte = digits.size() == 2 && is_hex_digit(digits[0]) && is_hex_digit(digits[1])
                              ? parse_whole<unsigned>(digits, 16)
                              : std::nullopt;
        if (!byte) return error_at(at_, "expected two hexadecimal digits after \\x");
        token_.string += static_cast<char>(*byte);
        at_ += 2;
        break;
      }
      default:
        return error_at(at_, "unknown escape: expected one of \\t \\n \\r \\f \\\\ \\\" \\' \\xHH");
    }
  }
  ++at_;
  return Status::ok();
}

std::optional<std::string_view> Lexer::bare_key() const {
  const std::size_t end = text_.find('}', at_);
  if (end == std::string_view::npos) return std::nullopt;
  return text_.substr(at_, end - at_);
}

Status Lexer::skip(std::size_t bytes) {
  at_ += bytes;
  return advance();
}

char Lexer::peek() const {
  std::size_t at = at_;
  while (at < text_.size() && is_space(text_[at])) ++at;
  return at < text_.size() ? text_[at] : '\0';
}

std::optional<std::int64_t> parse_integer(std::string_view text) { return parse_whole<std::int64_t>(text, 10); }

std::optional<std::int64_t> parse_hex_integer(std::string_view text) {
  if (text.empty() || !is_hex_digit(text[0])) return std::nullopt;
  const auto value = parse_whole<std::uint64_t>(text, 16);
  return value ? std::optional<std::int64_t>(static_cast<std::int64_t>(*value)) : std::nullopt;
}

std::optional<double> parse_double(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || (!is_digit(digits[0]) && digits[0] != '.')) return std::nullopt;
  double value = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // The number is out of range; the sign of its exponent tells in which direction.
    const bool is_small = digits.find("e-") != std::string_view::npos || digits.find("E-") != std::string_view::npos;
    value = is_small ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return text.starts_with('-') ? -value : value;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
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
      case '"':
        out += "\\\"";
        break;
      default:
        if (c < ' ' || c > '~') {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string print_double(double value) {
  if (std::isinf(value)) return value < 0 ? "-1e999" : "1e999";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace fjord::selection
