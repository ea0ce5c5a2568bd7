#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fjord/document/bucket_id.h"
#include "fjord/rpc/storage_messages.h"

namespace fjord::storage {

/// Counts, by distribution bucket, what users' operations on the buckets of a stripe cost. Counting takes no lock and
/// allocates nothing. The counts only rise while the process runs, so a receiver learns from any two answers what
/// happened between them, even if answers between them were lost.
///
/// Confined to the stripe's executor.
class BucketLoads {
 public:
  /// The largest number of bits by which buckets are counted. With more distribution bits, several buckets share a
  /// count.
  static constexpr unsigned kBitsMax = 16;

  BucketLoads() : counts_(1) {}

  /// Counts by `bits` of the buckets' bits from now on, at most kBitsMax. Counts made so far are divided among the
  /// parts of their bucket, or added up.
  void set_bits(unsigned bits);
  unsigned bits() const { return bits_; }

  void add_read(BucketId bucket, std::uint64_t ns, std::uint64_t bytes) {
    add_read_to(counts_[index_of(bucket)], ns, bytes);
    add_read_to(total_, ns, bytes);
  }
  void add_write(BucketId bucket, std::uint64_t ns, std::uint64_t bytes) {
    add_write_to(counts_[index_of(bucket)], ns, bytes);
    add_write_to(total_, ns, bytes);
  }

  /// `candidates` keywords of the bucket matched a query, for which `pages` of index files were read.
  void add_search(BucketId bucket, std::uint64_t ns, std::uint64_t candidates, std::uint64_t pages) {
    add_search_to(counts_[index_of(bucket)], ns, candidates, pages);
    add_search_to(total_, ns, candidates, pages);
  }

  /// Returns 2^bits() counts, ordered by the bits of the bucket; stored_bytes is 0.
  const std::vector<rpc::BucketLoad>& counts() const { return counts_; }
  /// Returns the load of all buckets; it is counted separately from counts().
  const rpc::BucketLoad& total() const { return total_; }

 private:
  std::size_t index_of(BucketId bucket) const { return bucket.bits() & (counts_.size() - 1); }
  static void add_read_to(rpc::BucketLoad& load, std::uint64_t ns, std::uint64_t bytes) {
    load.read_ns += ns;
    ++load.reads;
    load.read_bytes += bytes;
  }
  static void add_write_to(rpc::BucketLoad& load, std::uint64_t ns, std::uint64_t bytes) {
    load.write_ns += ns;
    ++load.writes;
    load.written_bytes += bytes;
  }
  static void add_search_to(rpc::BucketLoad& load, std::uint64_t ns, std::uint64_t candidates, std::uint64_t pages) {
    load.search_ns += ns;
    load.search_candidates += candidates;
    load.search_pages += pages;
  }

  unsigned bits_ = 0;
  std::vector<rpc::BucketLoad> counts_;
  rpc::BucketLoad total_;
};

/// Adds the counts and stored bytes of `more` to `sum`.
void add(rpc::BucketLoad& sum, const rpc::BucketLoad& more);
/// Returns true if nothing was counted and nothing is stored.
bool is_empty(const rpc::BucketLoad& load);

}  // namespace fjord::storage
