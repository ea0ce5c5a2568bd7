#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fjord/client/operation_outcome.h"
#include "fjord/sim/sim_transport.h"

namespace fjord::sim {

/// What Fjord has acknowledged, seen on the network: for each document the newest acknowledged version, and the removes
/// that were not acknowledged. Timestamps order the versions of a document, so what a reader may be given follows
/// from them alone.
///
/// Documents that Fjord makes for itself (namespace "fjord") are left out. Threading: the scheduler's.
class Acknowledged {
 public:
  struct Document {
    std::uint64_t timestamp_us = 0;  ///< Newest acknowledged version; 0: none.
    bool removed = false;            ///< That version is a remove.
    /// Removes that began and were not acknowledged: one of them may have come last. By client and sequence.
    std::set<std::pair<std::uint64_t, std::uint64_t>> removes_in_doubt;
    std::uint64_t removes_begun = 0;  ///< Messages with a remove of it.

    /// True if a reader has to find the document.
    bool must_exist() const { return timestamp_us != 0 && !removed && removes_in_doubt.empty(); }
  };

  /// `listener` is called with the answer of a distributor to each operation on a document.
  void set_listener(std::function<void(const std::string& id, const Status& status)> listener) {
    listener_ = std::move(listener);
  }
  /// Records a batch of operations that a distributor receives.
  NetworkObserver::SeeReply see_request(const std::string& to, const rpc::Request& request);
  /// Documents by id, those included that were removed, or whose first write was not acknowledged.
  const std::map<std::string, Document>& documents() const { return documents_; }

  /// Returns an empty string if a read may have given a version of this time, 0 for "no such document"; else what is
  /// wrong. `known` is the record of the document at the beginning of the read.
  static std::string why_not(const Document& known, std::uint64_t timestamp_us);

  /// Returns an empty string, or how an answer to a client broke the last claim of I25: NOT_FOUND for what exists.
  const std::string& failure() const { return failure_; }
  /// Number of NOT_FOUND answers that were compared.
  std::uint64_t not_found() const { return not_found_; }

 private:
  /// An operation of a batch, as much of it as its result needs.
  struct Begun {
    std::string id;
    rpc::OperationKind kind = rpc::OperationKind::Unknown;
    std::pair<std::uint64_t, std::uint64_t> number;  ///< Client and sequence.
    Document known;                                  ///< Get: the record at the beginning.
  };
  using Batch = std::vector<Begun>;

  Batch begin(const rpc::Execute& request);
  void take(const std::string& to, Batch batch, const rpc::ExecuteReply& reply);
  void end(const Begun& operation, const rpc::OperationResult& result);

  std::map<std::string, Document> documents_;
  /// By distributor and number of the rest: the operations of an answer that came in part.
  std::map<std::pair<std::string, std::uint64_t>, Batch> rests_;
  std::function<void(const std::string& id, const Status& status)> listener_;
  std::uint64_t not_found_ = 0;
  std::string failure_;
};

}  // namespace fjord::sim
