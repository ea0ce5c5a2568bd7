#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <zlib.h>

#include "fjord/common/result.h"

namespace fjord::cli {

/// A file or standard input ("-"), unpacked on the way if it is in gzip format.
class InputFile {
 public:
  /// Errors: NotFound, IoError with the path.
  static Result<std::unique_ptr<InputFile>> open(const std::string& path);

  /// "<stdin>" for "-".
  const std::string& name() const { return name_; }
  /// Fills `into` from its beginning; 0 at the end. Errors: IoError, also for a gzip file that is cut off.
  Result<std::size_t> read(std::span<char> into);
  /// Everything. Errors: TooLarge beyond `bytes_max`; as read().
  Result<std::string> read_all(std::size_t bytes_max);
  /// 0 to 1; negative if the size is not known.
  double part_read() const;

 private:
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  InputFile(std::string name, gzFile file, std::uint64_t size) : name_(std::move(name)), file_(file), size_(size) {}

  std::string name_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::uint64_t size_;
};

}  // namespace fjord::cli
