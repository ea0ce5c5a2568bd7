#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "slot_file.h"

namespace fjord::slotfile {

/// Files to which no slot refers any more. A file is removed once a catalog without it is saved, because an older
/// catalog still names it.
class RetiredFiles {
 public:
  /// Adds those of `files` that no slot refers to.
  void add(std::span<const std::shared_ptr<SlotFile>> files) {
    std::set<std::uint32_t> seen;
    for (const auto& file : files) {
      if (file->users != 0 || !seen.insert(file->number()).second) continue;
      bytes_ += file->size();
      fresh_.push_back(file);
    }
  }
  /// Must be called when a catalog is made: that catalog names none of the files added so far.
  void begin_save() {
    saving_.insert(saving_.end(), fresh_.begin(), fresh_.end());
    fresh_.clear();
  }
  /// Must be called when that catalog is durable: removes the files that it does not name.
  void end_save() {
    for (const auto& file : saving_) {
      bytes_ -= file->size();
      file->remove_when_unused();
    }
    saving_.clear();
  }
  /// Returns the size of all files that wait for their removal.
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::vector<std::shared_ptr<SlotFile>> fresh_;
  std::vector<std::shared_ptr<SlotFile>> saving_;  ///< Files that the catalog which is being saved does not name.
  std::uint64_t bytes_ = 0;
};

}  // namespace fjord::slotfile
