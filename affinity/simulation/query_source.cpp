#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <unordered_map>

#include "fjord/affinity/log_generator.h"

namespace fjord::affinity {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// Returns true for letters, digits and underscores. Bytes of non-ASCII characters count as letters.
bool is_word_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<signed char>(c) < 0;
}
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Returns whether the bytes look like UTF-8. Checks only the lengths of the sequences.
bool is_utf8(std::string_view text) {
  std::size_t follow = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (follow > 0) {
      if ((byte & 0xc0) != 0x80) return false;
      --follow;
    } else if (byte >= 0xf0) {
      follow = 3;
    } else if (byte >= 0xe0) {
      follow = 2;
    } else if (byte >= 0xc0) {
      follow = 1;
    } else if (byte >= 0x80) {
      return false;
    }
  }
  return follow == 0;
}

std::string latin1_to_utf8(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      result.push_back(c);
    } else {
      result.push_back(static_cast<char>(0xc0 | byte >> 6));
      result.push_back(static_cast<char>(0x80 | (byte & 0x3f)));
    }
  }
  return result;
}

class SourceBuilder {
 public:
  void add(std::string_view query) {
    std::vector<WordId> words;
    std::string word;
    for (std::size_t i = 0; i <= query.size(); ++i) {
      if (i < query.size() && is_word_byte(query[i])) {
        word.push_back(lower(query[i]));
      } else if (!word.empty()) {
        words.push_back(id_of(word));
        word.clear();
      }
    }
    add(std::move(words));
  }
  void add(std::vector<WordId> words) {
    if (words.empty()) return;
    std::vector<WordId> distinct = words;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const WordId word : distinct) ++source_.queries_with[word];
    source_.queries.push_back(std::move(words));
  }
  WordId id_of(const std::string& word) {
    const auto [it, is_new] = ids_.try_emplace(word, static_cast<WordId>(source_.vocabulary.size()));
    if (is_new) {
      source_.vocabulary.push_back(word);
      source_.queries_with.push_back(0);
    }
    return it->second;
  }
  const QuerySource& source() const { return source_; }
  QuerySource take() { return std::move(source_); }

 private:
  QuerySource source_;
  std::unordered_map<std::string, WordId> ids_;
};

}  // namespace

Result<QuerySource> parse_queries(std::string_view text) {
  SourceBuilder builder;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    std::size_t digits = 0;
    while (digits < line.size() && is_digit(line[digits])) ++digits;
    if (digits == 0 || digits == line.size() || (line[digits] != '\t' && line[digits] != ':')) {
      return Status(StatusCode::InvalidArgument,
                    fmt::format("line {} of the queries: not a number, a tab and a query", number));
    }
    const std::string_view query = line.substr(digits + 1);
    builder.add(is_utf8(query) ? std::string(query) : latin1_to_utf8(query));
  }
  if (builder.source().queries.empty()) return Status(StatusCode::InvalidArgument, "there are no queries in the file");
  return builder.take();
}

QuerySource synthetic_queries(std::size_t queries, std::size_t words, Random& random) {
  SourceBuilder builder;
  for (std::size_t i = 0; i < words; ++i) builder.id_of(fmt::format("w{}", i));
  // Inverts the distribution function of a continuous Zipf distribution with exponent 1.
  const double log_words = std::log(static_cast<double>(words));
  const auto draw_word = [&] {
    const double rank = std::exp(random.uniform() * log_words) - 1.0;
    return static_cast<WordId>(std::min(static_cast<std::size_t>(rank), words - 1));
  };
  for (std::size_t i = 0; i < queries; ++i) {
    std::vector<WordId> query;
    if (i > 0 && random.chance(0.7)) {
      const std::vector<WordId>& earlier = builder.source().queries[random.below(i)];
      const std::size_t begin = random.below(earlier.size());
      const std::size_t end = std::min(earlier.size(), begin + 1 + random.below(4));
      query.assign(earlier.begin() + static_cast<std::ptrdiff_t>(begin),
                   earlier.begin() + static_cast<std::ptrdiff_t>(end));
    }
    for (std::size_t more = 1 + random.below(4); more > 0; --more) query.push_back(draw_word());
    builder.add(std::move(query));
  }
  return builder.take();
}

}  // namespace fjord::affinity
