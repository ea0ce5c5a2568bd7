#include "fjord/search/synonyms.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace fjord::search {
namespace {

std::string text_of(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// Calls `use` with each part of the text between two separators.
template <typename F>
void for_each_part(std::string_view text, char separator, F use) {
  for (;;) {
    const std::size_t end = text.find(separator);
    use(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// Returns the words of each term of a line. Errors: InvalidArgument.
Result<std::vector<std::vector<std::string>>> terms_of(std::string_view line) {
  std::vector<std::vector<std::string>> terms;
  Status status;
  for_each_part(line, ',', [&](std::string_view part) {
    std::vector<std::string> words = fold_words(part);
    if (words.empty()) {
      status = {StatusCode::InvalidArgument, fmt::format("\"{}\" has no word", part)};
    } else if (words.size() > kSynonymTermWordsMax) {
      status = {StatusCode::InvalidArgument,
                fmt::format("\"{}\" has {} words, more than {}", part, words.size(), kSynonymTermWordsMax)};
    }
    terms.push_back(std::move(words));
  });
  FJORD_TRY(status);
  if (terms.size() < 2) return Status(StatusCode::InvalidArgument, "a line needs two terms with a comma between them");
  return terms;
}

/// Collects forms of a query, each once and no more than kQueryFormsMax.
class FormList {
 public:
  explicit FormList(std::vector<QueryVariant>& forms) : forms_(forms) {
    for (const QueryVariant& form : forms) known_.insert(form.text());
  }
  bool is_full() const { return forms_.size() >= kQueryFormsMax; }
  void add(std::vector<std::string> words) {
    if (words.size() > kQueryWordsMax) return;
    add_text(text_of(words));
    for (std::string& word : words) word = without_diacritics(word);
    add_text(text_of(words));
  }

 private:
  void add_text(const std::string& text) {
    if (!is_full() && known_.insert(text).second) forms_.emplace_back(text);
  }

  std::vector<QueryVariant>& forms_;
  std::set<std::string> known_;
};

}  // namespace

Result<Synonyms> Synonyms::parse(std::string_view text) {
  if (text.size() > kSynonymsBytesMax) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("the list of synonyms has {} bytes, more than {}", text.size(), kSynonymsBytesMax));
  }
  Synonyms synonyms;
  Status status;
  std::size_t number = 0;
  for_each_part(text, '\n', [&](std::string_view line) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (!status || line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const auto terms = terms_of(line);
    if (!terms) {
      status = terms.error().with_context(fmt::format("line {}", number));
      return;
    }
    for (const Words& term : *terms) {
      std::vector<Words>& others = synonyms.others_[text_of(term)];
      for (const Words& other : *terms) {
        if (other != term && std::find(others.begin(), others.end(), other) == others.end()) others.push_back(other);
      }
    }
  });
  FJORD_TRY(status);
  std::erase_if(synonyms.others_, [](const auto& one) { return one.second.empty(); });
  return synonyms;
}

void Synonyms::add_forms(std::vector<QueryVariant>& forms) const {
  FormList list(forms);
  // The list grows while it is walked: what was replaced once may be replaced at another place, too.
  for (std::size_t i = 0; i < forms.size() && !list.is_full(); ++i) {
    const Words words = forms[i].words();
    for (std::size_t begin = 0; begin < words.size(); ++begin) {
      std::string term;
      for (std::size_t end = begin; end < std::min(words.size(), begin + kSynonymTermWordsMax); ++end) {
        term += (end == begin ? "" : " ") + words[end];
        const auto at = others_.find(term);
        if (at == others_.end()) continue;
        for (const Words& other : at->second) {
          Words replaced(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(begin));
          replaced.insert(replaced.end(), other.begin(), other.end());
          replaced.insert(replaced.end(), words.begin() + static_cast<std::ptrdiff_t>(end) + 1, words.end());
          list.add(std::move(replaced));
        }
      }
    }
  }
}

}  // namespace fjord::search
