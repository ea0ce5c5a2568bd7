#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::selection {

enum class TokenKind : std::uint8_t { End, Identifier, Integer, Float, String, Symbol };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;  ///< The token as written.
  std::size_t column = 1;
  std::int64_t integer = 0;
  bool needs_minus = false;  ///< The integer is 2^63, which is valid only after a minus.
  double number = 0.0;
  std::string string;  ///< Contents of a String, without quotes and escapes.

  bool is_symbol(std::string_view symbol) const { return kind == TokenKind::Symbol && text == symbol; }
  /// True for an identifier that equals the keyword in upper or lower case.
  bool is_keyword(std::string_view lower_case) const;
  /// Text for messages: 'text', or "end of the text".
  std::string describe() const;
};

/// Splits a selection into tokens, one token ahead of the parser. Signs are symbols, not parts of numbers.
class Lexer {
 public:
  /// `text` outlives the lexer.
  explicit Lexer(std::string_view text) : text_(text) {}

  /// Reads the next token into current(). Errors: InvalidSelection.
  Status advance();
  const Token& current() const { return token_; }

  /// The text between the current token '{' and the next '}', for keys without quotes. Empty if there is no '}'.
  std::optional<std::string_view> bare_key() const;
  /// Skips `bytes` bytes after the current token, then reads the next token.
  Status skip(std::size_t bytes);
  /// The first byte after the current token that is not white space; 0 at the end.
  char peek() const;
  /// The byte directly after the current token; 0 at the end.
  char next_byte() const { return at_ < text_.size() ? text_[at_] : '\0'; }

 private:
  Status read_string(char quote);
  Status read_number();

  std::string_view text_;
  std::size_t at_ = 0;
  Token token_;
};

Status error_at(std::size_t column, std::string_view message);
/// Returns the error that `token` stands where only `expected` may stand.
Status unexpected_token(const Token& token, std::string_view expected);

/// Parse all of `text` as a number. Hexadecimal has no prefix and up to 16 digits, which wrap to negative numbers.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<std::int64_t> parse_hex_integer(std::string_view text);
/// Returns infinity beyond the range of a double.
std::optional<double> parse_double(std::string_view text);

/// `text` in double quotes, with escapes for everything but printable ASCII.
std::string quote(std::string_view text);
/// The shortest text that reads back as the same double, and never as an integer.
std::string print_double(double value);

}  // namespace fjord::selection
