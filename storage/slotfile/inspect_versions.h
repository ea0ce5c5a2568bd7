#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "catalog.h"
#include "file_format.h"
#include "fjord/common/hash.h"
#include "inspect_files.h"

namespace fjord::slotfile {

/// Finds out which version of each document counts, as an engine would: from the catalog, all entries of slotfiles and
/// all writes of the journal. All entries and writes must be added before judge() is called. Without a structure, or
/// with one that refers to no files, entries are compared by id alone.
class NewestVersions {
 public:
  void set_structure(const Catalog& catalog);

  bool is_referred_to(std::uint32_t file) const { return shares_.contains(file); }
  std::set<std::uint32_t> referred_to() const;

  void add_entry(std::uint32_t file, const MetaEntry& entry);
  void add_write(std::uint64_t uid, const GlobalId& gid, std::uint64_t timestamp_us);

  /// Sets state and bucket of the report. All entries and writes must have been added.
  void judge(std::uint32_t file, const MetaEntry& entry, EntryReport& report);
  void judge_write(std::uint64_t uid, EntryReport& report) const;
  /// Compares the entries found in each slot with the catalog. Must be called after all entries were judged. Slots with
  /// writes in the journal are skipped, because the catalog is out of date for them.
  void compare_with_catalog(const std::string& catalog_path, FindingSink& sink) const;

 private:
  struct OfSlot {
    std::uint64_t uid = 0;
    BucketId bucket;
    SlotRecord record;
    BucketInfo found;
    bool in_journal = false;
  };
  struct Share {
    std::size_t slot;  ///< Index of the slot in slots_.
    FileShare share;
  };
  struct Key {
    std::uint64_t uid;
    GlobalId gid;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return mix64(key.uid, key.gid.hash_bits()); }
  };

  const OfSlot* owner(std::uint32_t file, const GlobalId& gid) const;
  const BucketRecord* successor(std::uint64_t uid, const GlobalId& gid) const;

  std::map<std::uint64_t, BucketRecord> buckets_;
  std::map<std::uint64_t, Successors> successors_;
  std::vector<OfSlot> slots_;                           ///< Grouped by bucket.
  std::map<std::uint64_t, std::size_t> first_slot_;     ///< Index in slots_ of the first slot of each bucket, by uid.
  std::map<std::uint32_t, std::vector<Share>> shares_;  ///< The slots that use each file, by file number.
  std::unordered_map<Key, std::uint64_t, KeyHash> newest_;  ///< Newest timestamps; the map is never iterated.
};

}  // namespace fjord::slotfile
