#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "fjord/common/result.h"

struct gzFile_s;  // a type of zlib

namespace fjord {

/// A file or standard input ("-"). Input in gzip format is decompressed.
class InputFile {
 public:
  /// Opens the input. Errors: NotFound, IoError with the path.
  static Result<std::unique_ptr<InputFile>> open(const std::string& path);

  /// Returns the path; "<stdin>" for "-".
  const std::string& name() const { return name_; }
  /// Reads into `into` and returns the number of bytes; 0 at the end. Errors: IoError, also for a truncated gzip file.
  Result<std::size_t> read(std::span<char> into);
  /// Reads the whole input. Errors: TooLarge beyond `bytes_max`; those of read().
  Result<std::string> read_all(std::size_t bytes_max);
  /// Returns the fraction read, 0 to 1; negative if the size is unknown.
  double part_read() const;

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  InputFile(std::string name, gzFile_s* file, std::uint64_t size) : name_(std::move(name)), file_(file), size_(size) {}

  std::string name_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::uint64_t size_;
};

}  // namespace fjord
