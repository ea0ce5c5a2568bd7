#include "selection_pattern.h"

#include <fmt/format.h>
#include <optional>
#include <re2/re2.h>
#include <string>

namespace fjord::selection {
namespace {

/// Maximum memory of a compiled regular expression and its caches, in bytes.
constexpr std::int64_t kRegexBytesMax = 4 << 20;

/// Most globs are a text with an asterisk at one or both ends, which needs no backtracking.
class Glob final : public Pattern {
 public:
  explicit Glob(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of('*'), text.size());
    const std::size_t end = text.find_last_not_of('*') + 1;
    open_left_ = begin > 0;
    open_right_ = end < text.size();
    text_ = text.substr(begin, begin < end ? end - begin : 0);
    is_plain_ = text_.find_first_of("*?") == std::string::npos;
    if (!is_plain_) text_ = text;
  }

  bool matches(std::string_view text) const override {
    if (!is_plain_) return glob_matches(text, text_);
    if (open_left_ && open_right_) return text.find(text_) != std::string_view::npos;
    if (open_left_) return text.ends_with(text_);
    return open_right_ ? text.starts_with(text_) : text == text_;
  }

 private:
  std::string text_;
  bool open_left_ = false;
  bool open_right_ = false;
  bool is_plain_ = false;
};

class Regex final : public Pattern {
 public:
  Regex(std::string_view text, const RE2::Options& options) : regex_(re2::StringPiece(text), options) {}
  const RE2& regex() const { return regex_; }
  bool matches(std::string_view text) const override {
    return regex_.Match(re2::StringPiece(text), 0, text.size(), RE2::UNANCHORED, nullptr, 0);
  }

 private:
  RE2 regex_;
};

}  // namespace

std::unique_ptr<const Pattern> Pattern::glob(std::string_view text) { return std::make_unique<Glob>(text); }

Result<std::unique_ptr<const Pattern>> Pattern::regex(std::string_view text) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_max_mem(kRegexBytesMax);
  auto compiled = std::make_unique<Regex>(text, options);
  if (!compiled->regex().ok()) {
    return Status(StatusCode::InvalidSelection, fmt::format("not a regular expression: {}", compiled->regex().error()));
  }
  return std::unique_ptr<const Pattern>(std::move(compiled));
}

bool glob_matches(std::string_view text, std::string_view pattern) {
  const auto is_continuation = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  std::size_t t = 0;
  std::size_t p = 0;
  std::optional<std::size_t> star;  // the pattern after the last '*', tried at ever later positions of the text
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      retry = t;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      for (++t; t < text.size() && is_continuation(text[t]);) ++t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star) {
      p = *star;
      for (++retry; retry < text.size() && is_continuation(text[retry]);) ++retry;
      t = retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace fjord::selection
