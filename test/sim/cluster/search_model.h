#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fjord/client/operation_outcome.h"
#include "fjord/common/clock.h"
#include "fjord/document/document.h"
#include "fjord/rpc/search_messages.h"
#include "fjord/search/reference_search.h"

namespace fjord::sim {

/// Knows the writes to each document of the search workload, with their outcomes. It decides whether the answer of a
/// search can be true (I19): each document must have had a version during the search with which a search in one process
/// gives the answer.
class SearchModel {
 public:
  /// Records the begin of a write of `document`, or of a remove if it is empty. Returns its number, for end().
  std::size_t begin(const std::string& id, std::optional<search::SearchDocument> document, MonotonicTime now);
  void end(std::size_t write, Outcome outcome, MonotonicTime now);
  /// Records what was read after all writes had ended: from now on the document certainly has this version.
  void settle(const std::string& id, std::optional<search::SearchDocument> document);

  /// Returns an empty string if the answer, to a search that began and ended at these times, can be true. A search
  /// shows the writes that were acknowledged `age` before it. Answers to which too many states of the documents could
  /// belong are counted and not checked.
  std::string check(const rpc::Search& request, const rpc::SearchReply& reply, MonotonicTime began, MonotonicTime ended,
                    Duration age, std::int64_t reserve_micros);

  std::uint64_t checked() const { return checked_; }
  std::uint64_t undecided() const { return undecided_; }

 private:
  struct Write {
    std::string id;
    std::optional<search::SearchDocument> document;
    MonotonicTime begin;
    MonotonicTime end;
    bool is_over = false;
    Outcome outcome = Outcome::InDoubt;
  };
  using Versions = std::vector<const std::optional<search::SearchDocument>*>;

  /// Returns the versions that the document could have between `from` and `to`.
  Versions versions_of(const std::vector<std::size_t>& writes, MonotonicTime from, MonotonicTime to) const;

  std::vector<Write> writes_;
  std::map<std::string, std::vector<std::size_t>> by_id_;
  std::uint64_t checked_ = 0;
  std::uint64_t undecided_ = 0;
};

}  // namespace fjord::sim
