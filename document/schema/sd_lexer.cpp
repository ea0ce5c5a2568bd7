#include "sd_lexer.h"

#include <fmt/format.h>

#include "text.h"

namespace fjord {
namespace {

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

}  // namespace

std::string SdPosition::to_string() const { return fmt::format("{}, {}", source.name, in_source()); }
std::string SdPosition::in_source() const { return fmt::format("line {}, column {}", line, column); }

std::string SdToken::to_string() const {
  switch (kind) {
    case Kind::End:
      return "the end of the text";
    case Kind::Bad:
      return std::string(text);
    default:
      return quoted(text, 40);
  }
}

SdLexer::SdLexer(std::string_view text, SdSource source) : text_(text) {
  position_.source = source;
  step();
}

SdToken SdLexer::take() {
  SdToken taken = token_;
  step();
  return taken;
}

void SdLexer::advance() {
  if (text_[at_++] == '\n') {
    ++position_.line;
    position_.column = 1;
  } else {
    ++position_.column;
  }
}

void SdLexer::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') advance();
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      advance();
    } else {
      return;
    }
  }
}

void SdLexer::step() {
  skip_space();
  token_ = {SdToken::Kind::End, {}, position_};
  if (at_ == text_.size()) return;
  const std::size_t begin = at_;
  if (text_[at_] == '"') {
    token_.kind = SdToken::Kind::String;
    advance();
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) advance();
      advance();
    }
    if (at_ == text_.size() || text_[at_] == '\n') {
      token_.kind = SdToken::Kind::Bad;
      token_.text = "a string without closing quote";
      return;
    }
    advance();
  } else if (is_word_char(text_[at_])) {
    token_.kind = SdToken::Kind::Word;
    while (at_ < text_.size() && is_word_char(text_[at_])) advance();
  } else {
    token_.kind = SdToken::Kind::Symbol;
    advance();
  }
  token_.text = text_.substr(begin, at_ - begin);
}

}  // namespace fjord
