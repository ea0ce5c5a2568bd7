#include "server_visitor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/storage/spi/token_entry.h"

namespace fjord::visitors {
namespace {

/// Maximum time after which a task on a stripe starts another bucket: other tasks wait for the stripe.
constexpr Duration kStripeTimeMax = std::chrono::microseconds(500);

}  // namespace

ReadMetrics::ReadMetrics(MetricRegistry& registry)
    : buckets_ok(registry.counter("fjord_visitor_buckets_total", "Buckets that visitors finished, by outcome.",
                                  {{"outcome", "ok"}})),
      buckets_failed(registry.counter("fjord_visitor_buckets_total", "Buckets that visitors finished, by outcome.",
                                      {{"outcome", "failed"}})),
      docblocks(registry.counter("fjord_visitor_docblocks_total", "Blocks of documents read by visitors.")),
      docblock_bytes(registry.counter("fjord_visitor_docblock_bytes_total", "Bytes of documents read by visitors.")) {}

/// Reads a bucket. If it was split, reads its parts one after the other; if it was joined, its share of the larger
/// bucket.
struct ServerVisitor::StripeIterator {
  std::unique_ptr<spi::DocumentIterator> iterator;
  std::shared_ptr<BucketReader> reader;  ///< The visitor's own reader, if it has one; `iterator` is null then.
  bool begun = false;
  bool refuses_damaged = false;
  std::vector<BucketId> parts;  ///< Parts that are still to be read; the last element is the next one.
  PositionRange wanted;
  std::uint64_t documents_read = 0;

  Status begin(spi::PersistenceProvider& provider, BucketId bucket) {
    begun = true;
    if (provider.replica_set(bucket)) {
      parts.push_back(bucket);
      return Status::ok();
    }
    for (unsigned bits = bucket.used_bits(); bits-- > 0;) {
      const BucketId whole = bucket.with_used_bits(bits);
      if (!provider.replica_set(whole)) continue;
      const PositionRange share = PositionRange::of(bucket);
      wanted = {std::max(wanted.first, share.first), std::min(wanted.last, share.last)};
      parts.push_back(whole);
      return Status::ok();
    }
    // Size of the parts found, in positions of the bucket tree.
    const auto size_of = [](BucketId id) { return std::uint64_t{1} << (BucketId::kUsedBitsMax - id.used_bits()); };
    std::uint64_t found = 0;
    for (BucketId part : provider.list_buckets()) {
      if (!bucket.contains(part)) continue;
      parts.push_back(part);
      found += size_of(part);
    }
    if (parts.empty()) return {StatusCode::NotFound, bucket.to_string() + " is not on this node"};
    if (found == size_of(bucket)) return Status::ok();
    return {StatusCode::NotReady, bucket.to_string() + " was split, and not all parts of it are on this node"};
  }

  /// Appends to `block`; returns true if there is more. Errors: NotFound if a part was split or joined meanwhile.
  Result<bool> next(spi::PersistenceProvider& provider, const spi::IterateOptions& options, DocBlockBuilder& block,
                    std::size_t bytes_max) {
    if (reader != nullptr) return next_of_reader(provider, options, block, bytes_max);
    while (block.size() < bytes_max) {
      if (iterator == nullptr) {
        if (parts.empty()) return false;
        FJORD_TRY_ASSIGN(iterator, provider.iterate(parts.back(), options));
        FJORD_TRY(check_served(provider, parts.back()));
        FJORD_TRY_ASSIGN(const BucketInfo info, provider.bucket_info(parts.back()));
        documents_read += info.documents;
      }
      FJORD_TRY_ASSIGN(const bool more, read(options, block, bytes_max));
      FJORD_TRY(check_served(provider, parts.back()));  // Again: the read may have found damage.
      if (more) return true;
      iterator.reset();
      parts.pop_back();
    }
    return !parts.empty();
  }

  void close() {
    iterator.reset();
    if (reader != nullptr) reader->close();
    reader.reset();
  }

  Status check_served(spi::PersistenceProvider& provider, BucketId part) const {
    FJORD_TRY_ASSIGN(const ReplicaSet set, provider.replica_set(part));
    if (set.epoch == 0) return {StatusCode::NotReady, part.to_string() + " is being filled on this node"};
    if (!refuses_damaged) return Status::ok();
    FJORD_TRY_ASSIGN(const bool is_damaged, provider.is_damaged(part));
    if (is_damaged) return {StatusCode::NotReady, part.to_string() + " has lost something on this node"};
    return Status::ok();
  }

  Result<bool> next_of_reader(spi::PersistenceProvider& provider, const spi::IterateOptions& options,
                              DocBlockBuilder& block, std::size_t bytes_max) {
    std::uint64_t documents = 0;
    for (const BucketId part : parts) {
      FJORD_TRY(check_served(provider, part));
      FJORD_TRY_ASSIGN(const BucketInfo info, provider.bucket_info(part));
      documents += info.documents;
    }
    documents_read = documents;
    FJORD_TRY_ASSIGN(const bool more, reader->next({provider, parts, wanted, options}, block, bytes_max));
    for (const BucketId part : parts) FJORD_TRY(check_served(provider, part));
    return more;
  }

  Result<bool> read(const spi::IterateOptions& options, DocBlockBuilder& block, std::size_t bytes_max) {
    if (!options.include_removed && wanted.contains(PositionRange::of(parts.back()))) {
      return iterator->next(block, bytes_max);
    }
    std::uint64_t steps = 0;
    return iterator->visit([&](const EntryView& entry) {
      if (wants(options, entry, steps)) block.add(entry);
      return block.size() < bytes_max && steps < Selection::kPauseSteps;
    });
  }

  bool wants(const spi::IterateOptions& options, const EntryView& entry, std::uint64_t& steps) const {
    if (!wanted.contains(position_of(entry.gid))) return false;
    if (!entry.removed) return true;
    if (spi::is_token_id(entry.id)) return false;
    return options.selection == nullptr || options.selection->evaluate_id(entry.id, 0, &steps) != Match::False;
  }
};

/// A request to a stripe to read on in one bucket, and its result.
struct ServerVisitor::Read {
  std::size_t lane = 0;
  std::uint64_t number = 0;  ///< The lane's number when this read was requested.
  BucketId bucket;
  std::shared_ptr<StripeIterator> iterator;

  bool is_done = false;  ///< False if the task ended before this bucket's turn.
  Status status;
  std::string bytes;
  bool more = false;
  std::size_t count = 0;
  std::uint64_t documents_read = 0;  ///< Documents of the bucket read so far.

  /// True if this is the last read of the bucket.
  bool is_last() const { return is_done && !(more && status); }

  void run(spi::PersistenceProvider& provider, const spi::IterateOptions& options, std::size_t bytes_max) {
    is_done = true;
    status = read(provider, options, bytes_max);
    if (!more || !status) iterator->close();
  }

 private:
  Status read(spi::PersistenceProvider& provider, const spi::IterateOptions& options, std::size_t bytes_max) {
    if (!iterator->begun) FJORD_TRY(iterator->begin(provider, bucket));
    DocBlockBuilder builder;
    FJORD_TRY_ASSIGN(more, iterator->next(provider, options, builder, bytes_max));
    count = builder.count();
    bytes = builder.take();
    documents_read = iterator->documents_read;
    return Status::ok();
  }
};

struct ServerVisitor::Unvisited {
  Reads reads;
  std::size_t at = 0;  ///< Index in `reads` of the block that is visited.
  bool is_begun = false;
  std::string docblock;    ///< The projected block of reads[at], if begun.
  std::size_t bytes = 0;   ///< Size of that block.
  std::size_t offset = 0;  ///< Bytes of that block that were visited.
};

ServerVisitor::ServerVisitor(const Clock& clock, spi::BucketAccess& access, ReadMetrics& metrics, ReadPlan plan)
    : clock_(clock), access_(access), metrics_(metrics), plan_(std::move(plan)) {
  lanes_.resize(std::max(1u, std::min<unsigned>(plan_.buckets_at_once, static_cast<unsigned>(plan_.buckets.size()))));
  reads_at_once_ = lanes_.size();
}

ServerVisitor::~ServerVisitor() {
  for (Lane& lane : lanes_) release_iterator(lane);
}

Status ServerVisitor::make_visitor(const VisitorFactory& factory, const Parameters& parameters) {
  FJORD_TRY_ASSIGN(visitor_, factory(*this, parameters));
  return Status::ok();
}

void ServerVisitor::assign(Mailbox mailbox, VisitorOutput output) {
  mailbox_ = std::move(mailbox);
  output_ = std::move(output);
}

void ServerVisitor::start() {
  if (cancelled()) {
    finish();
  } else {
    fill_lanes();
  }
}

void ServerVisitor::stop() {
  if (finished_) return;
  for (Lane& lane : lanes_) {
    if (lane.number == 0) continue;
    release_iterator(lane);
    lane.number = 0;
    visitor_->abandon_bucket(lane.bucket);
  }
  finish();
}

void ServerVisitor::finish() {
  finished_ = true;
  visitor_.reset();
  say_all();
  output_.on_finished();
}

void ServerVisitor::fill_lanes() {
  if (finished_) return;
  bool any_open = false;
  for (Lane& lane : lanes_) {
    while (lane.number == 0 && next_bucket_ < plan_.buckets.size()) open(lane, plan_.buckets[next_bucket_++]);
    any_open = any_open || lane.number != 0;
  }
  if (any_open) {
    read_lanes();
  } else {
    finish();
  }
}

void ServerVisitor::open(Lane& lane, BucketId bucket) {
  lane = Lane{.bucket = bucket, .number = next_number_++, .iterator = std::make_shared<StripeIterator>()};
  lane.iterator->wanted = plan_.positions;
  lane.iterator->refuses_damaged =
      plan_.refuses_damaged &&
      std::find(plan_.even_damaged.begin(), plan_.even_damaged.end(), bucket) == plan_.even_damaged.end();
  const Status status = visitor_->begin_bucket(bucket);
  if (!status) {
    close(lane, {status, {}});
  } else {
    lane.iterator->reader = visitor_->make_reader(bucket);
  }
}

/// Asks the stripes for as many blocks as may be pending. One task reads all open buckets of its stripe into a block,
/// because a message for each small bucket would cost more than reading it.
void ServerVisitor::read_lanes() {
  for (std::size_t first = 0; first < lanes_.size(); ++first) {
    if (!lanes_[first].may_read()) continue;
    if (blocks_read_ + blocks_unacked_ >= plan_.docblocks_pending) return;
    ++blocks_read_;
    const std::size_t stripe = access_.stripe_of(lanes_[first].bucket);
    Reads reads;
    for (std::size_t i = first; i < lanes_.size() && reads.size() < reads_at_once_; ++i) {
      Lane& lane = lanes_[i];
      if (!lane.may_read() || access_.stripe_of(lane.bucket) != stripe) continue;
      lane.reading = true;
      Read& read = reads.emplace_back();
      read.lane = i;
      read.number = lane.number;
      read.bucket = lane.bucket;
      read.iterator = lane.iterator;
    }
    read_on_stripe(std::move(reads));
  }
}

void ServerVisitor::read_on_stripe(Reads reads) {
  const BucketId bucket = reads.front().bucket;
  // The task may outlive this object, so it refers to it only by a weak pointer and the mailbox.
  access_.on_stripe(bucket, [weak = weak_from_this(), mailbox = mailbox_, &clock = clock_, options = plan_.iterate,
                             bytes_max = std::size_t{plan_.docblock_bytes},
                             reads = std::move(reads)](spi::PersistenceProvider& provider) mutable {
    const MonotonicTime begun = clock.now();
    std::size_t bytes = 0;
    for (Read& read : reads) {
      if (read.lane != reads.front().lane && (bytes >= bytes_max || clock.now() - begun >= kStripeTimeMax)) break;
      read.run(provider, options, bytes_max - bytes);
      bytes += std::min(read.bytes.size(), bytes_max - bytes);
    }
    mailbox.post([weak, shared_reads = std::make_shared<Reads>(std::move(reads))] {
      if (const auto self = weak.lock()) self->on_blocks(std::move(*shared_reads));
    });
  });
}

void ServerVisitor::on_blocks(Reads reads) {
  if (finished_) return;
  std::size_t done = 0;
  for (const Read& read : reads) {
    Lane& lane = lanes_[read.lane];
    done += read.is_done ? 1 : 0;
    if (lane.number != read.number) continue;  // The lane's bucket has failed or was stopped meanwhile.
    lane.reading = false;
    lane.exhausted = read.is_last();
    if (lane.exhausted) lane.iterator = nullptr;  // the stripe has closed it
  }
  reads_at_once_ = done < reads.size() ? done : std::max(reads_at_once_, std::min(2 * done, lanes_.size()));
  read_lanes();  // the next blocks are read while these are visited
  unvisited_.emplace_back().reads = std::move(reads);
  if (unvisited_.size() == 1) visit_blocks();  // otherwise visit_blocks() is already in progress
}

void ServerVisitor::visit_blocks() {
  while (!finished_ && !unvisited_.empty()) {
    if (!visit_all(unvisited_.front())) {
      mailbox_.post([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->visit_blocks();
      });
      return;
    }
    if (finished_) return;
    unvisited_.pop_front();
    --blocks_read_;
    // Also needed after the end of a bucket: the visitor may finish it only after other buckets have ended.
    read_lanes();
  }
}

bool ServerVisitor::visit_all(Unvisited& blocks) {
  for (; blocks.at < blocks.reads.size(); ++blocks.at) {
    const Read& read = blocks.reads[blocks.at];
    Lane& lane = lanes_[read.lane];
    if (!read.is_done || lane.number != read.number) {
      blocks.is_begun = false;
      continue;
    }
    const bool is_last = read.is_last();  // not lane.exhausted: the lane may have been read further meanwhile
    const Result<bool> is_visited = visit(lane, blocks);
    if (is_visited && !*is_visited) return false;
    blocks.is_begun = false;
    say_all();  // sends the result now, because the next bucket may take long
    if (!is_visited) {
      fail(lane, is_visited.error());
    } else if (is_last) {
      end(read.lane);
    }
    if (finished_) return true;
  }
  return true;
}

Result<bool> ServerVisitor::visit(Lane& lane, Unvisited& blocks) {
  Read& read = blocks.reads[blocks.at];
  if (!std::exchange(blocks.is_begun, true)) {
    FJORD_TRY(read.status);
    lane.matched += read.count;
    lane.documents_read = read.documents_read;
    metrics_.docblocks.add();
    metrics_.docblock_bytes.add(read.bytes.size());
    FJORD_TRY_ASSIGN(blocks.docblock, project(std::move(read.bytes)));
    blocks.bytes = blocks.docblock.size();
    blocks.offset = 0;
  }
  while (blocks.offset < blocks.bytes) {
    FJORD_TRY_ASSIGN(const std::size_t end, visitor_->visit_some(lane.bucket, blocks.docblock, blocks.offset));
    FJORD_CHECK_MSG(end > blocks.offset, "a visitor goes on with nothing");
    blocks.offset = end;
    // Documents are of similar sizes, so the part of the block's bytes is that of its documents.
    set_visited(lane, lane.matched - read.count + read.count * blocks.offset / blocks.bytes);
    if (blocks.offset < blocks.bytes && turn_is_over()) return false;
  }
  return true;
}

Result<std::string> ServerVisitor::project(std::string docblock) const {
  if (plan_.fields == nullptr) return docblock;
  DocBlockBuilder kept;
  EncodedDocument buffer;
  DocBlockReader reader(docblock);
  while (std::optional<EntryView> entry = reader.next()) {
    if (!entry->removed) {
      FJORD_TRY_ASSIGN(const ProjectedDocument document, plan_.fields->project(entry->header, entry->body, buffer));
      entry->header = document.header;
      entry->body = document.body;
    }
    kept.add(*entry);
  }
  if (!reader.ok()) return Status(StatusCode::Corruption, "a block of documents is malformed");
  return kept.take();
}

void ServerVisitor::end(std::size_t lane_index) {
  const Lane& lane = lanes_[lane_index];
  visitor_->end_bucket(lane.bucket, [weak = weak_from_this(), lane_index, number = lane.number](BucketResult result) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->ended_.push_back({lane_index, number, std::move(result)});
    self->settle_later();
  });
}

/// Posts settle(). The message keeps the stack flat for a visitor that answers at once, and joins its events to one
/// message to the service.
void ServerVisitor::settle_later() {
  if (std::exchange(settles_, true)) return;
  mailbox_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->settle();
  });
}

void ServerVisitor::settle() {
  if (finished_) return;
  const bool any_ended = !ended_.empty();
  for (Ended& ended : std::exchange(ended_, {})) {
    Lane& lane = lanes_[ended.lane];
    if (lane.number == ended.number) close(lane, std::move(ended.result));
  }
  settles_ = false;
  say_all();
  if (any_ended) fill_lanes();
}

void ServerVisitor::say_all() {
  if (!said_.empty()) output_.on_events(std::exchange(said_, {}));
}

void ServerVisitor::fail(Lane& lane, const Status& status) {
  visitor_->abandon_bucket(lane.bucket);
  close(lane, {status, {}});
  fill_lanes();
}

void ServerVisitor::set_visited(Lane& lane, std::uint64_t documents) {
  documents_open_.fetch_add(documents - std::exchange(lane.visited, documents), std::memory_order_relaxed);
}

void ServerVisitor::close(Lane& lane, BucketResult result) {
  release_iterator(lane);
  set_visited(lane, 0);
  lane.number = 0;
  (result.status ? metrics_.buckets_ok : metrics_.buckets_failed).add();
  rpc::VisitorEvent event;
  event.bucket = lane.bucket;
  event.bucket_done = true;
  event.status = std::move(result.status);
  event.result = std::move(result.result);
  event.documents_read = lane.documents_read;
  event.documents_matched = lane.matched;
  said_.push_back(std::move(event));
  settle_later();
}

void ServerVisitor::release_iterator(Lane& lane) {
  if (lane.iterator == nullptr) return;
  access_.on_stripe(lane.bucket,
                    [iterator = std::move(lane.iterator)](spi::PersistenceProvider&) { iterator->close(); });
  lane.iterator = nullptr;
}

void ServerVisitor::send(BucketId bucket, std::string docblock) {
  ++blocks_unacked_;
  rpc::VisitorEvent event;
  event.bucket = bucket;
  event.docblock = std::move(docblock);
  said_.push_back(std::move(event));
  settle_later();
}

void ServerVisitor::on_acknowledged(unsigned docblocks) {
  if (finished_) return;
  blocks_unacked_ -= std::min(blocks_unacked_, docblocks);
  read_lanes();
}

}  // namespace fjord::visitors
