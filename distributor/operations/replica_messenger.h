#pragma once

#include <functional>
#include <map>
#include <vector>

#include "batch.h"
#include "context.h"
#include "node_latencies.h"
#include "operations/read_choice.h"

namespace fjord::distributor {

/// Sends operations to storage nodes: collects the operations for a node, sends them in one message, and repeats those
/// that may succeed later. Confined to the executor.
class ReplicaMessenger {
 public:
  struct Hooks {
    /// Called with a storage node's answer to a message; the answer has one result for each operation unless it is an
    /// error.
    std::function<void(std::uint16_t node, const std::vector<OpRef>&, Result<rpc::ApplyReply>)> answered;
    /// Called when the operation has to be dispatched again: another replica may answer it, or its bucket was split or
    /// joined.
    std::function<void(const OpRef&)> dispatch;
  };
  ReplicaMessenger(Context& context, NodeLatencies& latencies, TunableRegistry& tunables, Hooks hooks);

  /// Adds the operation to the next message to the node; flush() sends the message.
  void send(const OpRef& ref, std::uint16_t node, std::uint64_t epoch);
  void flush();
  /// Sends or dispatches the operations again after a pause; leaves out those that have ended meanwhile.
  void retry_later(std::uint16_t node, std::vector<OpRef> refs);
  /// Dispatches the operation again at once.
  void dispatch_again(const OpRef& ref) {
    hooks_.dispatch(ref);
    flush();
  }
  /// Chooses one of these replicas to read, among those that are not slow, if there are any (ReadChoice). Sends a probe
  /// to slow ones now and then, for which no client waits.
  std::uint16_t choose_reader(const OpRef& ref, const BucketEntry& entry, const NodeIndexes& candidates);

 private:
  struct Outgoing {
    std::vector<rpc::StorageOperation> operations;
    std::vector<OpRef> refs;
    std::uint32_t in_background = 0;  ///< Number of operations with background priority.
  };
  void flush_to(std::uint16_t node, Outgoing& outgoing);
  void probe(const OpRef& ref, std::uint16_t node, std::uint64_t epoch);
  void note_answer(std::uint16_t node, std::uint64_t number, const Result<rpc::ApplyReply>& reply);
  static Duration time_for_reads(const std::vector<OpRef>& refs, MonotonicTime now);

  Context& context_;
  NodeLatencies& latencies_;
  ReadChoice read_choice_;
  Hooks hooks_;
  std::map<std::uint16_t, Outgoing> outbox_;
  /// Number of the next message to a storage node. It begins at the wall clock, so that it is also higher after a
  /// restart.
  std::uint64_t next_message_;
};

}  // namespace fjord::distributor
