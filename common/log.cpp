#include "fjord/common/log.h"

#include <atomic>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "fjord/common/log_lines.h"
#include "fjord/common/printable.h"

namespace fjord::log {

namespace {

// The only exception to "no globals": every component logs, and all lines of a process share one stream.
std::atomic<Level> current_level{Level::Info};

/// A peer may send texts of any length, which messages repeat.
constexpr std::size_t kLineBytesMax = 4096;
constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%f%z %l %v";

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::Debug:
      return spdlog::level::debug;
    case Level::Info:
      return spdlog::level::info;
    case Level::Warning:
      return spdlog::level::warn;
    case Level::Error:
      return spdlog::level::err;
    case Level::Off:
      break;
  }
  return spdlog::level::off;
}

spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto made = std::make_unique<spdlog::logger>("fjord", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern(kPattern);
    made->set_level(spdlog::level::trace);  // The function enabled() alone decides which lines are written.
    return made.release();                  // never destroyed: threads can log while the process ends
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) { current_level.store(level, std::memory_order_relaxed); }

Level level_from_string(std::string_view name) {
  if (name == "debug") return Level::Debug;
  if (name == "warning") return Level::Warning;
  if (name == "error") return Level::Error;
  if (name == "off") return Level::Off;
  return Level::Info;
}

bool enabled(Level level) { return level != Level::Off && level >= current_level.load(std::memory_order_relaxed); }

void write(Level level, std::string_view component, const std::string& line) {
  logger().log(to_spdlog(level), "{}: {}", component, to_printable(line, kLineBytesMax));
}

struct LineFormatter::Impl {
  spdlog::pattern_formatter formatter{kPattern};
  fmt::memory_buffer text;
  spdlog::memory_buf_t line;
};

LineFormatter::LineFormatter() : impl_(std::make_unique<Impl>()) {}
LineFormatter::~LineFormatter() = default;

void LineFormatter::append(Level level, std::string_view component, std::string_view line, std::string& to) {
  impl_->text.clear();
  impl_->text.append(component);
  impl_->text.append(std::string_view(": "));
  if (line.size() <= kLineBytesMax && is_printable(line)) {
    impl_->text.append(line);
  } else {
    impl_->text.append(to_printable(line, kLineBytesMax));
  }
  impl_->line.clear();
  impl_->formatter.format(spdlog::details::log_msg("fjord", to_spdlog(level), {impl_->text.data(), impl_->text.size()}),
                          impl_->line);
  to.append(impl_->line.data(), impl_->line.size());
}

void write_lines(std::string_view lines) {
  std::fwrite(lines.data(), 1, lines.size(), stderr);
  std::fflush(stderr);
}

}  // namespace fjord::log
