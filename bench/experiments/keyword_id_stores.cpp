// Stores whose keywords have numbers in place of words, as the lexicon of [KBD 2020, 2.1] gives them: a keyword is
// compared with a query without a look at any text.

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "fjord/common/coding.h"
#include "index/segment.h"
#include "keyword_stores.h"

namespace fjord::search {
namespace {

constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kHead = 6;      // Number, kind, and how many words.
constexpr std::size_t kRestHead = 8;  // Bytes of the bid, which the rest of a record begins with.

/// Calls `use` with each word of a text that has one space between two words.
template <typename F>
void for_each_word(std::string_view text, F use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

class Lexicon {
 public:
  std::uint32_t add(std::string_view word) {
    return ids_.try_emplace(std::string(word), static_cast<std::uint32_t>(ids_.size())).first->second;
  }
  std::uint32_t find(const std::string& word) const {
    const auto at = ids_.find(word);
    return at == ids_.end() ? kUnknown : at->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
};

/// One bit of sixteen for a word: words that a query lacks rule a keyword out.
std::uint16_t bit_of(std::uint32_t id) { return static_cast<std::uint16_t>(1U << (id * 0x9e3779b1U >> 28U)); }

/// A query as numbers, in the order of its words.
struct QueryIds {
  std::vector<std::uint32_t> ids;
  std::uint16_t bits = 0;

  QueryIds(const Lexicon& lexicon, const QueryVariant& query) {
    for (const std::string& word : query.words()) {
      ids.push_back(lexicon.find(word));
      if (ids.back() != kUnknown) bits = static_cast<std::uint16_t>(bits | bit_of(ids.back()));
    }
  }
  bool contains(std::uint32_t id) const { return std::find(ids.begin(), ids.end(), id) != ids.end(); }
};

/// A record: number, kind, how many words, their ids; of a whole keyword, the bid and the rest, too.
class Record {
 public:
  explicit Record(const char* at) : at_(at) {}
  std::uint32_t number() const { return load_fixed<std::uint32_t>(at_); }
  std::size_t words() const { return static_cast<unsigned char>(at_[5]); }
  std::uint32_t id(std::size_t i) const { return load_fixed<std::uint32_t>(at_ + kHead + 4 * i); }
  std::size_t match_bytes() const { return kHead + 4 * words(); }

  bool matches(const QueryIds& query) const {
    switch (static_cast<MatchKind>(at_[4])) {
      case MatchKind::Broad:
        for (std::size_t i = 0; i < words(); ++i) {
          if (!query.contains(id(i))) return false;
        }
        return true;
      case MatchKind::Phrase:
        for (std::size_t begin = 0; begin + words() <= query.ids.size(); ++begin) {
          if (is_at(query, begin)) return true;
        }
        return false;
      case MatchKind::Exact:
        return words() == query.ids.size() && is_at(query, 0);
    }
    return false;
  }

 private:
  bool is_at(const QueryIds& query, std::size_t begin) const {
    for (std::size_t i = 0; i < words(); ++i) {
      if (query.ids[begin + i] != id(i)) return false;
    }
    return true;
  }

  const char* at_;
};

/// Where the keywords of one first word are: places in `records`, and places of their bits.
struct List {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A store of records with ids. Layout::One: whole keywords. Layout::Split: the rest is apart, by number. Layout::Bits:
/// split, and 16 bits of each keyword in a column of their own, which rule most keywords out.
enum class Layout : std::uint8_t { One, Split, Bits };

template <Layout kLayout>
class IdStore final : public KeywordStore {
 public:
  explicit IdStore(const KeywordSource& source) {
    if constexpr (kLayout != Layout::One) {
      for (std::uint32_t i = 0; i < source.count(); ++i) add_rest(source.make(i), rests_, &rest_at_);
      rest_at_.push_back(rests_.size());
    }
    for (const std::uint32_t number : source.by_word()) add(source.make(number));
    places_.push_back(records_.size());
  }

  Found search(const QueryVariant& query) const override {
    const QueryIds ids(lexicon_, query);
    Found found;
    for (const std::string& word : query.distinct_words()) {
      const auto at = lists_.find(word);
      if (at == lists_.end()) continue;
      found.scanned += at->second.end - at->second.begin;
      for (std::size_t i = at->second.begin; i < at->second.end; ++i) {
        if constexpr (kLayout == Layout::Bits) {
          found.bytes += sizeof(std::uint16_t);
          if ((bits_[i] & ~ids.bits) != 0) continue;
        }
        look_at(i, ids, found);
      }
    }
    return found;
  }
  std::uint64_t bytes() const override {
    return records_.size() + rests_.size() + 8 * (places_.size() + rest_at_.size()) + 2 * bits_.size();
  }

 private:
  static void add_rest(const Keyword& one, std::string& out, std::vector<std::uint64_t>* places) {
    if (places != nullptr) places->push_back(out.size());
    put_fixed(out, one.bid);
    out += one.rest;
  }

  void add(const Keyword& one) {
    auto& list = lists_.try_emplace(std::string(first_word_of(one.words)), List{places_.size(), 0}).first->second;
    places_.push_back(records_.size());
    std::vector<std::uint32_t> ids;
    std::uint16_t bits = 0;
    for_each_word(one.words, [&](std::string_view word) {
      ids.push_back(lexicon_.add(word));
      bits = static_cast<std::uint16_t>(bits | bit_of(ids.back()));
    });
    put_fixed(records_, one.number);
    records_.push_back(static_cast<char>(one.kind));
    records_.push_back(static_cast<char>(ids.size()));
    for (const std::uint32_t id : ids) put_fixed(records_, id);
    if constexpr (kLayout == Layout::One) add_rest(one, records_, nullptr);
    if constexpr (kLayout == Layout::Bits) bits_.push_back(bits);
    list.end = places_.size();
  }

  void look_at(std::size_t i, const QueryIds& ids, Found& found) const {
    const Record record(records_.data() + places_[i]);
    found.bytes += places_[i + 1] - places_[i];
    if (!record.matches(ids)) return;
    std::string_view rest;
    if constexpr (kLayout == Layout::One) {
      rest = std::string_view(records_).substr(places_[i], places_[i + 1] - places_[i]).substr(record.match_bytes());
    } else {
      const std::uint64_t begin = rest_at_[record.number()];
      rest = std::string_view(rests_).substr(begin, rest_at_[record.number() + 1] - begin);
      found.bytes += rest.size();
    }
    ++found.matches;
    found.check += check_of(record.number(), load_fixed<std::int64_t>(rest.data()), rest.substr(kRestHead));
  }

  Lexicon lexicon_;
  std::string records_;
  std::vector<std::uint64_t> places_;  // Begins of the records, in the order of first words; at last the end.
  std::vector<std::uint16_t> bits_;
  std::string rests_;
  std::vector<std::uint64_t> rest_at_;  // Begins of the rests, by number of the keyword; at last the end.
  std::unordered_map<std::string, List> lists_;
};

template <Layout kLayout>
std::unique_ptr<KeywordStore> make(const KeywordSource& source, const std::string&) {
  return std::make_unique<IdStore<kLayout>>(source);
}

}  // namespace

std::vector<StoreKind> id_store_kinds() {
  return {{"one, numbers of words", make<Layout::One>},
          {"split, numbers of words", make<Layout::Split>},
          {"split, numbers and bits", make<Layout::Bits>}};
}

}  // namespace fjord::search
