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
#include "fjord/storage/spi/bucket_access.h"
#include "fjord/visitors/bucket_space.h"
#include "fjord/visitors/visitor.h"

namespace fjord::visitors {

/// How one visitor reads.
struct ReadPlan {
  std::vector<BucketId> buckets;
  bool refuses_damaged = false;
  std::vector<BucketId> even_damaged;  ///< Of `buckets`, which are not refused.
  spi::IterateOptions iterate;
  PositionRange positions;                 ///< Other documents are left out.
  std::shared_ptr<const FieldSet> fields;  ///< What the visitor is given of what was read; null: all of it.
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

/// Takes what a visitor says. The sequence numbers of events are given there.
struct VisitorOutput {
  UniqueFunction<void(std::vector<rpc::VisitorEvent>)> on_events;
  UniqueFunction<void()> on_finished;  ///< Once, after the last event.
};

/// Drives one Visitor over its buckets.
///
/// Threading: made on the service's executor; assign() once there; then everything but cancel() and cancelled() on the
/// executor behind the mailbox that it was assigned. Lifetime: held by shared_ptr; `access` and `metrics` outlive it,
/// and `clock` the stripes, too.
class ServerVisitor final : public VisitContext, public std::enable_shared_from_this<ServerVisitor> {
 public:
  ServerVisitor(const Clock& clock, spi::BucketAccess& access, ReadMetrics& metrics, ReadPlan plan);
  ~ServerVisitor() override;

  /// Before anything else.
  Status make_visitor(const VisitorFactory& factory, const Parameters& parameters);
  /// That of its Visitor.
  std::optional<Duration> idle_max() const { return visitor_->idle_max(); }
  void assign(Mailbox mailbox, VisitorOutput output);
  void start();
  /// The client has dealt with `docblocks` more.
  void on_acknowledged(unsigned docblocks);
  /// Any thread. Follow it with stop() on the visitor's executor.
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
  /// How long processors have worked for it, as far as it says. Any thread.
  std::uint64_t processor_us() const { return processor_us_.load(std::memory_order_relaxed); }

 private:
  /// Lives on the stripe: made and emptied there.
  struct StripeIterator;
  struct Read;
  using Reads = std::vector<Read>;

  /// A bucket that is being read.
  struct Lane {
    BucketId bucket;
    std::uint64_t number = 0;  ///< Unique in this visitor; 0: nothing is open here.
    std::shared_ptr<StripeIterator> iterator;
    bool reading = false;
    bool exhausted = false;
    std::uint64_t documents_read = 0;
    std::uint64_t matched = 0;

    bool may_read() const { return number != 0 && !reading && !exhausted; }
  };
  /// What one task of a stripe has read, and how much of that was visited.
  struct Unvisited;
  /// What a visitor said of a bucket.
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
  /// Visits what was read until there is nothing left, or the turn is over; then it goes on with the next one.
  void visit_blocks();
  /// False if the turn is over before all of it was visited.
  bool visit_all(Unvisited& blocks);
  /// True once all of the block was visited.
  Result<bool> visit(Lane& lane, Unvisited& blocks);
  void end(std::size_t lane_index);
  void settle_later();
  void settle();
  void say_all();
  void fail(Lane& lane, const Status& status);
  void close(Lane& lane, BucketResult result);
  void release_iterator(Lane& lane);
  /// The docblock with the wanted fields alone.
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

  std::vector<Lane> lanes_;
  std::size_t next_bucket_ = 0;
  std::uint64_t next_number_ = 1;
  std::size_t reads_at_once_;  ///< So many buckets are likely to fill a block.
  std::deque<Unvisited> unvisited_;
  std::vector<Ended> ended_;
  std::vector<rpc::VisitorEvent> said_;
  bool settles_ = false;         ///< Soon, by message.
  unsigned blocks_read_ = 0;     ///< Being read, or read and not yet visited.
  unsigned blocks_unacked_ = 0;  ///< Sent to the client.
  bool finished_ = false;
};

}  // namespace fjord::visitors
