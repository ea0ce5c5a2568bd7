#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fjord/client/client_options.h"
#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/common/random.h"
#include "fjord/common/status.h"
#include "fjord/rpc/cluster_news.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/gated_transport.h"

namespace fjord {

/// Returns the error of every operation and call that had not ended when its client was closed.
inline Status client_closed() { return {StatusCode::Cancelled, "the client was closed"}; }

/// Keeps the client's snapshot of the cluster up to date. It asks in rounds: one distributor after the other, in random
/// order, until one gives a useful answer. Rounds repeat with growing pauses while a waiter's condition is not met.
///
/// Threading: confined to the executor, except snapshots().
class ClusterWatcher : public std::enable_shared_from_this<ClusterWatcher> {
 public:
  using Done = UniqueFunction<void(Status)>;

  /// What a waiter waits for. Every waiter needs a snapshot.
  struct Condition {
    bool fresh = false;  ///< True: the waiter needs an answer to a request that was sent after the call of wait().
    std::uint64_t schema_version = 0;  ///< The waiter needs a snapshot with at least this schema version.
  };

  ClusterWatcher(std::shared_ptr<const ClientOptions> options, const Clock& clock, Random random,
                 std::shared_ptr<rpc::GatedTransport> gate, Executor& executor);

  const rpc::SnapshotHolder& snapshots() const { return holder_; }
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot() const { return holder_.get(); }
  /// `on_change` is called after each change of the snapshot.
  void set_on_change(UniqueFunction<void()> on_change) { on_change_ = std::move(on_change); }

  /// Applies the cluster information of an answer; returns whether it was newer.
  bool take(const rpc::ClusterInfo& info);
  /// Asks for newer information, unless a request is in flight or has just been answered.
  void refresh();
  /// Keeps asking until there is a snapshot, at most until `deadline`.
  void need_snapshot(MonotonicTime deadline);
  /// Calls `done` with OK when the condition holds, or at `deadline` with NotReady and the reason.
  void wait(Condition condition, MonotonicTime deadline, Done done);

  /// Returns the distributors to ask: those that are up, in random order, then the configured addresses that are not
  /// among them.
  std::vector<rpc::Address> candidates();
  /// Returns NotReady with each address that was asked in the last rounds, and why it gave no answer.
  Status why_not_ready() const;
  /// Ends all waiters with Cancelled.
  void close();

 private:
  using Answer = Result<rpc::GetClusterInfoReply>;

  struct Waiter {
    std::uint64_t id = 0;
    std::uint64_t round = 0;  // number of the first round whose answer satisfies the waiter
    std::uint64_t schema_version = 0;
    Done done;
  };

  void start_round();
  void ask_next();
  void on_answer(std::uint64_t round, const rpc::Address& address, const Answer& answer);
  /// Applies the answer. Returns what is wrong with it; empty if it was useful.
  std::string use_answer(const Answer& answer);
  void finish_round(bool answered);
  bool is_needed() const;
  bool is_satisfied(const Waiter& waiter) const;
  void serve_waiters();
  void expire(std::uint64_t waiter_id);

  std::shared_ptr<const ClientOptions> options_;
  const Clock& clock_;
  Random random_;
  std::shared_ptr<rpc::GatedTransport> gate_;
  Executor& executor_;
  rpc::SnapshotHolder holder_{rpc::SnapshotHolder::Follows::AnyCluster};
  UniqueFunction<void()> on_change_;

  bool closed_ = false;
  bool asking_ = false;
  bool pausing_ = false;     // in the pause before the next round
  std::uint64_t round_ = 0;  // number of the running or last round
  std::uint64_t answered_round_ = 0;
  MonotonicTime answered_at_;
  std::uint32_t failures_ = 0;  // consecutive rounds without a useful answer
  std::vector<rpc::Address> to_ask_;
  std::size_t asked_ = 0;
  MonotonicTime needed_until_;
  std::map<rpc::Address, std::string> reasons_;
  std::uint64_t next_waiter_ = 1;
  std::vector<Waiter> waiters_;
};

}  // namespace fjord
