#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_id.h"
#include "fjord/visitors/session_cursor.h"

namespace fjord {

/// The documents that a visit has given of buckets that are not complete yet. The cursors of slices count only complete
/// buckets. Both together identify exactly the given documents, so that a visit that stops inside a bucket resumes
/// without giving a document twice.
class GivenDocuments {
 public:
  /// Adds a document. Returns false if it was given before.
  bool add(const GlobalId& gid) { return gids_.emplace(visitors::position_of(gid), gid).second; }
  bool contains(const GlobalId& gid) const { return gids_.contains({visitors::position_of(gid), gid}); }
  /// Forgets the single documents of the range, because the whole range has been given.
  void complete(const visitors::PositionRange& range);
  std::size_t size() const { return gids_.size(); }

  /// Returns one line that omits the documents in buckets that `slices` count as done. `slices` has one cursor, or one
  /// for each slice in order.
  std::string to_text(const std::vector<visitors::SessionCursor>& slices) const;
  /// Errors: InvalidArgument.
  static Result<GivenDocuments> parse(std::string_view line);
  static bool is_one(std::string_view line);

 private:
  std::set<std::pair<std::uint64_t, GlobalId>> gids_;  ///< Ordered by position.
};

/// The progress of a visit, the content of Visit::cursor() and of the progress files of `fjord visit`: one line for
/// each slice, and one line for the documents given in incomplete buckets. The first line has the checksum of the
/// others.
struct VisitCursor {
  std::vector<visitors::SessionCursor> slices;
  GivenDocuments given;

  std::string to_text() const;
  /// Reads also texts of the former form, whose first line says nothing of the others. Errors: InvalidArgument that
  /// names the malformed line, or says that a line is missing or was changed.
  static Result<VisitCursor> parse(std::string_view text);
};

}  // namespace fjord
