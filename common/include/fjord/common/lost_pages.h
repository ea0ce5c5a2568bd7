#pragma once

#include <cstddef>
#include <cstdint>

namespace fjord {

/// Handles pages of mapped files that cannot be read, because the file was truncated or its medium failed. The system
/// then sends SIGBUS, which would end the process. This class replaces the page by zeros and counts it, so that the
/// reader finds a wrong checksum, as with any other damage.
///
/// Only pages of shared, read-only mappings without execute permission are replaced: a program whose own code is lost
/// cannot go on. Threading: every thread.
class LostPages {
 public:
  /// Installs the handler, unless SIGBUS already has another one. make_posix_env() calls this.
  static void guard();

  /// Starts to watch for lost pages that this thread meets.
  LostPages() : met_(met_by_this_thread()) {}
  /// Returns true if this thread met a lost page since the constructor: data read since then can be zeros.
  bool any() const { return met_by_this_thread() != met_; }

  /// Returns the number of lost pages that all threads have met.
  static std::uint64_t met();
  /// Returns true if a lost page, found after met() returned `since`, is in this range. Returns true also if more pages
  /// were lost than are remembered.
  static bool met_in(const void* begin, std::size_t length, std::uint64_t since);

  /// For a SIGBUS handler: returns true if the page at `address` was replaced, so that the thread can continue.
  static bool replace(void* address) noexcept;

 private:
  static std::uint64_t met_by_this_thread();

  std::uint64_t met_;
};

}  // namespace fjord
