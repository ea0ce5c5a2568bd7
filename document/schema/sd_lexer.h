#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fjord {

/// A schema text among others.
struct SdSource {
  std::size_t index = 0;
  std::string_view name;  ///< How messages call it; outlives the positions in it.
};

struct SdPosition {
  SdSource source;
  std::size_t line = 1;
  std::size_t column = 1;

  std::string to_string() const;  ///< "schema, line 2, column 3", with the name of the source
  std::string in_source() const;  ///< "line 2, column 3"
};

struct SdToken {
  enum class Kind { Word, String, Symbol, End, Bad };

  Kind kind = Kind::End;
  std::string_view text;  ///< The token's text; for a Bad token, the error.
  SdPosition at;

  bool is(char symbol) const { return kind == Kind::Symbol && text[0] == symbol; }
  bool is_word(std::string_view word) const { return kind == Kind::Word && text == word; }
  std::string to_string() const;  ///< Description for messages: found "...".
};

/// Splits a schema into words (letters, digits, '_', '-', '.'), strings in double quotes and single symbols. Drops
/// white space and comments (# to the end of the line).
class SdLexer {
 public:
  SdLexer(std::string_view text, SdSource source);

  const SdToken& peek() const { return token_; }
  SdToken take();

 private:
  void step();
  void advance();
  void skip_space();

  std::string_view text_;
  std::size_t at_ = 0;
  SdPosition position_;
  SdToken token_;
};

}  // namespace fjord
