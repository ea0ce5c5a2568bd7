#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/common/unique_function.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

/// Voting tables in the cluster: a table has a number and is kept as documents of type fjord_affinity, which hold its
/// encoded form (affinity/README.md) in parts. The setting search.affinity_table has the number of the table in force.
namespace fjord::search {

/// Bytes of a table in one document.
inline constexpr std::size_t kTablePartBytes = std::size_t{512} << 10;

std::string table_part_id(std::uint64_t number, std::uint32_t part);
/// Returns the number of documents that keep a table of this size; at least 1.
std::uint32_t table_parts(std::size_t bytes);
/// Returns one part of a table as a document. Errors: NotReady if the types lack fjord_affinity.
Result<Document> table_part(const DocumentTypeRepo& types, std::uint64_t number, std::string_view bytes,
                            std::uint32_t part);
/// Returns what is searched in a cluster with these types, as tables name it: "ad_group.name, keyword.text". Empty:
/// nothing.
std::string corpus_of(const DocumentTypeRepo& types);

struct TablePart {
  std::uint32_t parts = 0;  ///< Parts of the whole table.
  std::string content;
};

/// The source from which a broker reads tables.
///
/// Threading: read_part() on the broker's executor.
class VotingTableSource {
 public:
  using Done = UniqueFunction<void(Result<TablePart>)>;

  virtual ~VotingTableSource() = default;
  /// Calls `done` on any thread, unless the source ends before. Errors: NotFound if there is no such part; those of a
  /// get.
  virtual void read_part(std::uint64_t number, std::uint32_t part, Done done) = 0;
};

}  // namespace fjord::search
