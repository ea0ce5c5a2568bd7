#include "fjord/search/query.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utf8proc.h>

namespace fjord::search {
namespace {

const utf8proc_uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

/// Letters, marks and digits of any script belong to words.
bool belongs_to_word(utf8proc_int32_t character) {
  switch (utf8proc_category(character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

std::string mapped(std::string_view text, utf8proc_option_t options) {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &out, options);
  if (length < 0) return std::string(text);
  std::string result(reinterpret_cast<const char*>(out), static_cast<std::size_t>(length));
  std::free(out);  // NOLINT(cppcoreguidelines-no-malloc): utf8proc's own memory
  return result;
}

std::string folded(std::string_view word) {
  const bool is_ascii =
      std::all_of(word.begin(), word.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (is_ascii) {
    std::string lower(word);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower;
  }
  return mapped(word, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD));
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &character);
    if (length <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return true;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text.push_back(' ');
    text += word;
  }
  return text;
}

/// Calls `use` with each word until `use` returns false. Returns false if `use` did.
template <typename F>
bool for_each_word(std::string_view words, F use) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (end > 0 && !use(words.substr(0, end))) return false;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return true;
}

bool starts_at(std::string_view keyword_words, const std::vector<std::string>& words, std::size_t at) {
  return for_each_word(keyword_words, [&](std::string_view word) { return at < words.size() && words[at++] == word; });
}

Result<int> number_of(std::string_view key, std::string_view text, int max) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > max) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("context {}: expected a whole number from 0 to {}, found \"{}\"", key, max, text));
  }
  return value;
}

Result<Device> device_of(std::string_view text) {
  if (text == "phone") return Device::Phone;
  if (text == "desktop") return Device::Desktop;
  if (text == "tablet") return Device::Tablet;
  return Status(StatusCode::InvalidArgument,
                fmt::format("context device: expected phone, desktop or tablet, found \"{}\"", text));
}

}  // namespace

std::vector<std::string> fold_words(std::string_view text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  std::size_t at = 0;
  const auto end_word = [&](std::size_t end) {
    if (end > begin) words.push_back(folded(text.substr(begin, end - begin)));
  };
  while (at < text.size()) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes_of(text) + at, static_cast<utf8proc_ssize_t>(text.size() - at), &character);
    const std::size_t step = length <= 0 ? 1 : static_cast<std::size_t>(length);
    if (length <= 0 || !belongs_to_word(character)) {
      end_word(at);
      begin = at + step;
    }
    at += step;
  }
  end_word(text.size());
  return words;
}

std::string without_diacritics(std::string_view word) {
  return mapped(word, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_STRIPMARK));
}

QueryVariant::QueryVariant(std::string_view words) {
  for_each_word(words, [&](std::string_view word) {
    words_.emplace_back(word);
    return true;
  });
  distinct_ = words_;
  std::sort(distinct_.begin(), distinct_.end());
  distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
}

std::string QueryVariant::text() const { return joined(words_); }

std::size_t QueryVariant::find(std::string_view word) const {
  const auto at = std::find(words_.begin(), words_.end(), word);
  return at == words_.end() ? npos : static_cast<std::size_t>(at - words_.begin());
}

Result<std::vector<QueryVariant>> parse_query(std::string_view text) {
  if (text.size() > kQueryBytesMax) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("the query has {} bytes, more than {}", text.size(), kQueryBytesMax));
  }
  if (!is_utf8(text)) return Status(StatusCode::InvalidArgument, "the query is not UTF-8");
  std::vector<std::string> words = fold_words(text);
  if (words.empty()) return Status(StatusCode::InvalidArgument, "the query has no word");
  if (words.size() > kQueryWordsMax) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("the query has {} words, more than {}", words.size(), kQueryWordsMax));
  }
  std::vector<QueryVariant> variants = {QueryVariant(joined(words))};
  for (std::string& word : words) word = without_diacritics(word);
  const std::string plain = joined(words);
  if (plain != variants.front().text()) variants.emplace_back(plain);
  return variants;
}

bool matches(MatchKind kind, std::string_view keyword_words, const QueryVariant& query) {
  if (keyword_words.empty()) return false;
  const std::vector<std::string>& words = query.words();
  switch (kind) {
    case MatchKind::Broad:
      return for_each_word(keyword_words,
                           [&](std::string_view word) { return query.find(word) != QueryVariant::npos; });
    case MatchKind::Phrase:
      for (std::size_t at = 0; at < words.size(); ++at) {
        if (starts_at(keyword_words, words, at)) return true;
      }
      return false;
    case MatchKind::Exact:
      return starts_at(keyword_words, words, 0) &&
             static_cast<std::size_t>(std::count(keyword_words.begin(), keyword_words.end(), ' ')) + 1 == words.size();
  }
  return false;
}

Result<SearchContext> SearchContext::parse(const std::map<std::string, std::string>& pairs) {
  SearchContext context;
  for (const auto& [key, value] : pairs) {
    if (key == "device") {
      FJORD_TRY_ASSIGN(context.device, device_of(value));
    } else if (key == "language") {
      context.language = folded(value);
    } else if (key == "region") {
      context.region = folded(value);
    } else if (key == "hour") {
      FJORD_TRY_ASSIGN(context.hour, number_of(key, value, 23));
    } else if (key == "age") {
      FJORD_TRY_ASSIGN(context.age, number_of(key, value, 150));
    } else if (key == "interests") {
      context.interests = fold_words(value);
    } else {
      return Status(
          StatusCode::InvalidArgument,
          fmt::format("unknown context \"{}\"; known are device, language, region, hour, age, interests", key));
    }
  }
  return context;
}

}  // namespace fjord::search
