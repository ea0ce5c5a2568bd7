#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "slot_file.h"

namespace fjord::slotfile {

/// Files that no slot refers to any more. A file is removed once a catalog without it is saved, because an older
/// catalog names it.
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
  /// Called when a catalog is made: it names none of the files added so far.
  void begin_save() {
    saving_.insert(saving_.end(), fresh_.begin(), fresh_.end());
    fresh_.clear();
  }
  /// Called when that catalog is durable: removes those files.
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
  std::vector<std::shared_ptr<SlotFile>> saving_;  ///< Not named by the catalog that is being saved.
  std::uint64_t bytes_ = 0;
};

}  // namespace fjord::slotfile
