#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "segment.h"

namespace fjord::search {

/// Copies what is alive in some segments into a new one, in steps. Documents may die meanwhile.
///
/// Lifetime: the sources outlive it.
class SegmentMerge {
 public:
  static Result<std::unique_ptr<SegmentMerge>> begin(Env& env, const std::string& directory, std::uint64_t number,
                                                     std::vector<Segment*> sources);
  /// Copies about this many bytes. True if more is to be done.
  Result<bool> step(std::size_t bytes);
  /// Ends the new file. Call it when step() has returned false.
  Result<SegmentPlace> finish() { return writer_->finish(); }
  /// Kills in the new segment what died in the sources since it was copied.
  void carry_over_dead(Segment& merged) const;
  const std::vector<Segment*>& sources() const { return sources_; }

 private:
  static constexpr std::uint32_t kNotCopied = UINT32_MAX;
  /// A place among the documents of a source.
  struct Cursor {
    std::size_t run = 0;
    std::uint32_t number = 0;
    std::vector<StoredDocument> documents;  ///< Documents of the run that is read.
    std::size_t at = 0;
    ListCache::Bytes bytes;
  };

  SegmentMerge(std::unique_ptr<SegmentWriter> writer, std::vector<Segment*> sources);
  /// Goes to the next run where one is needed. True if there is a document.
  Result<bool> fill(std::size_t source);
  /// Copies a document of the current list. False if there is none.
  Result<bool> copy_document();
  /// Copies the postings of a word. False if there is none.
  Result<bool> copy_word();

  std::unique_ptr<SegmentWriter> writer_;
  std::vector<Segment*> sources_;
  std::size_t list_ = 0;  ///< The list of documents that is being copied; behind the last one: words.
  std::vector<Cursor> cursors_;
  std::vector<std::size_t> words_;  ///< Next word of each source.
  /// New numbers by list, source and old number.
  std::array<std::vector<std::vector<std::uint32_t>>, 2> numbers_;
};

}  // namespace fjord::search
