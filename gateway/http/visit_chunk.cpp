#include "http/visit_chunk.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

#include "entry_writer.h"
#include "fjord/library/visit.h"
#include "http/answers.h"
#include "http/json_body.h"
#include "http/unreadable_documents.h"
#include "http/visit_progress.h"

namespace fjord::gateway {
namespace {

using ChunkClock = std::chrono::steady_clock;
using visitors::PositionRange;

constexpr auto kStopCheck = std::chrono::milliseconds(100);
constexpr std::size_t kChunkBytesMax = std::size_t{16} << 20;

/// Waits until the visit may have more. Returns false at the deadline and after a stop request; the visit may only be
/// destroyed then.
bool wait_for_more(Visit& visit, const std::stop_token& stop, ChunkClock::time_point deadline) {
  struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_set = false;
  };
  const auto signal = std::make_shared<Signal>();
  visit.ready().then([signal](const Status&) {
    const std::lock_guard lock(signal->mutex);
    signal->is_set = true;
    signal->changed.notify_all();
  });
  std::unique_lock lock(signal->mutex);
  const auto is_over = [&] { return signal->is_set || stop.stop_requested(); };
  while (!is_over() && ChunkClock::now() < deadline) {
    signal->changed.wait_until(lock, std::min(deadline, ChunkClock::now() + kStopCheck));
  }
  return signal->is_set;
}

/// Reads one chunk: ranges of the bucket tree one after the other, each to its end, until there are about as many
/// documents as wanted. If a range has far more, it is given up and a smaller one is tried. Ranges keep the tokens
/// small: a token that named the documents of incomplete buckets would grow with each chunk.
class ChunkReader {
 public:
  ChunkReader(Client& client, const VisitWish& wish, std::stop_token stop)
      : client_(client),
        stop_(std::move(stop)),
        wish_(wish),
        progress_(wish.options.slice),
        limit_(wish.documents + wish.documents / 4 + 16),
        deadline_(ChunkClock::now() + std::chrono::milliseconds(*wish.timeout_ms)) {}

  /// Reads the chunk. Errors: those of the visit; Timeout or NotReady if nothing was read.
  Status read() {
    if (!wish_.continuation.empty()) FJORD_TRY(progress_.parse(wish_.continuation));
    while (const auto range = progress_.next_range()) {
      const RangeEnd end = read_range(*range);
      if (end == RangeEnd::Failed) return has_progress_ || count_ > 0 ? Status::ok() : status_;
      if (end == RangeEnd::TooMany && count_ > 0) break;
      if (end == RangeEnd::Complete && count_ * 2 >= wish_.documents) break;
    }
    return Status::ok();
  }

  std::string take_documents() { return documents_.take(); }
  std::int64_t count() const { return count_; }
  const UnreadableDocuments& unreadable() const { return unreadable_; }
  /// Returns the token of the next chunk; empty if the visit is over.
  std::string token() const { return progress_.is_over() ? std::string() : to_token(progress_.to_text()); }

 private:
  enum class RangeEnd { Complete, TooMany, Failed };

  RangeEnd read_range(const PositionRange& range) {
    VisitOptions options = wish_.options;
    options.resume = progress_.resume_text(range);
    Visit visit = client_.visit(std::move(options));
    if (!visit.status()) return fail(visit.status());
    if (const Status status = progress_.begin(visit.cursor()); !status) return fail(status);
    const std::size_t bytes_before = documents_.size();
    const std::int64_t count_before = count_;
    const std::size_t unreadable_before = unreadable_.count();
    EntryWriter writer(client_, visit.types(), wish_.options.fields);
    while (!visit.is_over()) {
      while (const auto entry = visit.try_next_entry()) {
        if (is_full(range)) {
          narrow(range, visit.statistics());
          documents_.cut_to(bytes_before);
          count_ = count_before;
          unreadable_.cut_to(unreadable_before);
          return RangeEnd::TooMany;
        }
        if (const Status status = append(*entry, writer); !status) return fail(status);
      }
      if (!visit.is_over() && !wait_for_more(visit, stop_, deadline_)) {
        has_progress_ = progress_.advance(range, visit.cursor()) || has_progress_;
        return fail(timeout());
      }
    }
    if (!visit.status()) {
      has_progress_ = progress_.advance(range, visit.cursor()) || has_progress_;
      return fail(visit.status());
    }
    progress_.complete(range);
    has_progress_ = true;
    widen(range, count_ - count_before);
    return RangeEnd::Complete;
  }

  /// Returns true if one more document would be too many. A range of one position is never full.
  bool is_full(const PositionRange& range) const {
    return (count_ >= limit_ || documents_.size() >= kChunkBytesMax) && range.first < range.last;
  }

  Status append(const EntryView& entry, EntryWriter& writer) {
    const std::size_t before = documents_.size();
    if (count_ > 0) documents_.append(",");
    const Status status = writer.append(entry, "id", documents_);
    if (status) {
      ++count_;
      return status;
    }
    documents_.cut_to(before);
    return unreadable_.take(entry, status);
  }

  /// Reduces the width of ranges after a range with too many documents. The number of buckets that the visit has read
  /// shows which part of the range has about as many documents as wanted.
  void narrow(const PositionRange& range, const VisitStatistics& statistics) {
    constexpr double kLeast = 1.0 / 1024;
    constexpr double kMost = 1.0 / 4;
    const double fraction = (static_cast<double>(statistics.buckets_done) + 1) /
                            static_cast<double>(std::max<std::uint64_t>(1, statistics.buckets_total));
    progress_.set_width(width_of(range) * std::clamp(fraction / 2, kLeast, kMost));
  }

  /// Sets the width after a range with `count` documents, so that the next has about as many as wanted.
  void widen(const PositionRange& range, std::int64_t count) {
    progress_.set_width(width_of(range) * widening(wish_.documents, count));
  }
  static double width_of(const PositionRange& range) { return static_cast<double>(range.last - range.first) + 1; }

  Status timeout() const {
    if (stop_.stop_requested()) return {StatusCode::NotReady, "the gateway ends"};
    return {StatusCode::Timeout, fmt::format("nothing was visited within {} ms", *wish_.timeout_ms)};
  }
  RangeEnd fail(const Status& status) {
    status_ = status;
    return RangeEnd::Failed;
  }

  Client& client_;
  const std::stop_token stop_;
  const VisitWish& wish_;
  VisitProgress progress_;
  const std::int64_t limit_;
  const ChunkClock::time_point deadline_;
  JsonLines documents_;
  std::int64_t count_ = 0;
  UnreadableDocuments unreadable_;
  bool has_progress_ = false;
  Status status_;
};

}  // namespace

HttpAnswer visit_chunk(Client& client, const HttpRequest& request, const VisitWish& wish, std::stop_token stop) {
  ChunkReader reader(client, wish, std::move(stop));
  std::string token;
  if (!wish.is_empty_space) {
    if (const Status status = check_selection(client, wish.selection, *wish.timeout_ms); !status) {
      return error_answer(request, status);
    }
    if (const Status status = reader.read(); !status) return error_answer(request, status);
    token = reader.token();
  }
  std::string body = "{\"pathId\":";
  append_json_string(body, request.raw_path());
  body += ",\"documents\":[" + reader.take_documents() + "],\"documentCount\":" + std::to_string(reader.count());
  body += reader.unreadable().member();
  if (!token.empty()) body += ",\"continuation\":\"" + token + "\"";
  body += '}';
  return {.status = 200, .body = std::move(body)};
}

}  // namespace fjord::gateway
