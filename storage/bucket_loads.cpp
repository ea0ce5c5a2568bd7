#include "bucket_loads.h"

#include <algorithm>

namespace fjord::storage {
namespace {

/// Calls `visit` with each pair of corresponding counts of the two loads.
template <typename Visit>
void for_each_count(rpc::BucketLoad& a, const rpc::BucketLoad& b, Visit visit) {
  visit(a.read_ns, b.read_ns);
  visit(a.write_ns, b.write_ns);
  visit(a.reads, b.reads);
  visit(a.writes, b.writes);
  visit(a.read_bytes, b.read_bytes);
  visit(a.written_bytes, b.written_bytes);
  visit(a.stored_bytes, b.stored_bytes);
  visit(a.search_ns, b.search_ns);
  visit(a.search_candidates, b.search_candidates);
  visit(a.search_pages, b.search_pages);
}

/// Returns part `index` of `parts` equal parts; together they are the whole.
rpc::BucketLoad part_of(const rpc::BucketLoad& whole, std::uint64_t index, std::uint64_t parts) {
  rpc::BucketLoad part;
  for_each_count(part, whole,
                 [&](std::uint64_t& count, std::uint64_t of) { count = of / parts + (index < of % parts ? 1 : 0); });
  return part;
}

}  // namespace

void add(rpc::BucketLoad& sum, const rpc::BucketLoad& more) {
  for_each_count(sum, more, [](std::uint64_t& count, std::uint64_t of) { count += of; });
}

bool is_empty(const rpc::BucketLoad& load) { return load == rpc::BucketLoad{.bucket = load.bucket}; }

void BucketLoads::set_bits(unsigned bits) {
  bits = std::min(bits, kBitsMax);
  if (bits == bits_) return;
  std::vector<rpc::BucketLoad> next(std::size_t{1} << bits);
  if (bits > bits_) {
    const std::size_t parts = next.size() / counts_.size();
    for (std::size_t i = 0; i < next.size(); ++i) {
      next[i] = part_of(counts_[i & (counts_.size() - 1)], i >> bits_, parts);
    }
  } else {
    for (std::size_t i = 0; i < counts_.size(); ++i) add(next[i & (next.size() - 1)], counts_[i]);
  }
  for (std::size_t i = 0; i < next.size(); ++i) next[i].bucket = i;
  counts_ = std::move(next);
  bits_ = bits;
}

}  // namespace fjord::storage
