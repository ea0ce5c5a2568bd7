#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_id.h"
#include "fjord/visitors/visit_token.h"

namespace fjord::cli {

/// The documents that a visit has printed of buckets that it has not printed to their end. With the tokens, which count
/// whole buckets, they say exactly what was printed, so that a visit that ends between buckets goes on without printing
/// anything twice.
class PrintedDocuments {
 public:
  /// False if the document was printed before.
  bool add(const GlobalId& gid) { return gids_.emplace(visitors::position_of(gid), gid).second; }
  /// Everything there is printed: it need not be remembered document by document.
  void complete(const visitors::PositionRange& range);
  std::size_t size() const { return gids_.size(); }

  /// One line, without those that `tokens` count as done: one token, or one a slice in their order.
  std::string to_text(const std::vector<visitors::VisitToken>& tokens) const;
  /// Errors: InvalidArgument.
  static Result<PrintedDocuments> parse(std::string_view line);
  static bool is_one(std::string_view line);

 private:
  std::set<std::pair<std::uint64_t, GlobalId>> gids_;  ///< By position.
};

/// How far a visit is, in a file: a line a slice and one for the documents beside them. Replaced as a whole.
struct VisitProgressFile {
  std::vector<visitors::VisitToken> tokens;
  PrintedDocuments printed;

  /// Errors: IoError with the path.
  Status write(const std::string& path) const;
  /// Errors: NotFound; IoError; InvalidArgument with the path and the line.
  static Result<VisitProgressFile> read(const std::string& path);
};

}  // namespace fjord::cli
