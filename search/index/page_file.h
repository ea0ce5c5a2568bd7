#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fjord/common/env.h"

namespace fjord::search {

/// Writes a file of checksummed pages from its beginning to its end.
class PageFileWriter {
 public:
  /// Creates the file. `number` goes into each checksum, so that pages of another file do not verify.
  static Result<std::unique_ptr<PageFileWriter>> create(Env& env, const std::string& path, std::uint64_t number);
  /// Writes into an empty file.
  PageFileWriter(std::unique_ptr<RandomAccessFile> file, std::uint64_t number)
      : file_(std::move(file)), number_(number) {}

  Status append(std::string_view bytes);
  /// Content appended so far, without checksums.
  std::uint64_t size() const { return size_; }
  /// Writes the rest and makes all of it durable.
  Status finish();

 private:
  void end_page();
  Status write_pages();

  std::unique_ptr<RandomAccessFile> file_;
  std::uint64_t number_;
  std::uint64_t size_ = 0;
  std::string page_;   ///< Content of the page that is not full.
  std::string pages_;  ///< Whole pages to be written.
  std::uint64_t written_ = 0;
  std::uint64_t page_number_ = 0;
};

/// Reads content of a file that PageFileWriter wrote. What is read does not stay in the system's cache: the lists that
/// are worth it are in a cache of the index, whose size an operator sets.
class PageFile {
 public:
  PageFile(std::unique_ptr<RandomAccessFile> file, std::uint64_t number) : file_(std::move(file)), number_(number) {
    file_->expect_random();
  }

  /// Errors: Corruption if a page does not verify or the file is too short; those of the file.
  Result<std::string> read(std::uint64_t offset, std::size_t length) const;
  /// Returns the number of pages that contain the `length` bytes from `offset` on.
  static std::uint64_t pages(std::uint64_t offset, std::size_t length);

 private:
  std::unique_ptr<RandomAccessFile> file_;
  std::uint64_t number_;
};

/// Reads parts of a file whose offsets rise, many pages at a time.
///
/// Threading: confined to its owner. Lifetime: the file outlives it.
class PageStream {
 public:
  /// `end`: content behind it is not read.
  PageStream(const PageFile& file, std::uint64_t end) : file_(&file), end_(end) {}

  /// Returns bytes that are valid until the next call. Errors: those of PageFile::read.
  Result<std::string_view> read(std::uint64_t offset, std::size_t length);

 private:
  const PageFile* file_;
  std::uint64_t end_;
  std::uint64_t begin_ = 0;
  std::string content_;  ///< What lies from begin_ on.
};

}  // namespace fjord::search
