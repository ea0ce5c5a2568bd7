#include "commands/affinity_log.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "fjord/common/hash.h"
#include "fjord/search/query.h"

namespace fjord::cli {
namespace {

/// Calls `use` with each line that is not empty, without its end, and its number.
template <typename F>
Status for_each_line(std::string_view text, F use) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) FJORD_TRY(use(number, line));
  }
  return Status::ok();
}

std::string_view without_number(std::string_view line) {
  const std::size_t tab = line.find('\t');
  const bool has_number = tab != std::string_view::npos && tab > 0 && line.find_first_not_of("0123456789") == tab;
  return has_number ? line.substr(tab + 1) : line;
}

}  // namespace

affinity::QueryLog AffinityLog::part(std::size_t begin, std::size_t end) const {
  affinity::QueryLog queries;
  for (std::size_t i = begin; i < end; ++i) queries.add({log.words(i).begin(), log.words(i).end()});
  return queries;
}

Result<AffinityLog> read_affinity_log(std::string_view text) {
  AffinityLog result;
  std::vector<std::vector<std::string>> queries;
  std::map<std::string, affinity::WordId> ids;
  FJORD_TRY(for_each_line(text, [&](std::size_t, std::string_view line) {
    const auto variants = search::parse_query(without_number(line));
    if (!variants) {
      ++result.skipped;
      return Status::ok();
    }
    std::vector<std::string> words;
    for (const search::QueryVariant& variant : *variants) {
      words.insert(words.end(), variant.distinct_words().begin(), variant.distinct_words().end());
    }
    for (const std::string& word : words) ids.emplace(word, 0);
    queries.push_back(std::move(words));
    return Status::ok();
  }));
  if (queries.empty()) return Status(StatusCode::InvalidArgument, "there are no queries in the file");
  for (auto& [word, id] : ids) {
    id = static_cast<affinity::WordId>(result.vocabulary.size());
    result.vocabulary.push_back(word);
    result.hashes.push_back(hash64(word));
  }
  for (const std::vector<std::string>& words : queries) {
    std::vector<affinity::WordId> numbers;
    for (const std::string& word : words) numbers.push_back(ids.at(word));
    result.log.add(std::move(numbers));
  }
  return result;
}

Result<std::map<std::string, std::uint32_t, std::less<>>> read_word_pages(std::string_view text) {
  std::map<std::string, std::uint32_t, std::less<>> pages;
  FJORD_TRY(for_each_line(text, [&](std::size_t number, std::string_view line) -> Status {
    const std::size_t tab = line.find('\t');
    std::uint32_t count = 0;
    const char* end = line.data() + line.size();
    const auto parsed = tab == std::string_view::npos || tab == 0
                            ? std::from_chars_result{line.data(), std::errc::invalid_argument}
                            : std::from_chars(line.data() + tab + 1, end, count);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return {StatusCode::InvalidArgument, fmt::format("line {} of the sizes is not a word, a tab and pages", number)};
    }
    pages.insert_or_assign(std::string(line.substr(0, tab)), count);
    return Status::ok();
  }));
  return pages;
}

}  // namespace fjord::cli
