#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/search/query.h"

namespace fjord::search {

/// A keyword of the experiment. `rest` stands for the fields that a search reads only of matching keywords.
struct Keyword {
  std::uint32_t number = 0;
  std::uint64_t group = 0;
  MatchKind kind = MatchKind::Broad;
  std::string words;
  std::int64_t bid = 0;
  std::string rest;
};

/// Makes each keyword from its number, so that all stores get the same ones and none has to be kept here.
class KeywordSource {
 public:
  explicit KeywordSource(std::uint32_t count);
  std::uint32_t count() const { return count_; }
  Keyword make(std::uint32_t number) const;
  /// Returns all numbers, ordered by the first word of their keywords.
  const std::vector<std::uint32_t>& by_word() const { return by_word_; }
  /// Returns a query that exactly `matches` keywords match. Twenty times as many keywords begin with its first word.
  static std::string query_with(std::uint32_t matches);
  static std::string random_query(std::uint64_t number);

 private:
  std::uint32_t count_;
  std::vector<std::uint32_t> by_word_;
};

struct Found {
  std::uint64_t matches = 0;
  std::uint64_t scanned = 0;
  std::uint64_t bytes = 0;  ///< Bytes of the records looked at; 0 for the map and the index.
  std::uint64_t check = 0;  ///< Checksum of the matching keywords; the same for all stores.
};

/// Returns the part of Found::check of one keyword that matches.
std::uint64_t check_of(std::uint32_t number, std::int64_t bid, std::string_view rest);

/// The keywords in one layout and one serialisation.
class KeywordStore {
 public:
  virtual ~KeywordStore() = default;
  virtual Found search(const QueryVariant& query) const = 0;
  virtual std::uint64_t bytes() const = 0;
};

struct StoreKind {
  std::string name;
  std::unique_ptr<KeywordStore> (*make)(const KeywordSource&, const std::string& directory);
};
/// Returns all kinds of this build. The first is one store and the second a split store, both in the parsed wire form.
std::vector<StoreKind> store_kinds();
/// Returns those of them in which keywords have numbers in place of words.
std::vector<StoreKind> id_store_kinds();
/// Returns the forms that this build lacks, because their libraries were not installed.
std::vector<std::string> missing_forms();

}  // namespace fjord::search
