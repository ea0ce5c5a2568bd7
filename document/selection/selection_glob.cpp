// Globs, in time proportional to the text.

#include <array>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "fjord/document/selection.h"
#include "selection_pattern.h"

namespace fjord::selection {
namespace {

bool is_continuation(unsigned char byte) { return (byte & 0xc0) == 0x80; }

/// Returns where `part` begins in `text`, or npos. memmem() takes time proportional to the text, find() to the product.
std::size_t find(std::string_view text, std::string_view part) {
  const void* const at = ::memmem(text.data(), text.size(), part.data(), part.size());
  return at == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

/// A glob without `?`: its parts between the asterisks follow one another in the text.
class PartsGlob final : public Pattern {
 public:
  explicit PartsGlob(std::string_view glob) {
    std::size_t begin = 0;
    for (std::size_t star = glob.find('*'); star != std::string_view::npos; star = glob.find('*', begin)) {
      parts_.emplace_back(glob.substr(begin, star - begin));
      begin = star + 1;
    }
    parts_.emplace_back(glob.substr(begin));
  }

  bool matches(std::string_view text, Budget& budget) const override {
    if (parts_.size() == 1) {
      return text.size() == parts_[0].size() && budget.spend(steps_of_bytes(text.size())) && text == parts_[0];
    }
    if (!budget.spend((parts_.size() > 2 ? text.size() / 2 : 0) + parts_.size() + steps_of_bytes(text_bytes()))) {
      return false;
    }
    const std::string& first = parts_.front();
    const std::string& last = parts_.back();
    if (text.size() < first.size() + last.size() || !text.starts_with(first) || !text.ends_with(last)) return false;
    text = text.substr(first.size(), text.size() - first.size() - last.size());
    for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
      const std::size_t at = find(text, parts_[i]);
      if (at == std::string_view::npos) return false;
      text.remove_prefix(at + parts_[i].size());
    }
    return true;
  }

 private:
  std::size_t text_bytes() const { return parts_.front().size() + parts_.back().size(); }

  std::vector<std::string> parts_;
};

/// A glob with `?`, as an automaton whose states are bits: state i means that the first i items of the glob, bytes and
/// question marks, match the text so far. So a byte of the text costs one operation for 64 items.
class ItemsGlob final : public Pattern {
 public:
  explicit ItemsGlob(std::string_view glob) {
    std::string items;
    std::vector<std::size_t> stars;  // The states in which any byte may follow.
    for (const char c : glob) {
      if (c == '*') {
        stars.push_back(items.size());
      } else {
        items += c;
      }
    }
    last_ = items.size();
    words_ = last_ / 64 + 1;
    skips_any_.resize(words_);
    skips_continuation_.resize(words_);
    for (const std::size_t state : stars) set(skips_any_.data(), state);
    // Bytes that do not occur in the glob are of the kinds 0 and 1.
    std::size_t kinds = 2;
    for (unsigned byte = 0; byte < 256; ++byte)
      kind_of_[byte] = is_continuation(static_cast<unsigned char>(byte)) ? 1 : 0;
    for (const char c : items) {
      std::uint16_t& kind = kind_of_[static_cast<unsigned char>(c)];
      if (c != '?' && kind < 2) kind = static_cast<std::uint16_t>(kinds++);
    }
    takes_.resize(kinds * words_);
    for (unsigned byte = 0; byte < 256; ++byte) set_takes(items, static_cast<unsigned char>(byte));
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i] == '?') set(skips_continuation_.data(), i + 1);
    }
  }

  bool matches(std::string_view text, Budget& budget) const override {
    if (!budget.spend(text.size() * words_ + words_)) return false;
    std::vector<std::uint64_t> now(words_);
    now[0] = 1;
    const bool ends_open = has(skips_any_.data(), last_);
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      const std::uint64_t* const takes = takes_.data() + kind_of_[byte] * words_;
      const std::uint64_t more = is_continuation(byte) ? ~std::uint64_t{0} : 0;
      std::uint64_t carry = 0;
      std::uint64_t any = 0;
      for (std::size_t i = 0; i < words_; ++i) {
        const std::uint64_t taken = now[i] & takes[i];
        now[i] = (taken << 1) | carry | (now[i] & (skips_any_[i] | (skips_continuation_[i] & more)));
        carry = taken >> 63;
        any |= now[i];
      }
      if (any == 0) return false;
      if (ends_open && has(now.data(), last_)) return true;
    }
    return has(now.data(), last_);
  }

 private:
  static void set(std::uint64_t* bits, std::size_t at) { bits[at / 64] |= std::uint64_t{1} << (at % 64); }
  static bool has(const std::uint64_t* bits, std::size_t at) { return (bits[at / 64] >> (at % 64) & 1) != 0; }

  /// Notes which items take the byte. A question mark takes the first byte of a character and skips the others, so none
  /// of these is left for the item behind it.
  void set_takes(const std::string& items, unsigned char byte) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool is_left = !is_continuation(byte) || i == 0 || items[i - 1] != '?';
      const bool fits = items[i] == '?' || static_cast<unsigned char>(items[i]) == byte;
      if (is_left && fits) set(takes_.data() + kind_of_[byte] * words_, i);
    }
  }

  std::size_t last_ = 0;   ///< The state in which all items match.
  std::size_t words_ = 0;  ///< Words of a set of states.
  std::array<std::uint16_t, 256> kind_of_{};
  std::vector<std::uint64_t> takes_;  ///< For each kind of byte: the states whose next item takes it.
  std::vector<std::uint64_t> skips_any_;
  std::vector<std::uint64_t> skips_continuation_;
};

bool has_wildcard(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

}  // namespace

Result<std::unique_ptr<const Pattern>> Pattern::glob(std::string_view text) {
  if (has_wildcard(text) && text.size() > Selection::kGlobBytesMax) {
    return Status(StatusCode::InvalidSelection,
                  fmt::format("a glob of {} bytes: expected at most {}", text.size(), Selection::kGlobBytesMax));
  }
  if (text.find('?') == std::string_view::npos) return std::unique_ptr<const Pattern>(new PartsGlob(text));
  return std::unique_ptr<const Pattern>(new ItemsGlob(text));
}

bool glob_matches(std::string_view text, std::string_view pattern, Budget& budget) {
  if (!has_wildcard(pattern)) {
    return text.size() == pattern.size() && budget.spend(steps_of_bytes(text.size())) && text == pattern;
  }
  // Compiling takes this time at most.
  if (!budget.spend(256 * pattern.size())) return false;
  const auto glob = Pattern::glob(pattern);
  if (!glob) return budget.exceed(), false;
  return (*glob)->matches(text, budget);
}

}  // namespace fjord::selection
