#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/common/turn_pool.h"
#include "fjord/document/field_set.h"
#include "fjord/rpc/visitor_messages.h"
#include "fjord/storage/spi/bucket_access.h"
#include "fjord/visitors/bucket_space.h"
#include "fjord/visitors/visitor.h"

namespace fjord::visitors {

/// A visitor's instructions for reading.
struct ReadPlan {
  std::vector<BucketId> buckets;
  bool refuses_damaged = false;
  std::vector<BucketId> even_damaged;  ///< Subset of `buckets`, read even if damaged.
  spi::IterateOptions iterate;
  PositionRange positions;                 ///< Documents at other positions are skipped.
  std::shared_ptr<const FieldSet> fields;  ///< Fields that the visitor gets; null: all that were read.
  std::uint32_t docblock_bytes = 0;
  unsigned buckets_at_once = 1;
  unsigned docblocks_pending = 4;
};

struct ReadMetrics {
  explicit ReadMetrics(MetricRegistry& registry);

  Counter& buckets_ok;
  Counter& buckets_failed;
  Counter& docblocks;
  Counter& docblock_bytes;
};

/// Receives the events of a visitor. The receiver assigns their sequence numbers.
struct VisitorOutput {
  UniqueFunction<void(std::vector<rpc::VisitorEvent>)> on_events;
  UniqueFunction<void()> on_finished;  ///< Called once, after the last event.
};

/// Drives one Visitor over its buckets.
///
/// Threading: constructed on the service's executor, where assign() is called once; everything else but cancel(),
/// cancelled(), processor_us() and documents_open() runs on the executor behind the assigned mailbox. Lifetime: held by
/// shared_ptr. `access` and `metrics` outlive it; `clock` also outlives the stripes.
class ServerVisitor final : public VisitContext, public std::enable_shared_from_this<ServerVisitor> {
 public:
  ServerVisitor(const Clock& clock, spi::BucketAccess& access, ReadMetrics& metrics, ReadPlan plan);
  ~ServerVisitor() override;

  /// Called first, before all other functions.
  Status make_visitor(const VisitorFactory& factory, const Parameters& parameters);
  /// The Visitor's own idle_max().
  std::optional<Duration> idle_max() const { return visitor_->idle_max(); }
  void assign(Mailbox mailbox, VisitorOutput output);
  void start();
  /// The client has acknowledged `docblocks` more blocks.
  void on_acknowledged(unsigned docblocks);
  /// Any thread. The caller then calls stop() on the visitor's executor.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void stop();

  const std::shared_ptr<const DocumentTypeRepo>& types() const override { return plan_.iterate.types; }
  Mailbox mailbox() const override { return mailbox_; }
  void send(BucketId bucket, std::string docblock) override;
  bool cancelled() const override { return cancelled_.load(std::memory_order_relaxed); }
  bool turn_is_over() const override { return TurnPool::turn_is_over(); }
  void note_processor_time(Duration worked) override {
    processor_us_.fetch_add(static_cast<std::uint64_t>(worked.count()), std::memory_order_relaxed);
  }
  /// Processor time in microseconds, as reported by the Visitor. Any thread.
  std::uint64_t processor_us() const { return processor_us_.load(std::memory_order_relaxed); }
  /// Documents that were visited so far in buckets that have not ended. Any thread.
  std::uint64_t documents_open() const { return documents_open_.load(std::memory_order_relaxed); }

 private:
  /// Made on the visitor's executor; used and closed on the stripe.
  struct StripeIterator;
  struct Read;
  using Reads = std::vector<Read>;

  /// A bucket that is being read.
  struct Lane {
    BucketId bucket;
    std::uint64_t number = 0;  ///< Unique in this visitor; 0: no bucket is open here.
    std::shared_ptr<StripeIterator> iterator;
    bool reading = false;
    bool exhausted = false;
    std::uint64_t documents_read = 0;
    std::uint64_t matched = 0;
    std::uint64_t visited = 0;  ///< The part of `matched` that is in documents_open_.

    bool may_read() const { return number != 0 && !reading && !exhausted; }
  };
  /// The result of one stripe task, and how much of it was visited.
  struct Unvisited;
  /// A visitor's result for a bucket.
  struct Ended {
    std::size_t lane = 0;
    std::uint64_t number = 0;
    BucketResult result;
  };

  void fill_lanes();
  void open(Lane& lane, BucketId bucket);
  void read_lanes();
  void read_on_stripe(Reads reads);
  void on_blocks(Reads reads);
  /// Visits the blocks until none is left or the turn is over; then posts itself for the next turn.
  void visit_blocks();
  /// False if the turn ended before all of it was visited.
  bool visit_all(Unvisited& blocks);
  /// True once the whole block was visited.
  Result<bool> visit(Lane& lane, Unvisited& blocks);
  void end(std::size_t lane_index);
  void settle_later();
  void settle();
  void say_all();
  void fail(Lane& lane, const Status& status);
  void set_visited(Lane& lane, std::uint64_t documents);
  void close(Lane& lane, BucketResult result);
  void release_iterator(Lane& lane);
  /// The docblock reduced to the wanted fields.
  Result<std::string> project(std::string docblock) const;
  void finish();

  const Clock& clock_;
  spi::BucketAccess& access_;
  ReadMetrics& metrics_;
  ReadPlan plan_;
  std::unique_ptr<Visitor> visitor_;
  Mailbox mailbox_;
  VisitorOutput output_;
  std::atomic<bool> cancelled_{false};
  std::atomic<std::uint64_t> processor_us_{0};
  std::atomic<std::uint64_t> documents_open_{0};

  std::vector<Lane> lanes_;
  std::size_t next_bucket_ = 0;
  std::uint64_t next_number_ = 1;
  std::size_t reads_at_once_;  ///< Number of buckets that probably fill a block.
  std::deque<Unvisited> unvisited_;
  std::vector<Ended> ended_;
  std::vector<rpc::VisitorEvent> said_;
  bool settles_ = false;         ///< A message that calls settle() is posted.
  unsigned blocks_read_ = 0;     ///< Blocks being read, or read and not yet visited.
  unsigned blocks_unacked_ = 0;  ///< Blocks sent to the client and not acknowledged.
  bool finished_ = false;
};

}  // namespace fjord::visitors
