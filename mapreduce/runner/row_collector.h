#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "phase.h"

namespace fjord::mapreduce {

/// Reads pages of rows, each page once even if its bucket is read again.
///
/// Threading: confined.
class PageReader {
 public:
  using TakeRow = std::function<Status(std::string_view key, std::string_view row)>;

  explicit PageReader(const DocumentTypeRepo& types) : types_(types) {}

  /// Calls `take` for each row of the pages in the block. Errors: Corruption; those of `take`.
  Status read(const std::string& docblock, const TakeRow& take);
  /// Number of rows read.
  std::uint64_t rows() const { return rows_; }

 private:
  const DocumentTypeRepo& types_;
  std::set<std::string> pages_;  ///< Ids of pages that have been read.
  std::uint64_t rows_ = 0;
};

/// Reads all rows of the pass into the runner's process, as far as the application's limit leaves them.
///
/// Threading: confined to the runner's executor.
class RowCollector {
 public:
  explicit RowCollector(JobParts& parts) : parts_(parts) {}

  /// Starts a visit of the pages, and then calls `then`. `is_whole`: reads the pages of all rows, from which the limit
  /// has not selected yet. Errors fail the job.
  void start(bool is_whole, std::function<void()> then);

 private:
  Status take(PageReader& pages, const std::string& docblock);
  Status finish(const PageReader& pages);

  JobParts& parts_;
};

}  // namespace fjord::mapreduce
