#include "http/transport/access_log.h"

#include <algorithm>
#include <fmt/format.h>
#include <pthread.h>
#include <utility>

#include "fjord/common/fatal_signals.h"

namespace fjord::gateway {
namespace {

/// Further lines may come so long after the first one.
constexpr auto kPause = std::chrono::milliseconds(10);
constexpr std::size_t kBytesAtOnce = 256 << 10;
constexpr std::size_t kTargetBytesMax = 1000;
constexpr auto kLong = std::chrono::seconds(1);

bool is_problem(const EndedRequest& ended) {
  constexpr unsigned kNotFound = 404;
  constexpr unsigned kConditionFalse = 412;
  constexpr unsigned kFirstFailure = 400;
  const bool is_of_document = ended.request.target.starts_with("/document/v1/");
  const bool is_usual = is_of_document && (ended.status == kNotFound || ended.status == kConditionFalse);
  return ended.took >= kLong || (ended.status >= kFirstFailure && !is_usual);
}

/// Appends the target as one word of printable ASCII, cut to a length for the log.
void append_target(fmt::memory_buffer& to, std::string_view target) {
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '\\'; };
  const std::string_view shown = target.substr(0, kTargetBytesMax);
  if (std::all_of(shown.begin(), shown.end(), is_plain)) {
    to.append(shown);
  } else {
    for (const char c : shown) {
      if (is_plain(c)) {
        to.push_back(c);
      } else {
        fmt::format_to(fmt::appender(to), "%{:02X}", static_cast<unsigned char>(c));
      }
    }
  }
  if (target.size() > kTargetBytesMax) to.append(std::string_view("..."));
}

}  // namespace

AccessLog::AccessLog(std::function<void(std::string_view)> write, std::size_t waiting_bytes_max, bool has_problems_only)
    : write_(std::move(write)), waiting_bytes_max_(waiting_bytes_max), has_problems_only_(has_problems_only) {
  thread_ = std::thread([this] {
    const SignalStack signal_stack;
    run();
  });
  ::pthread_setname_np(thread_.native_handle(), "access-log");
}

AccessLog::~AccessLog() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AccessLog::add(const EndedRequest& ended) {
  if (!log::enabled(log::Level::Info) || (has_problems_only_ && !is_problem(ended))) return;
  const HttpRequest& request = ended.request;
  fmt::memory_buffer line;
  const auto append = [&](std::string_view text) { line.append(text); };
  append(request.request_id);
  append(" ");
  append(request.method);
  append(" ");
  append_target(line, request.target);
  fmt::format_to(fmt::appender(line), " {} {} us {} bytes ", ended.status,
                 std::chrono::duration_cast<std::chrono::microseconds>(ended.took).count(), ended.bytes);
  append(ended.protocol);
  if (ended.is_away) append(" away");

  std::unique_lock lock(mutex_);
  has_room_.wait(lock, [this] { return lines_.size() < waiting_bytes_max_ || is_ending_; });
  const std::size_t before = lines_.size();
  formatter_.append(log::Level::Info, "access", {line.data(), line.size()}, lines_);
  const bool is_due = before == 0 || (before < kBytesAtOnce && lines_.size() >= kBytesAtOnce);
  lock.unlock();
  if (is_due) changed_.notify_one();
}

void AccessLog::run() {
  std::string writing;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !lines_.empty() || is_ending_; });
    if (lines_.empty()) return;
    changed_.wait_for(lock, kPause, [this] { return lines_.size() >= kBytesAtOnce || is_ending_; });
    writing.clear();
    std::swap(writing, lines_);
    lock.unlock();
    has_room_.notify_all();
    write_(writing);
    lock.lock();
  }
}

}  // namespace fjord::gateway
