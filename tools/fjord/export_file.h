#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "visit_run.h"

namespace fjord::cli {

/// A file that documents are exported to, and beside it how far that is: PATH.progress.
///
/// A bucket gets into the file as a whole, once all of it has come; until then its lines wait in memory, or in a
/// temporary file beside. The progress file says how long the file was when which buckets were in it. Whatever is
/// behind that is cut off when the export goes on, so nothing is there twice and nothing is missing, also after
/// kill -9. With the name ending in .gz each bucket is a gzip member of its own.
class ExportFile {
 public:
  enum class Mode {
    New,        ///< The file must not be there.
    Overwrite,  ///< Whatever is there.
    Resume,     ///< Goes on where it was; begins if nothing is there.
  };
  /// Errors: AlreadyExists; NotFound and InvalidArgument for a progress file that is missing or does not fit; IoError.
  static Result<std::unique_ptr<ExportFile>> open(const std::string& path, Mode mode);
  ~ExportFile();

  /// Of what is in the file already; empty for a new one.
  const std::vector<visitors::VisitToken>& resumed() const { return resumed_; }
  std::uint64_t documents() const { return documents_; }
  std::uint64_t bytes() const { return bytes_; }

  /// What a new file begins with. A file that goes on has it already.
  Status begin(const std::string& header);
  Status add(const VisitedBucket& bucket, const std::string& lines, std::uint64_t documents);
  /// The bucket is complete: into the file with it.
  Status commit(const VisitedBucket& bucket);
  void drop(const VisitedBucket& bucket) { spools_.erase(bucket); }
  /// Everything that was committed is what the tokens say.
  Status save(const std::vector<visitors::VisitToken>& tokens);
  /// All is there: the progress file goes away.
  Status finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  /// What waits of one bucket.
  struct Spool {
    std::string lines;
    File overflow;  ///< What came before `lines`.
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
  std::vector<visitors::VisitToken> resumed_;
  std::map<VisitedBucket, Spool> spools_;
};

}  // namespace fjord::cli
