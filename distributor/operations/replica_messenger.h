#pragma once

#include <functional>
#include <map>
#include <vector>

#include "batch.h"
#include "context.h"
#include "node_latencies.h"
#include "operations/read_choice.h"

namespace fjord::distributor {

/// Messages of operations to storage nodes: collects what is due for a node, sends it in one message, and repeats what
/// may succeed later. Confined to the executor.
class ReplicaMessenger {
 public:
  struct Hooks {
    /// A storage node's answer to a message, with one result for each operation unless it is an error.
    std::function<void(std::uint16_t node, const std::vector<OpRef>&, Result<rpc::ApplyReply>)> answered;
    /// The operation has to be dispatched again: another replica may answer it, or its bucket was split or joined.
    std::function<void(const OpRef&)> dispatch;
  };
  ReplicaMessenger(Context& context, NodeLatencies& latencies, TunableRegistry& tunables, Hooks hooks);

  /// Puts the operation into the next message to the node; flush() sends it.
  void send(const OpRef& ref, std::uint16_t node, std::uint64_t epoch);
  void flush();
  /// Sends or dispatches the operations again after a pause, without those that have ended meanwhile.
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
    std::uint32_t in_background = 0;  ///< Number of operations in the background.
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
  /// Number of the next message to a storage node. Begins at the wall clock, so that it rises over restarts, too.
  std::uint64_t next_message_;
};

}  // namespace fjord::distributor
