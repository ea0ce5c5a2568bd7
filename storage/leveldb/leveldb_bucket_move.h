#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "leveldb_engine.h"

namespace fjord::leveldb_store {

/// Replaces buckets by others that have their entries: a split or a join. The entries are copied to keys of new uids
/// in batches that nobody sees, and one batch at the end makes the new uids count and the old ones garbage; so it is as
/// slow as writing all entries again, and happens as a whole or not at all. Used once, within a call of the engine.
class BucketMove {
 public:
  BucketMove(Engine& engine, std::vector<BucketId> sources) : engine_(engine), sources_(std::move(sources)) {}

  /// `replicas` is what `target` gets if it is not there yet; if it is, its entries are kept.
  Status add_target(BucketId target, const ReplicaSet& replicas);
  Status finish();

 private:
  struct Target {
    BucketId id;
    Bucket bucket;
  };

  Status reserve_uid(std::uint64_t uid);
  Status copy(const std::vector<const Bucket*>& from, Target& target);
  Status copy_entry(const GlobalId& gid, const EntryHead& head, std::uint64_t from_uid, Target& target);
  Status flush(std::size_t at_least);

  Engine& engine_;
  const std::vector<BucketId> sources_;
  std::vector<Target> targets_;
  std::vector<std::uint64_t> replaced_;
  leveldb::WriteBatch batch_;
};

}  // namespace fjord::leveldb_store
