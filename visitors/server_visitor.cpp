#include "server_visitor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/rpc/token_entry.h"

namespace fjord::visitors {

ReadMetrics::ReadMetrics(MetricRegistry& registry)
    : buckets_ok(registry.counter("fjord_visitor_buckets_total", "Buckets that visitors finished, by outcome.",
                                  {{"outcome", "ok"}})),
      buckets_failed(registry.counter("fjord_visitor_buckets_total", "Buckets that visitors finished, by outcome.",
                                      {{"outcome", "failed"}})),
      docblocks(registry.counter("fjord_visitor_docblocks_total", "Blocks of documents read by visitors.")),
      docblock_bytes(registry.counter("fjord_visitor_docblock_bytes_total", "Bytes of documents read by visitors.")) {}

/// Reads a bucket, or all the buckets that it was split into, one after the other, or its share of the one that it was
/// joined to.
struct ServerVisitor::StripeIterator {
  std::unique_ptr<spi::DocumentIterator> iterator;
  std::shared_ptr<BucketReader> reader;  ///< In place of an iterator.
  bool begun = false;
  bool refuses_damaged = false;
  std::vector<BucketId> parts;  ///< Not read yet, the last one first.
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
    // How much of the bucket its parts make up, counted in buckets of all bits.
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

  /// Appends to `block`; true if there is more. A part that is split or joined meanwhile ends it with NotFound.
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
      FJORD_TRY(check_served(provider, parts.back()));  // That something was lost may have come out only now.
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
    return iterator->visit([&](const EntryView& entry) {
      if (wants(options, entry)) block.add(entry);
      return block.size() < bytes_max;
    });
  }

  bool wants(const spi::IterateOptions& options, const EntryView& entry) const {
    if (!wanted.contains(position_of(entry.gid))) return false;
    if (!entry.removed) return true;
    if (rpc::is_token_entry(entry.id)) return false;
    return options.selection == nullptr || options.selection->evaluate_id(entry.id) != Match::False;
  }
};

struct ServerVisitor::Block {
  Status status;
  std::string bytes;
  bool more = false;
  std::size_t count = 0;
  std::uint64_t documents_read = 0;  ///< Of the bucket so far.
};

ServerVisitor::ServerVisitor(spi::BucketAccess& access, ReadMetrics& metrics, ReadPlan plan)
    : access_(access), metrics_(metrics), plan_(std::move(plan)) {
  lanes_.resize(std::max(1u, std::min<unsigned>(plan_.buckets_at_once, static_cast<unsigned>(plan_.buckets.size()))));
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
  output_.on_finished();
}

void ServerVisitor::fill_lanes() {
  if (finished_) return;
  bool any_open = false;
  for (Lane& lane : lanes_) {
    while (lane.number == 0 && next_bucket_ < plan_.buckets.size()) open(lane, plan_.buckets[next_bucket_++]);
    read_if_allowed(lane);
    any_open = any_open || lane.number != 0;
  }
  if (!any_open) finish();
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

void ServerVisitor::read_if_allowed(Lane& lane) {
  if (lane.number == 0 || lane.reading || lane.exhausted) return;
  if (blocks_read_ + blocks_unacked_ >= plan_.docblocks_pending) return;
  lane.reading = true;
  ++blocks_read_;
  // The task may outlive this object, so it holds nothing of it but the way back.
  access_.on_stripe(lane.bucket, [weak = weak_from_this(), mailbox = mailbox_, iterator = lane.iterator,
                                  bucket = lane.bucket, number = lane.number, options = plan_.iterate,
                                  lane_index = static_cast<std::size_t>(&lane - lanes_.data()),
                                  bytes_max = plan_.docblock_bytes](spi::PersistenceProvider& provider) {
    Block block;
    const auto read = [&]() -> Status {
      if (!iterator->begun) FJORD_TRY(iterator->begin(provider, bucket));
      DocBlockBuilder builder;
      FJORD_TRY_ASSIGN(block.more, iterator->next(provider, options, builder, bytes_max));
      block.count = builder.count();
      block.bytes = builder.take();
      block.documents_read = iterator->documents_read;
      return Status::ok();
    };
    block.status = read();
    if (!block.more || !block.status) {
      iterator->close();
    }
    mailbox.post([weak, lane_index, number, shared_block = std::make_shared<Block>(std::move(block))] {
      if (const auto self = weak.lock()) self->on_block(lane_index, number, std::move(*shared_block));
    });
  });
}

void ServerVisitor::on_block(std::size_t lane_index, std::uint64_t number, Block block) {
  if (finished_) return;
  Lane& lane = lanes_[lane_index];
  if (lane.number != number) {  // failed meanwhile
    --blocks_read_;
    for (Lane& waiting : lanes_) read_if_allowed(waiting);
    return;
  }
  lane.reading = false;
  lane.exhausted = !block.more;
  if (!block.status) {
    --blocks_read_;
    fail(lane, block.status);
    return;
  }
  lane.matched += block.count;
  lane.documents_read = block.documents_read;
  metrics_.docblocks.add();
  metrics_.docblock_bytes.add(block.bytes.size());
  read_if_allowed(lane);  // the next block is read while this one is visited
  const auto visit = [&]() -> Status {
    FJORD_TRY_ASSIGN(std::string docblock, project(std::move(block.bytes)));
    return docblock.empty() ? Status::ok() : visitor_->visit(lane.bucket, std::move(docblock));
  };
  const Status status = visit();
  --blocks_read_;
  if (!status) {
    fail(lane, status);
  } else {
    // Also when the bucket has ended: its visitor may be done with it only when other buckets have ended, too.
    if (lane.exhausted) end(lane_index);
    for (Lane& waiting : lanes_) read_if_allowed(waiting);
  }
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
  Lane& lane = lanes_[lane_index];
  release_iterator(lane);
  // Always by message, so that a visitor that answers at once does not make the stack grow with every bucket.
  visitor_->end_bucket(lane.bucket, [weak = weak_from_this(), mailbox = mailbox_, lane_index,
                                     number = lane.number](BucketResult result) {
    mailbox.post([weak, lane_index, number, shared_result = std::make_shared<BucketResult>(std::move(result))] {
      const auto self = weak.lock();
      if (self == nullptr || self->finished_ || self->lanes_[lane_index].number != number) return;
      self->close(self->lanes_[lane_index], std::move(*shared_result));
      self->fill_lanes();
    });
  });
}

void ServerVisitor::fail(Lane& lane, const Status& status) {
  visitor_->abandon_bucket(lane.bucket);
  close(lane, {status, {}});
  fill_lanes();
}

void ServerVisitor::close(Lane& lane, BucketResult result) {
  release_iterator(lane);
  lane.number = 0;
  (result.status ? metrics_.buckets_ok : metrics_.buckets_failed).add();
  rpc::VisitorEvent event;
  event.bucket = lane.bucket;
  event.bucket_done = true;
  event.status = std::move(result.status);
  event.result = std::move(result.result);
  event.documents_read = lane.documents_read;
  event.documents_matched = lane.matched;
  output_.on_event(std::move(event));
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
  output_.on_event(std::move(event));
}

void ServerVisitor::on_acknowledged(unsigned docblocks) {
  if (finished_) return;
  blocks_unacked_ -= std::min(blocks_unacked_, docblocks);
  for (Lane& lane : lanes_) read_if_allowed(lane);
}

}  // namespace fjord::visitors
