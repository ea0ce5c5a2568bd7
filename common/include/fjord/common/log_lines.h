#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fjord/common/log.h"

namespace fjord::log {

/// Makes lines as write() does, for a component that has many of them and writes them together. Threading: one thread
/// at a time.
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

}  // namespace fjord::log
