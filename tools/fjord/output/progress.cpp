#include "output/progress.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <mutex>
#include <unistd.h>

#include "fjord/common/thread_annotations.h"

namespace fjord::cli {
namespace {
constexpr auto kQuiet = std::chrono::seconds(2);
constexpr auto kRedraw = std::chrono::milliseconds(200);
constexpr std::size_t kBarWidth = 24;

/// The terminal, which lines of progress share with what a command prints.
struct Screen {
  std::mutex mutex;
  bool has_line FJORD_GUARDED_BY(mutex) = false;  ///< A line of progress is shown, without an end.
};

Screen& screen() {
  static Screen one;
  return one;
}

}  // namespace

void hide_progress() {
  const std::lock_guard lock(screen().mutex);
  if (!screen().has_line) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  screen().has_line = false;
}

Progress::When Progress::when(const std::string& text) {
  if (text == "always") return When::Always;
  return text == "never" ? When::Never : When::Auto;
}

Progress::Progress(std::string label, std::string unit, When when)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      shown_(when == When::Always || (when == When::Auto && terminal_)),
      start_(SteadyClock::now()),
      next_(start_ + kQuiet) {}

Progress::~Progress() {
  const std::lock_guard lock(screen().mutex);
  if (screen().has_line) std::fputc('\n', stderr);
  screen().has_line = false;
}

void Progress::update(double part, std::uint64_t count, const std::string& note) {
  if (!shown_) return;
  const auto now = SteadyClock::now();
  const std::lock_guard lock(screen().mutex);
  if (now < next_) return;
  next_ = now + (terminal_ ? SteadyClock::duration(kRedraw) : SteadyClock::duration(kQuiet));
  const std::string text = line(part, count, std::chrono::duration<double>(now - start_).count(), note);
  std::fprintf(stderr, terminal_ ? "\r%s\x1b[K" : "%s\n", text.c_str());
  std::fflush(stderr);
  screen().has_line = terminal_;
}

std::string Progress::line(double part, std::uint64_t count, double seconds, const std::string& note) const {
  std::string text = label_;
  if (part >= 0) {
    part = std::min(part, 1.0);
    const auto filled = static_cast<std::size_t>(part * static_cast<double>(kBarWidth));
    text += fmt::format(" {:3.0f}% [{}{}]", part * 100, std::string(filled, '#'), std::string(kBarWidth - filled, '.'));
  }
  text += fmt::format(" {} {}, {:.0f}/s", count, unit_, static_cast<double>(count) / std::max(seconds, 0.001));
  if (part > 0.01) text += fmt::format(", {:.0f} s left", seconds / part * (1 - part));
  if (!note.empty()) text += ", " + note;
  return text;
}

}  // namespace fjord::cli
