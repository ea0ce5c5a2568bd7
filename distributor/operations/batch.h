#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "conditional_write.h"
#include "fjord/common/clock.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/field_set.h"
#include "fjord/rpc/messages.h"
#include "fjord/rpc/transport.h"

namespace fjord::distributor {

/// One operation of a client's batch, while it is in flight.
struct Op {
  GlobalId gid;
  BucketId bucket;
  MonotonicTime deadline;  ///< The operation ends then at the latest; nothing begins after it.
  bool admitted = false;   ///< Counted in the budget.
  std::uint64_t timestamp_us = 0;
  std::uint32_t attempt = 0;  ///< Answers to an older attempt are dropped.
  bool settled = false;
  bool delivered = false;  ///< Its result was sent in a part of the answer.
  /// Times that it was sent and possibly applied: all but those refused for lack of space.
  std::uint32_t possibly_applied = 0;
  bool counted = false;                ///< Counted in its bucket's writes_under_way.
  bool partial = false;                ///< A replica refused it for good.
  bool doubtful = false;               ///< A replica may have it without an acknowledgement.
  bool ownership_uncertain = false;    ///< Another distributor may have owned the bucket since it was sent.
  bool corrupt = false;                ///< A read: a damaged replica cannot tell what it had.
  std::uint16_t acknowledged = 0;      ///< Replicas that have answered that they have it.
  std::vector<std::uint16_t> missing;  ///< Replicas that have not answered.
  std::vector<std::uint16_t> refused;  ///< Members without space for writes of clients.
  bool completing = false;             ///< `missing` refused it and were asked again: another member has it.
  /// Not 0: all members have the write, the client has been answered, and `missing` are replicas that are catching
  /// up. It still counts as in flight in its bucket, whose entry has this serial.
  std::uint64_t trailing = 0;
  std::optional<std::uint16_t> silent;  ///< Replica that did not answer the last read.
  Status last_problem;
  rpc::OperationResult result;
  std::unique_ptr<ConditionalWrite> conditional;  ///< Set if it reads before it writes.
  bool reading = false;                           ///< Conditional, and not decided yet.
  bool has_lock = false;
  std::unique_ptr<FieldSet> fields;  ///< Get: the wanted fields; null: all.
};

/// A client's batch, until it has been answered as a whole.
struct Batch {
  std::uint64_t number = 0;
  rpc::Execute request;
  rpc::Responder respond;
  std::vector<Op> ops;
  std::size_t left = 0;         ///< Operations that have not ended.
  std::size_t undelivered = 0;  ///< Operations that have ended and whose results have not been sent.
  std::size_t bytes = 0;
  MonotonicTime start;
  MonotonicTime part_at;  ///< Time of the first part of the answer.
  bool takes_parts = false;
  bool is_part_due = false;     ///< Results are sent as they become known.
  bool is_part_posted = false;  ///< A task that sends them is posted.
  std::uint64_t rest = 0;       ///< Number by which the client may ask for the rest; 0 once it has asked.
  bool wrong_distribution = false;
};

/// One attempt of one operation.
struct OpRef {
  std::shared_ptr<Batch> batch;
  std::uint32_t index = 0;
  std::uint32_t attempt = 0;
  bool takes_rest = false;  ///< The storage node was asked to return what damage has left.

  Op& op() const { return batch->ops[index]; }
  const rpc::Operation& request() const { return batch->request.operations[index]; }
  bool is_write() const { return request().kind != rpc::OperationKind::Get; }
  /// A read whose result all members have, so that no later read sees less.
  bool is_session_read() const { return !is_write() && request().consistency == rpc::Consistency::Session; }
  /// True if storage nodes are asked to read, not to write.
  bool is_reading() const { return !is_write() || op().reading; }
  bool is_current() const { return !op().settled && op().attempt == attempt; }
};

/// Job records are few and small. They may use the space that is reserved for merges, so that a full node ends no job.
inline bool is_job_record(const rpc::Operation& operation) { return operation.id.starts_with("id:fjord:fjord_job:"); }

}  // namespace fjord::distributor
