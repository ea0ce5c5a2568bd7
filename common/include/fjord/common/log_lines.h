#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fjord/common/log.h"
#include "fjord/common/status.h"

namespace fjord::log {

/// Makes lines as write() does, without a time and with a level of syslog if standard error is the journal of systemd,
/// for a component that has many of them and writes them together. Threading: one thread at a time.
class LineFormatter {
 public:
  LineFormatter();
  ~LineFormatter();
  LineFormatter(const LineFormatter&) = delete;
  LineFormatter& operator=(const LineFormatter&) = delete;

  /// Appends the line with the present time.
  void append(Level level, std::string_view component, std::string_view line, std::string& to);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes whole lines to where all lines go, not mixed with others. Threading: every thread.
void write_lines(std::string_view lines);

struct FileOptions {
  std::string path;
  std::uint64_t bytes_max = 64u << 20;  ///< At this size a new file begins; the former one is PATH.1 then.
  int files_max = 8;                    ///< With PATH itself. 1: the file is emptied.
};

/// From now on the lines, and all that the process and its children write to standard output and standard error, go to
/// the end of a file with mode 0600. Errors: IoError, also if the path is a link; those of check_own_file().
/// Threading: every thread, as for the calls below.
Status write_to_file(const FileOptions& options);
/// Opens the path again: another program may have renamed the file. Does nothing without a file. Errors: as above, and
/// the lines go where they went.
Status reopen_file();
/// Writes how often warnings and errors came that were written only once while they repeated. Call it each second.
void write_repeats();

}  // namespace fjord::log
