#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "segment.h"

namespace fjord::search {

/// Copies the alive documents of some segments into a new segment, in steps. Documents may die meanwhile.
///
/// Lifetime: the sources outlive it.
class SegmentMerge {
 public:
  static Result<std::unique_ptr<SegmentMerge>> begin(Env& env, const std::string& directory, std::uint64_t number,
                                                     std::vector<Segment*> sources);
  /// Copies about this many bytes. Returns true if more is to be done.
  Result<bool> step(std::size_t bytes);
  /// Completes the new file. Call it when step() has returned false.
  Result<SegmentPlace> finish() { return writer_->finish(); }
  /// Marks documents as dead in the new segment that died in the sources since they were copied.
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
  };

  SegmentMerge(std::unique_ptr<SegmentWriter> writer, std::vector<Segment*> sources);
  /// Reads the next run of a source if the current one is used up. Returns true if the source has a document left.
  Result<bool> fill(std::size_t source);
  /// Copies the next document of the current list. Returns false if there is none.
  Result<bool> copy_document();
  /// Copies the postings of the next word. Returns false if there is none.
  Result<bool> copy_word();

  std::unique_ptr<SegmentWriter> writer_;
  std::vector<Segment*> sources_;
  std::vector<PageStream> streams_;  ///< One for each source; the documents of cursors lie in their buffers.
  std::size_t list_ = 0;             ///< The list of documents that is being copied; behind the last list: words.
  std::vector<Cursor> cursors_;
  std::vector<std::size_t> words_;  ///< Next word of each source.
  /// New numbers by list, source and old number.
  std::array<std::vector<std::vector<std::uint32_t>>, 2> numbers_;
};

}  // namespace fjord::search
