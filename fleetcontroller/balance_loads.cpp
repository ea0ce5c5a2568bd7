#include "balance_loads.h"

#include <algorithm>

namespace fjord::fleetcontroller {
namespace {

std::vector<rpc::BucketLoad> by_bucket(const rpc::GetLoadsReply& reply) {
  std::vector<rpc::BucketLoad> counts(std::size_t{1} << reply.bits);
  for (const rpc::BucketLoad& load : reply.buckets) {
    if (load.bucket < counts.size()) counts[load.bucket] = load;
  }
  return counts;
}

/// Returns the counts of the coarser buckets, of which there are `buckets`: each is the sum over its parts.
std::vector<rpc::BucketLoad> folded(const std::vector<rpc::BucketLoad>& counts, std::size_t buckets) {
  std::vector<rpc::BucketLoad> sums(buckets);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    rpc::BucketLoad& sum = sums[i & (buckets - 1)];
    sum.read_ns += counts[i].read_ns;
    sum.write_ns += counts[i].write_ns;
    sum.reads += counts[i].reads;
    sum.writes += counts[i].writes;
    sum.search_ns += counts[i].search_ns;
    sum.search_candidates += counts[i].search_candidates;
    sum.read_bytes += counts[i].read_bytes;
    sum.written_bytes += counts[i].written_bytes;
  }
  return sums;
}

std::uint64_t risen(std::uint64_t before, std::uint64_t now) { return now > before ? now - before : 0; }

LoadRate rate_of(const rpc::BucketLoad& before, const rpc::BucketLoad& now, double seconds, double parts) {
  const auto rate = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(risen(from, to)) / seconds / parts;
  };
  return {.read_ns = rate(before.read_ns, now.read_ns),
          .write_ns = rate(before.write_ns, now.write_ns),
          .reads = rate(before.reads, now.reads),
          .writes = rate(before.writes, now.writes),
          .search_ns = rate(before.search_ns, now.search_ns),
          .candidates = rate(before.search_candidates, now.search_candidates),
          .read_bytes = rate(before.read_bytes, now.read_bytes),
          .written_bytes = rate(before.written_bytes, now.written_bytes)};
}

// Processor time in a storage node, with messages and changes of threads (docs/experiments/balance-live.md), in
// thousandths of that of a read.
constexpr double kThousandthNs = 35;
constexpr double kReadCost = 35'000 / kThousandthNs;
constexpr double kReadByteCost = 1 / kThousandthNs;
constexpr double kWriteCost = 75'000 / kThousandthNs;
constexpr double kWrittenByteCost = 3 / kThousandthNs;
constexpr double kCandidateCost = 1'000 / kThousandthNs;

std::uint64_t operations_of(const rpc::BucketLoad& load) { return load.reads + load.writes + load.search_candidates; }

}  // namespace

MeasuredLoad measured(const LoadRate& rate, LoadMeasure measure) {
  switch (measure) {
    case LoadMeasure::Time:
      return {rate.read_ns, rate.write_ns, rate.search_ns};
    case LoadMeasure::Operations:
      return {rate.reads * 1000, rate.writes * 1000, rate.candidates * 1000};
    case LoadMeasure::Work:
      break;
  }
  return {rate.reads * kReadCost + rate.read_bytes * kReadByteCost,
          rate.writes * kWriteCost + rate.written_bytes * kWrittenByteCost, rate.candidates * kCandidateCost};
}

bool BalanceLoads::add(std::uint16_t node, const rpc::GetLoadsReply& reply) {
  if (!reply.status || reply.incarnation == 0 || reply.bits > 16) return false;
  Followed& followed = nodes_[node];
  NodeLoads& loads = followed.loads;
  const bool is_first = loads.incarnation == 0;
  const bool is_restarted = !is_first && loads.incarnation != reply.incarnation;
  if (!is_first && !is_restarted && reply.now_us <= followed.at_us) return false;
  std::vector<rpc::BucketLoad> counts = by_bucket(reply);
  const std::uint64_t operations = operations_of(reply.total);
  if (is_first) {
    loads.counted_before = operations;
  } else {
    // A process that has restarted begins at zero.
    if (is_restarted) {
      followed.counts.assign(counts.size(), {});
      followed.total = {};
      followed.at_us = reply.began_us;
      loads.counted = loads.counted_before = 0;
    }
    const double seconds = static_cast<double>(std::max<std::int64_t>(reply.now_us - followed.at_us, 1)) / 1e6;
    // When the number of bits has changed, the counts can be compared for the coarser buckets only.
    const std::size_t buckets = std::min(counts.size(), followed.counts.size());
    const std::vector<rpc::BucketLoad> before = folded(followed.counts, buckets);
    const std::vector<rpc::BucketLoad> now = folded(counts, buckets);
    const auto parts = static_cast<double>(counts.size() / buckets);
    loads.rates.resize(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      loads.rates[i] = rate_of(before[i & (buckets - 1)], now[i & (buckets - 1)], seconds, parts);
    }
    loads.total = rate_of(followed.total, reply.total, seconds, 1);
    loads.operations = risen(operations_of(followed.total), operations);
    loads.counted += loads.operations;
    loads.has_rates = true;
  }
  loads.incarnation = reply.incarnation;
  loads.bits = reply.bits;
  loads.stored_bytes.resize(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) loads.stored_bytes[i] = counts[i].stored_bytes;
  followed.at_us = reply.now_us;
  followed.counts = std::move(counts);
  followed.total = reply.total;
  return true;
}

const NodeLoads* BalanceLoads::of(std::uint16_t node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second.loads;
}

}  // namespace fjord::fleetcontroller
