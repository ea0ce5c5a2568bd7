#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/library/detail/visited_bucket.h"
#include "fjord/visitors/session_cursor.h"

namespace fjord {

/// An export file and its progress file PATH.progress.
///
/// A bucket is appended as a whole once all its documents have arrived; until then its lines wait in memory or in a
/// temporary file in the same folder. The progress file records the complete buckets and the file length that contains
/// them. A resumed export first cuts off everything beyond that length, so no document is missing or written
/// twice, also after kill -9. If the name ends in .gz, each bucket is its own gzip member.
class ExportFile {
 public:
  enum class Mode {
    New,        ///< The file must not exist.
    Overwrite,  ///< Replaces an existing file.
    Resume,     ///< Continues an interrupted export; begins a new one without an existing file.
  };
  /// Errors: AlreadyExists, also for Resume if only PATH exists; InvalidArgument if the progress file is malformed or
  /// does not match PATH; IoError.
  static Result<std::unique_ptr<ExportFile>> open(const std::string& path, Mode mode);
  ~ExportFile();

  /// Returns the cursors of the buckets that the file already holds; empty for a new file.
  const std::vector<visitors::SessionCursor>& resumed() const { return resumed_; }
  std::uint64_t documents() const { return documents_; }
  std::uint64_t bytes() const { return bytes_; }

  /// Writes the header of a new file. Does nothing for a resumed one.
  Status begin(const std::string& header);
  Status add(const VisitedBucket& bucket, const std::string& lines, std::uint64_t documents);
  /// Appends a complete bucket to the file.
  Status commit(const VisitedBucket& bucket);
  void drop(const VisitedBucket& bucket) { spools_.erase(bucket); }
  /// Writes the progress file. `cursors` must cover exactly the committed buckets; there is at least one. The first
  /// one has the checksum of the rest of the file.
  Status save(const std::vector<visitors::SessionCursor>& cursors);
  /// Completes the export and removes the progress file.
  Status finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  /// The lines of one incomplete bucket.
  struct Spool {
    std::string lines;
    File overflow;  ///< Lines that arrived before `lines`.
    std::uint64_t documents = 0;
  };

  explicit ExportFile(std::string path);
  Status load(Mode mode);
  Status append(const std::string& lines);
  Status failed(const char* what) const;

  std::string path_;
  std::string progress_path_;
  bool packed_;
  File file_;
  std::uint64_t bytes_ = 0;
  std::uint64_t documents_ = 0;
  std::vector<visitors::SessionCursor> resumed_;
  std::map<VisitedBucket, Spool> spools_;
};

}  // namespace fjord
