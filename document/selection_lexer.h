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
  std::string_view text;  ///< As written.
  std::size_t column = 1;
  std::int64_t integer = 0;
  bool needs_minus = false;  ///< The integer is 2^63, which exists only as a negative number.
  double number = 0.0;
  std::string string;  ///< Of a String, without quotes and escapes.

  bool is_symbol(std::string_view symbol) const { return kind == TokenKind::Symbol && text == symbol; }
  /// Keywords are identifiers in any case.
  bool is_keyword(std::string_view lower_case) const;
  /// For messages: 'text', or "the end".
  std::string describe() const;
};

/// Splits a selection into tokens, one ahead of the parser. Signs are symbols, not parts of numbers.
class Lexer {
 public:
  /// `text` outlives the lexer.
  explicit Lexer(std::string_view text) : text_(text) {}

  /// Reads the next token into current(). Errors: InvalidSelection.
  Status advance();
  const Token& current() const { return token_; }

  /// Everything up to the next '}' where the current token, a '{', ended; for keys without quotes. Advances beyond the
  /// brace. Empty if there is none.
  std::optional<std::string_view> bare_key() const;
  /// Continues after `bytes` bytes of what follows the current token.
  Status skip(std::size_t bytes);
  /// The first byte after the current token that is no white space; 0 at the end.
  char peek() const;
  /// The byte right after the current token; 0 at the end.
  char next_byte() const { return at_ < text_.size() ? text_[at_] : '\0'; }

 private:
  Status read_string(char quote);
  Status read_number();

  std::string_view text_;
  std::size_t at_ = 0;
  Token token_;
};

Status error_at(std::size_t column, std::string_view message);

/// The whole text as a number; hexadecimal without prefix, up to 16 digits, which wrap to negative numbers.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<std::int64_t> parse_hex_integer(std::string_view text);
/// Beyond the range of a double: infinity.
std::optional<double> parse_double(std::string_view text);

/// In double quotes, with escapes for what is not printable ASCII.
std::string quote(std::string_view text);
/// The shortest text that reads back as the same double, and not as an integer.
std::string print_double(double value);

}  // namespace fjord::selection
