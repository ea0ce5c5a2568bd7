#include "output_placement.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "fjord/cluster/node.h"
#include "fjord/common/log.h"

namespace fjord::mapreduce {
namespace {

constexpr std::uint32_t kOutputBucketsMin = 4;
constexpr std::uint32_t kOutputBucketsMax = 16;
constexpr unsigned kMovesMax = 3;

/// Returns the number of output buckets. Two per node keep every node busy in reduce. More than 16 would make the tuple
/// documents, one for each pair of input and output bucket, many and small.
std::uint32_t output_buckets_for(const rpc::ClusterSnapshot& snapshot) {
  std::uint32_t nodes = 0;
  for (std::size_t i = 0; i < snapshot.info().storage_addresses.size(); ++i) {
    if (snapshot.storage_serves(static_cast<std::uint16_t>(i))) ++nodes;
  }
  const std::uint32_t buckets = std::clamp(2 * nodes, kOutputBucketsMin, kOutputBucketsMax);
  const unsigned bits = snapshot.distribution_bits();
  return bits < 16 ? std::min(buckets, std::uint32_t{1} << bits) : buckets;
}

}  // namespace

void OutputPlacement::prepare(UniqueFunction<void(Status)> done) {
  if (job_.output_buckets != 0) {
    use({job_.output_base, job_.output_buckets});
    return done(Status::ok());
  }
  const auto snapshot = environment_.snapshot.get();
  ask_for_full_nodes(
      environment_.transport, *snapshot, environment_.executor, refusing_,
      while_alive(guard_.of(*this), [snapshot, done = std::move(done)](OutputPlacement& self, FullNodes full) {
        const JobState& job = self.job_;
        const std::uint32_t buckets =
            job.spec.output_buckets != 0 ? job.spec.output_buckets : output_buckets_for(*snapshot);
        if (const auto place = place_beside(full, *snapshot, buckets, job.job_id)) {
          self.use(*place);
          return done(Status::ok());
        }
        done(Status(StatusCode::NoSpace, full.describe() + "; each bucket has a replica there",
                    {.node = NodeId::storage(full.nodes().begin()->first).to_string()}));
      }));
}

void OutputPlacement::use(const OutputPlace& place) {
  job_.output_base = place.base;
  job_.output_buckets = place.buckets;
  job_.expected_documents.assign(place.buckets, 0);
}

/// True if the documents of the step can be put elsewhere. Not after the first pass: the next one reads pages where
/// they are. Not for rows that become documents: their ids decide where they are stored.
bool OutputPlacement::may_move(Step step) const {
  if (job_.output_buckets == 0 || moves_ == kMovesMax || !job_.passes_done.empty()) return false;
  return step == Step::Map || step == Step::Pages || (step == Step::Reduce && !pass_.puts_documents());
}

bool OutputPlacement::may_be_direct(Step step) const {
  const bool may_choose = job_.spec.shuffle == rpc::Shuffle::Auto && job_.shuffle == rpc::Shuffle::Store;
  return may_choose && step == Step::Map && !pass_.puts_rows() && !was_too_large_;
}

std::optional<StepEvent> OutputPlacement::recover(const Status& refusal, Step step) {
  if (const auto node = NodeId::parse(refusal.node()); node && node->type == NodeType::Storage) {
    refusing_.add(node->index, refusal.message());
  }
  if (may_move(step)) {
    ++moves_;
    log::info("job", "{} puts its documents elsewhere: {}", job_.job_id, refusal.message());
    return StepEvent::Move;
  }
  if (!may_be_direct(step)) return std::nullopt;
  log::info("job", "{} uses the shuffle direct: {}", job_.job_id, refusal.message());
  refusal_ = refusal;
  job_.shuffle = rpc::Shuffle::Direct;
  return StepEvent::Restart;
}

Status OutputPlacement::check_too_large(const Status& too_large) {
  if (job_.spec.shuffle != rpc::Shuffle::Auto) return too_large;
  if (!refusal_) {
    return {StatusCode::NoSpace, refusal_.message() + "; and without the store: " + too_large.message(),
            refusal_.details()};
  }
  was_too_large_ = true;
  return Status::ok();
}

Status with_advice(const Status& refusal) {
  const std::string node = refusal.node().empty() ? "the node" : refusal.node();
  return {refusal.code(),
          fmt::format("{}; make space on {}, or empty it with \"fjord node retire\", and run the job again",
                      refusal.message(), node),
          refusal.details()};
}

}  // namespace fjord::mapreduce
