#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fjord/affinity/voting_table.h"
#include "fjord/common/result.h"

namespace fjord::affinity {

/// A voting table with the texts of its words, as it is stored; `affinity/README.md` has the format. The words ascend
/// by their text, and a WordId is the index into `words`.
struct StoredTable {
  std::string corpus;  ///< What the table was trained on, for example type and field of the searched documents.
  std::string method;  ///< How the table was trained, for people: "BP+IR".
  std::uint64_t trained_queries = 0;
  std::vector<std::string> words;
  ListPages pages;  ///< Pages of each word's list when the table was trained.
  VotingTable table{1, 0};
  bool is_foreign = false;  ///< decode_table() found that the table was trained on another corpus. Not stored.
};

/// What decode_table() does with a table that was trained on another corpus. Searches with such a table return right
/// answers, but its votes hardly reduce misses.
enum class ForeignTable { Refuse, Mark };

std::string encode_table(const StoredTable& table);
/// Errors: Corruption if the bytes are not what encode_table() made; NotImplemented for a later version of the format;
/// InvalidArgument for a table of another corpus that is to be refused.
Result<StoredTable> decode_table(std::string_view bytes, std::string_view corpus, ForeignTable foreign);

/// Makes the table that is stored from a voting table: it has only those words of the vocabulary that `table` knows.
StoredTable make_stored_table(const VotingTable& table, const std::vector<std::string>& vocabulary,
                              const ListPages& pages);

/// Finds WordIds by the texts of a stored table.
/// Lifetime: the table outlives the index.
class WordIndex {
 public:
  explicit WordIndex(const StoredTable& table);
  /// Returns the WordId of a word; for a word that the table lacks, a WordId that the table does not know.
  WordId find(std::string_view word) const;

 private:
  std::unordered_map<std::string_view, WordId> ids_;
};

}  // namespace fjord::affinity
