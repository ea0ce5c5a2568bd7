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
#include "fjord/rpc/cluster_snapshot.h"
#include "transport_gate.h"

namespace fjord {

/// Keeps the client's snapshot of the cluster. It asks in rounds: one distributor after the other, in random order,
/// until one gives a useful answer. Rounds repeat with growing pauses as long as somebody waits for what they did not
/// bring.
///
/// Threading: confined to the executor, except snapshots().
class ClusterWatcher : public std::enable_shared_from_this<ClusterWatcher> {
 public:
  using Done = UniqueFunction<void(Status)>;

  /// What a waiter waits for; a snapshot in any case.
  struct Condition {
    bool fresh = false;                ///< The answer to a question asked from now on.
    std::uint64_t schema_version = 0;  ///< At least.
  };

  ClusterWatcher(std::shared_ptr<const ClientOptions> options, const Clock& clock, Random random,
                 std::shared_ptr<TransportGate> gate, Executor& executor);

  const rpc::SnapshotHolder& snapshots() const { return holder_; }
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot() const { return holder_.get(); }
  /// `on_change` is called after each change of the snapshot.
  void set_on_change(UniqueFunction<void()> on_change) { on_change_ = std::move(on_change); }

  /// Takes in what an answer carried; true if it was newer.
  bool take(const rpc::ClusterInfo& info);
  /// Asks for news, unless that was done a moment ago or is being done.
  void refresh();
  /// Keeps asking until there is a snapshot, at the longest until `deadline`.
  void need_snapshot(MonotonicTime deadline);
  /// Calls `done` when the condition holds; at `deadline` with NotReady that says why it does not.
  void wait(Condition condition, MonotonicTime deadline, Done done);

  /// Whom to ask: distributors that are up, in random order, then those of the configured addresses that are not among
  /// them.
  std::vector<rpc::Address> candidates();
  /// NotReady with each address of the last rounds and its reason.
  Status why_not_ready() const;
  /// Ends all waiters with Cancelled.
  void close();

 private:
  struct Waiter {
    std::uint64_t id = 0;
    std::uint64_t round = 0;  // the first round that counts
    std::uint64_t schema_version = 0;
    Done done;
  };

  void start_round();
  void ask_next();
  void on_answer(std::uint64_t round, const rpc::Address& address, Result<rpc::Reply> answer);
  /// What is wrong with the answer; empty if it was of use.
  std::string use_answer(const Result<rpc::Reply>& answer);
  void finish_round(bool answered);
  bool is_needed() const;
  bool is_satisfied(const Waiter& waiter) const;
  void serve_waiters();
  void expire(std::uint64_t waiter_id);

  std::shared_ptr<const ClientOptions> options_;
  const Clock& clock_;
  Random random_;
  std::shared_ptr<TransportGate> gate_;
  Executor& executor_;
  rpc::SnapshotHolder holder_;
  UniqueFunction<void()> on_change_;

  bool closed_ = false;
  bool asking_ = false;
  bool pausing_ = false;     // between two rounds that somebody waits for
  std::uint64_t round_ = 0;  // the running or last one
  std::uint64_t answered_round_ = 0;
  MonotonicTime answered_at_;
  std::uint32_t failures_ = 0;  // rounds in a row that brought nothing
  std::vector<rpc::Address> to_ask_;
  std::size_t asked_ = 0;
  MonotonicTime needed_until_;
  std::map<rpc::Address, std::string> reasons_;
  std::uint64_t next_waiter_ = 1;
  std::vector<Waiter> waiters_;
};

}  // namespace fjord
