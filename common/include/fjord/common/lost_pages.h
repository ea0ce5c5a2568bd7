#pragma once

#include <cstddef>
#include <cstdint>

namespace fjord {

/// Pages of files that are mapped for reading and that are gone when they are touched: the file was cut off, or its
/// medium failed. The system answers with SIGBUS, which ends a process. Here the page is replaced by zeros and counted,
/// so that whoever reads it finds a checksum that is wrong, as with any other damage.
///
/// Only pages of shared mappings without a right to write or execute are replaced: a program whose own code is gone
/// cannot go on. Threading: every thread.
class LostPages {
 public:
  /// Installs the handler, unless SIGBUS has another one already. make_posix_env() does it.
  static void guard();

  /// From here on.
  LostPages() : met_(met_by_this_thread()) {}
  /// True if this thread has met one since: what it has read meanwhile may be zeros.
  bool any() const { return met_by_this_thread() != met_; }

  /// How many all threads have met.
  static std::uint64_t met();
  /// True if some of those that this thread has met after met() was `since` are in this range; true also where that is
  /// no longer known.
  static bool met_in(const void* begin, std::size_t length, std::uint64_t since);

  /// For a handler of SIGBUS: true if the page at `address` has been replaced and the thread can go on.
  static bool replace(void* address) noexcept;

 private:
  static std::uint64_t met_by_this_thread();

  std::uint64_t met_;
};

}  // namespace fjord
