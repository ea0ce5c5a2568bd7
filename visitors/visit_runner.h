#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "bucket_finder.h"
#include "session_context.h"
#include "visit_buckets.h"

namespace fjord::visitors {

/// Runs visitors on storage nodes over the buckets that were found there: creates them, polls them, passes their
/// documents on, and gives buckets that a node could not read back to the finder. Relieves nodes that are slower than
/// the others.
///
/// Threading: confined to the session's executor.
class VisitRunner {
 public:
  VisitRunner(SessionContext& context, VisitBuckets& buckets, BucketFinder& finder)
      : context_(context), buckets_(buckets), finder_(finder) {}

  /// `self` keeps the session alive while an answer is handled. To be called before anything else.
  void set_self(std::weak_ptr<VisitRunner> self) { self_ = std::move(self); }
  bool is_over() const { return context_.finished; }

  /// Queues a bucket for a visitor on this node.
  void enqueue(BucketId bucket, std::uint16_t node) { nodes_[node].queue.push_back(bucket); }
  void create_visitors();
  /// Gives back all buckets on nodes that are not up.
  void drop_dead_nodes();
  /// If a node is idle, takes buckets from nodes that are behind, whether they have begun them or not.
  void relieve_stragglers();
  /// Polls again after a pause of the session.
  void resume();
  /// Destroys all visitors without waiting for the answers.
  void stop();
  /// Destroys all visitors; `settled` runs when all nodes have answered or timed out.
  void stop_and_settle(UniqueFunction<void()> settled);

 private:
  struct Run {
    std::uint64_t id = 0;
    std::uint16_t node = 0;
    rpc::Address address;
    std::set<BucketId> unfinished;
    std::uint64_t acknowledged = 0;
    std::uint64_t documents_open = 0;  // As the visitor has reported it last.
    std::uint64_t processor_us = 0;    // Processor time that the visitor has reported so far.
    unsigned silent_calls = 0;
    bool creating = true;
    bool polling = false;
    MonotonicTime last_event;  // Time of its creation or of its last event.
  };
  struct Node {
    std::deque<BucketId> queue;
    unsigned runs = 0;
    MonotonicTime first_begun;  // Time at which its first visitor was created.
    bool has_begun = false;
  };
  enum class Fault { NotHere, TryAgain, Permanent };

  static Fault classify(const Status& status);
  std::uint32_t visitors_max() const;
  std::uint32_t batch_size(const Node& node) const;
  /// Returns the node with the fewest visitors among those that can run another one; null if there is none.
  std::pair<const std::uint16_t, Node>* next_node();
  void create_visitor(std::uint16_t node, std::vector<BucketId> buckets);
  rpc::CreateVisitor request_for(std::vector<BucketId> buckets);
  void on_created(std::uint64_t run_id, Result<rpc::CreateVisitorReply> reply);
  void poll(Run& run);
  void on_polled(std::uint64_t run_id, Result<rpc::VisitorNextReply> reply);
  void on_silence(Run& run, const Status& reason);
  /// Returns false if the run is gone or the session has finished.
  bool on_event(Run& run, rpc::VisitorEvent event);
  void on_bucket_error(const Run& run, BucketId bucket, const Status& status);
  void drop_run(std::uint64_t run_id, const Status& reason);
  void abandon_queue(std::uint16_t node, const Status& reason);
  void destroy_visitor(const Run& run);
  void finish_if_done();

  bool has_idle_node() const;
  /// Takes from the queue all buckets that the node will not begin within `patience` at its rate so far. A bucket is
  /// taken from a node at most once.
  void take_from_queue(std::uint16_t index, Node& node, Duration patience);
  Duration mean_bucket_time() const;

  SessionContext& context_;
  VisitBuckets& buckets_;
  BucketFinder& finder_;
  std::weak_ptr<VisitRunner> self_;

  bool is_held_back_ = false;  // on_begin has delayed the next visitor.
  std::map<std::uint16_t, Node> nodes_;
  std::map<std::uint64_t, Run> runs_;
  Duration bucket_time_{0};  // Sum of the times between successive events of each visitor.
};

}  // namespace fjord::visitors
