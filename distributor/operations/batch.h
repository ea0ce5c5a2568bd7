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
  MonotonicTime deadline;  ///< The operation ends at this time at the latest.
  bool admitted = false;   ///< The operation is counted in the budget (Admission).
  std::uint64_t timestamp_us = 0;
  std::uint32_t attempt = 0;  ///< Number of the present attempt; answers to older attempts are dropped.
  bool settled = false;
  bool delivered = false;  ///< The result was sent in a part of the answer.
  /// How often the write was sent and possibly applied: all times but those refused for lack of space.
  std::uint32_t possibly_applied = 0;
  bool counted = false;                ///< The write is counted in its bucket's writes_under_way.
  bool partial = false;                ///< A replica refused the write permanently.
  bool doubtful = false;               ///< A replica may have the write without having acknowledged it.
  bool ownership_uncertain = false;    ///< Another distributor may have owned the bucket since the write was sent.
  bool corrupt = false;                ///< For a read: the replica is damaged and cannot tell what it had.
  std::uint16_t acknowledged = 0;      ///< Number of replicas that have acknowledged the write.
  std::vector<std::uint16_t> missing;  ///< Replicas that have not answered the present attempt.
  std::vector<std::uint16_t> refused;  ///< Members that have no space for writes of clients.
  /// The nodes in `missing` refused the write, while another member has it. They were asked again.
  bool completing = false;
  /// Not 0: all members have the write, the client has been answered, and `missing` are replicas that are catching up.
  /// The write still counts as in flight in its bucket, whose entry has this serial.
  std::uint64_t trailing = 0;
  std::optional<std::uint16_t> silent;  ///< Storage node that did not answer the last read.
  Status last_problem;
  rpc::OperationResult result;
  std::unique_ptr<ConditionalWrite> conditional;  ///< Set if the operation reads before it writes.
  bool reading = false;                           ///< A conditional operation that is still reading and not decided.
  bool has_lock = false;
  std::unique_ptr<FieldSet> fields;  ///< For a get: the wanted fields; null: all.
};

/// A client's batch, until all its operations have been answered.
struct Batch {
  std::uint64_t number = 0;
  rpc::Execute request;
  rpc::Responder respond;
  std::vector<Op> ops;
  std::size_t left = 0;         ///< Operations that have not ended.
  std::size_t undelivered = 0;  ///< Operations that have ended and whose results have not been sent.
  std::size_t bytes = 0;
  MonotonicTime start;
  MonotonicTime part_at;  ///< Time at which the first part of the answer is sent.
  bool takes_parts = false;
  bool is_part_due = false;     ///< The time `part_at` has passed: results are sent as soon as they are known.
  bool is_part_posted = false;  ///< A task that sends the known results is posted.
  std::uint64_t rest = 0;       ///< Number by which the client may ask for the missing results; 0 once it has asked.
  bool wrong_distribution = false;
};

/// Refers to one attempt of one operation.
struct OpRef {
  std::shared_ptr<Batch> batch;
  std::uint32_t index = 0;
  std::uint32_t attempt = 0;
  bool takes_rest = false;  ///< The storage node was asked to return even what is left of a damaged document.

  Op& op() const { return batch->ops[index]; }
  const rpc::Operation& request() const { return batch->request.operations[index]; }
  bool is_write() const { return request().kind != rpc::OperationKind::Get; }
  /// Returns true for a read whose result all members must have, so that no later read sees an older version.
  bool is_session_read() const { return !is_write() && request().consistency == rpc::Consistency::Session; }
  /// Returns true if storage nodes are asked to read, not to write.
  bool is_reading() const { return !is_write() || op().reading; }
  bool is_current() const { return !op().settled && op().attempt == attempt; }
};

/// Returns true for a write of a job record. These are few and small, and may use the space that is reserved for
/// merges, so that a full node does not end a job.
inline bool is_job_record(const rpc::Operation& operation) { return operation.id.starts_with("id:fjord:fjord_job:"); }

}  // namespace fjord::distributor
