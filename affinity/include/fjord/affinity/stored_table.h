#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fjord/affinity/voting_table.h"
#include "fjord/common/result.h"

namespace fjord::affinity {

/// A voting table with the texts of its words, as it is kept: `affinity/README.md` has the format. Its words are those
/// of the table, in ascending order of their text; the WordId is the place in `words`.
struct StoredTable {
  std::string corpus;  ///< What it was trained on, for example the type and field of the documents that are searched.
  std::string method;  ///< How, for people: "BP+IR".
  std::uint64_t trained_queries = 0;
  std::vector<std::string> words;
  ListPages pages;  ///< Pages of each word's list when the table was trained.
  VotingTable table{1, 0};
  bool is_foreign = false;  ///< Not kept: decode_table() found that the table was trained on another corpus.
};

/// What decode_table() does with a table that was trained on another corpus. Its answers are right and its votes mean
/// little.
enum class ForeignTable { Refuse, Mark };

std::string encode_table(const StoredTable& table);
/// Errors: Corruption if the bytes are not what encode_table() made; NotImplemented for a later version of the format;
/// InvalidArgument for a table of another corpus that is to be refused.
Result<StoredTable> decode_table(std::string_view bytes, std::string_view corpus, ForeignTable foreign);

/// The table of some words of a vocabulary, made ready to be kept: the words that `table` knows.
StoredTable make_stored_table(const VotingTable& table, const std::vector<std::string>& vocabulary,
                              const ListPages& pages);

/// Finds WordIds by the texts of a stored table.
/// Lifetime: the table outlives it.
class WordIndex {
 public:
  explicit WordIndex(const StoredTable& table);
  /// A WordId that the table does not know, if it has no such word.
  WordId find(std::string_view word) const;

 private:
  std::unordered_map<std::string_view, WordId> ids_;
};

}  // namespace fjord::affinity
