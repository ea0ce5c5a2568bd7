#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fjord/search/query.h"

namespace fjord::search {

/// A keyword of the experiment. The rest is what a search reads of those that match.
struct Keyword {
  std::uint32_t number = 0;
  std::uint64_t group = 0;
  MatchKind kind = MatchKind::Broad;
  std::string words;
  std::int64_t bid = 0;
  std::string rest;
};

/// Keywords made from their numbers, so that all stores get the same ones without keeping them.
class KeywordSource {
 public:
  explicit KeywordSource(std::uint32_t count);
  std::uint32_t count() const { return count_; }
  Keyword make(std::uint32_t number) const;
  /// All numbers, ordered by first word.
  const std::vector<std::uint32_t>& by_word() const { return by_word_; }
  /// A query that exactly this many keywords match, of twenty times as many that begin with its word.
  static std::string query_with(std::uint32_t matches);
  static std::string random_query(std::uint64_t number);

 private:
  std::uint32_t count_;
  std::vector<std::uint32_t> by_word_;
};

struct Found {
  std::uint64_t matches = 0;
  std::uint64_t scanned = 0;
  std::uint64_t bytes = 0;  ///< Read of the records looked at; not counted for a map and the index.
  std::uint64_t check = 0;  ///< Made from all that was read of the matches; equal in all stores.
};

/// One layout with one serialisation.
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
/// All that there are in this build, the first two being one store and split stores in the wire form, parsed.
std::vector<StoreKind> store_kinds();

}  // namespace fjord::search
