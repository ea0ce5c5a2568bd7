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

/// What is stored under one name. Revisions rise with every write; 0: never written.
struct StoredRecord {
  std::uint64_t revision = 0;
  std::string content;
  friend bool operator==(const StoredRecord&, const StoredRecord&) = default;
};

/// Who leads, as far as this member of the store has heard.
struct Leadership {
  std::uint64_t term = 0;  ///< 0: nobody leads, or it is not known.
  std::string leader;      ///< The name under which it takes part; empty if not known.
  bool mine = false;       ///< This member was elected, for `term`.
  friend bool operator==(const Leadership&, const Leadership&) = default;
};

/// Everything that fleet controllers must not forget, and the election among them; one object a controller.
///
/// Two promises, from which the rest follows (docs/design/0005-cluster-that-changes.md):
/// 1. Terms rise with every election. Once a member has heard that it leads in term T, no write of a lower term is
/// taken.
/// 2. A write is a compare-and-set: of two that were based on the same revision one is taken.
///
/// No call blocks. Answers come on the executor that campaign() was given, in no particular order.
/// Threading: every call comes from that executor, but leave(), which may come from anywhere.
/// Lifetime: outlives the controller that uses it, which calls leave() before its executor ends.
class ClusterStateStore {
 public:
  using OnLeadership = std::function<void(const Leadership&)>;
  using OnConfirmed = UniqueFunction<void(Status)>;
  using OnRead = UniqueFunction<void(Result<StoredRecord>)>;
  using OnWritten = UniqueFunction<void(Result<std::uint64_t>)>;

  virtual ~ClusterStateStore() = default;

  /// Takes part in elections as `name`, which no other member has, until leave(). `on_change` is called with what is
  /// known first and with every change; it may miss states that lasted for a moment. To be called once.
  virtual void campaign(const std::string& name, Executor& executor, OnLeadership on_change) = 0;
  /// Gives up the leadership, or the place in the queue, and goes to its end.
  virtual void resign() = 0;
  /// No answer and no change is told after it. Gives the leadership up if it was held.
  virtual void leave() = 0;

  /// Asks the store whether `term` is still this member's. An OK means that it was at some moment after the call, and
  /// that nobody else leads for session_timeout() after the call, as measured here. Errors: WrongDistribution if the
  /// term is over; Unavailable or Timeout if the store cannot say.
  virtual void confirm(std::uint64_t term, OnConfirmed done) = 0;
  virtual Duration session_timeout() const = 0;

  /// Errors: Unavailable, Timeout, IoError, Corruption. What was never written is revision 0 and empty.
  virtual void read(std::string_view record, OnRead done) = 0;
  /// Writes if `record` still has revision `expected`, and answers with the new one. It survives whatever the store
  /// survives before the answer. Errors: TestAndSetFailed if another revision is there; WrongDistribution if `term` is
  /// over; Unavailable or Timeout (then it may have been written), IoError.
  virtual void write(std::uint64_t term, std::string_view record, std::uint64_t expected, std::string content,
                     OnWritten done) = 0;
};

/// The records of a cluster.
inline constexpr std::string_view kClusterRecord = "cluster";
inline constexpr std::string_view kSchemaRecord = "schemas";
/// Up to which time timestamps may have been granted, in digits: microseconds since 1970.
inline constexpr std::string_view kTimeRecord = "time";

}  // namespace fjord::fleetcontroller
