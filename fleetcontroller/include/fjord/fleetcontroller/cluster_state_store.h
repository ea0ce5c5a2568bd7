#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/common/result.h"
#include "fjord/common/unique_function.h"

namespace fjord::fleetcontroller {

/// The content stored under one name. The revision rises with every write; 0: never written.
struct StoredRecord {
  std::uint64_t revision = 0;
  std::string content;
  friend bool operator==(const StoredRecord&, const StoredRecord&) = default;
};

/// The leader of an election, as far as a member of the store knows it.
struct Leadership {
  std::uint64_t term = 0;  ///< Term of the leader; 0: there is no leader, or it is not known.
  std::string leader;      ///< Name of the leader in the election; empty: not known.
  bool mine = false;       ///< This member leads in `term`.
  friend bool operator==(const Leadership&, const Leadership&) = default;
};

/// The durable records of fleet controllers, and the election among them. Each controller has an object of its own,
/// called a member.
///
/// Two promises (docs/design/0005-cluster-that-changes.md):
/// 1. Terms rise with every election. Once a member has heard that it leads in term T, writes of lower terms fail.
/// 2. A write is a compare-and-set: of two writes based on the same revision at most one succeeds.
///
/// No call blocks. Answers run on the executor passed to campaign(), in any order.
/// Threading: all calls come from that executor, except leave(), which any thread may call.
/// Lifetime: outlives the controller that uses it, which calls leave() before its executor ends.
class ClusterStateStore {
 public:
  using OnLeadership = std::function<void(const Leadership&)>;
  using OnConfirmed = UniqueFunction<void(Status)>;
  using OnRead = UniqueFunction<void(Result<StoredRecord>)>;
  using OnWritten = UniqueFunction<void(Result<std::uint64_t>)>;

  virtual ~ClusterStateStore() = default;

  /// Takes part in elections until leave(), under a `name` that no other member has. `on_change` is called with the
  /// first known leadership and with every change; it may miss a leadership that is short. Must be called once.
  virtual void campaign(const std::string& name, Executor& executor, OnLeadership on_change) = 0;
  /// Gives up the leadership or the place in the queue of candidates, and goes to the end of the queue.
  virtual void resign() = 0;
  /// Ends the membership, and the leadership if this member has it. No callback runs afterwards.
  virtual void leave() = 0;

  /// Asks the store whether this member still leads in `term`. OK: it led at some moment after the call, and no other
  /// member leads until session_timeout() after the call, measured here. Errors: WrongDistribution if the term is over;
  /// Unavailable or Timeout if the store cannot tell.
  virtual void confirm(std::uint64_t term, OnConfirmed done) = 0;
  virtual Duration session_timeout() const = 0;

  /// Reads a record. A record that was never written is empty and has revision 0. Errors: Unavailable, Timeout,
  /// IoError, Corruption.
  virtual void read(std::string_view record, OnRead done) = 0;
  /// Writes `record` if it still has revision `expected`, and answers with the new revision. The write is durable
  /// before the answer. Errors: TestAndSetFailed if the record has another revision; WrongDistribution if `term` is
  /// over; Unavailable; Timeout, with which the write was possibly applied; IoError.
  virtual void write(std::uint64_t term, std::string_view record, std::uint64_t expected, std::string content,
                     OnWritten done) = 0;
};

/// Names of a cluster's records.
inline constexpr std::string_view kClusterRecord = "cluster";
inline constexpr std::string_view kSchemaRecord = "schemas";
/// The record with the highest time that timestamps may have been granted: microseconds since 1970, in decimal digits.
inline constexpr std::string_view kTimeRecord = "time";
/// The record with the number of the cluster and those of the folders of its storage nodes.
inline constexpr std::string_view kIdentityRecord = "identity";

}  // namespace fjord::fleetcontroller
