#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_id.h"
#include "fjord/visitors/visit_token.h"

namespace fjord {

/// The documents that a visit has given of buckets that it has not given to their end. Together with the tokens, which
/// count whole buckets, they say exactly what was given, so that a visit that ends inside a bucket goes on without
/// giving a document twice.
class GivenDocuments {
 public:
  /// False if the document was given before.
  bool add(const GlobalId& gid) { return gids_.emplace(visitors::position_of(gid), gid).second; }
  bool contains(const GlobalId& gid) const { return gids_.contains({visitors::position_of(gid), gid}); }
  /// Everything in the range is given: its documents need not be remembered one by one.
  void complete(const visitors::PositionRange& range);
  std::size_t size() const { return gids_.size(); }

  /// One line, without the documents that `tokens` count as done: one token, or one for each slice in their order.
  std::string to_text(const std::vector<visitors::VisitToken>& tokens) const;
  /// Errors: InvalidArgument.
  static Result<GivenDocuments> parse(std::string_view line);
  static bool is_one(std::string_view line);

 private:
  std::set<std::pair<std::uint64_t, GlobalId>> gids_;  ///< By position.
};

/// How far a visit is: what Visit::cursor() and the progress files of `fjord visit` hold. A line for each slice, and
/// one for the documents given beside them.
struct VisitCursor {
  std::vector<visitors::VisitToken> tokens;
  GivenDocuments given;

  std::string to_text() const;
  /// Errors: InvalidArgument with the line.
  static Result<VisitCursor> parse(std::string_view text);
};

}  // namespace fjord
