#include "visit_run.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "cli.h"
#include "json_text.h"

namespace fjord::cli {

VisitRun::VisitRun(Connection& connection, VisitRunOptions options, VisitRunCallbacks callbacks)
    : connection_(connection), options_(std::move(options)), callbacks_(std::move(callbacks)) {}

VisitRun::~VisitRun() = default;

Status VisitRun::run() {
  const auto updated = snapshots_.update(connection_.client().snapshot()->info());
  if (!updated) return updated.error();
  connection_.executor().post([this] { start(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return result_.has_value(); });
  is_over_ = true;  // No interrupt() posts after this; tasks posted earlier run before the next one.
  connection_.executor().post([this] {
    final_progress_ = progress();
    sessions_.clear();
    const std::lock_guard settled(mutex_);
    settled_ = true;
    changed_.notify_one();
  });
  changed_.wait(lock, [&] { return settled_; });
  return *result_;
}

void VisitRun::start() {
  left_ = options_.slices;
  for (std::size_t slice = 0; slice < options_.slices; ++slice) start_slice(slice);
  for (auto& session : sessions_) session->start();
}

void VisitRun::start_slice(std::size_t slice) {
  visitors::VisitorSessionOptions options = options_.session;
  if (options_.slices > 1) options.slice = visitors::PositionRange::slice(slice, options_.slices);
  if (!options_.resume.empty()) options.resume = options_.resume[slice];
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_docblock = [this, slice](BucketId bucket, const std::string& block) {
    if (ended_) return;
    const VisitedBucket visited{slice, bucket};
    if (Status status = callbacks_.on_docblock(visited, block); !status) end(status, &visited);
  };
  callbacks.on_bucket_done = [this, slice](BucketId bucket, const std::string&) {
    if (ended_ || !callbacks_.on_bucket_done) return;
    const VisitedBucket visited{slice, bucket};
    if (Status status = callbacks_.on_bucket_done(visited); !status) end(status, &visited);
  };
  if (callbacks_.on_bucket_dropped) {
    callbacks.on_bucket_dropped = [this, slice](BucketId bucket) { callbacks_.on_bucket_dropped({slice, bucket}); };
  }
  callbacks.on_finished = [this](const Status& status) {
    if (!status || --left_ == 0) end(status);
  };
  sessions_.push_back(std::make_unique<visitors::VisitorSession>(
      std::move(options), std::move(callbacks), connection_.transport(), snapshots_, connection_.runtime().clock,
      Random::from_system(), connection_.executor()));
}

void VisitRun::end(const Status& status, const VisitedBucket* unfinished) {
  if (ended_) return;
  // Taken now, because the sessions still handle received events, for which no callback is called any more.
  final_tokens_ = tokens();
  if (unfinished != nullptr) {
    final_tokens_[unfinished->slice].done.remove(visitors::PositionRange::of(unfinished->bucket));
  }
  ended_ = true;
  for (auto& session : sessions_) session->pause();
  const std::lock_guard lock(mutex_);
  result_ = status;
  changed_.notify_one();
}

void VisitRun::stop(const VisitedBucket& bucket) { end(Status::ok(), &bucket); }

void VisitRun::interrupt(Status why) {
  const std::lock_guard lock(mutex_);
  if (is_over_) return;
  connection_.executor().post([this, why = std::move(why)] { end(why); });
}

void VisitRun::pause() {
  for (auto& session : sessions_) session->pause();
}

void VisitRun::resume() {
  if (ended_) return;
  for (auto& session : sessions_) session->resume();
}

visitors::VisitProgress VisitRun::progress() const {
  if (final_progress_) return *final_progress_;
  visitors::VisitProgress sum;
  for (const auto& session : sessions_) {
    const visitors::VisitProgress one = session->progress();
    sum.buckets_total += one.buckets_total;
    sum.buckets_done += one.buckets_done;
    sum.buckets_repeated += one.buckets_repeated;
    sum.docblock_bytes += one.docblock_bytes;
    sum.documents_read += one.documents_read;
    sum.documents_matched += one.documents_matched;
    sum.skipped_by_selection += one.skipped_by_selection;
    sum.skipped_by_slice += one.skipped_by_slice;
    sum.skipped_as_done += one.skipped_as_done;
    sum.located = sum.located || one.located;
    for (const auto& [node, buckets] : one.buckets_by_node) sum.buckets_by_node[node] += buckets;
  }
  return sum;
}

double VisitRun::part_done() const {
  const visitors::VisitProgress now = progress();
  if (now.buckets_total == 0) return -1;
  return static_cast<double>(now.buckets_done) / static_cast<double>(now.buckets_total);
}

std::vector<visitors::VisitToken> VisitRun::tokens() const {
  if (ended_) return final_tokens_;
  std::vector<visitors::VisitToken> tokens;
  for (const auto& session : sessions_) tokens.push_back(session->token());
  return tokens;
}

// --- files -----------------------------------------------------------------------------------------------------------

Status replace_file(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".new";
  const auto failed = [&](const char* what) {
    return Status(StatusCode::IoError, fmt::format("{} cannot be {}", path, what));
  };
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) return failed("written");
  bool ok = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  ok = std::fflush(file) == 0 && ::fdatasync(::fileno(file)) == 0 && ok;
  ok = std::fclose(file) == 0 && ok;
  if (!ok) return failed("written");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return failed("replaced");
  return Status::ok();
}

Result<std::string> read_small_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return Status(StatusCode::NotFound, path + " cannot be opened");
  std::string content;
  char buffer[65536];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) content.append(buffer, got);
  const bool ok = std::ferror(file) == 0;
  std::fclose(file);
  if (!ok) return Status(StatusCode::IoError, path + " cannot be read");
  return content;
}

// --- options and reports ---------------------------------------------------------------------------------------------

Result<Timestamp> parse_time(const std::string& text, std::int64_t now_us) {
  const Status wrong(StatusCode::InvalidArgument,
                     fmt::format("\"{}\" is no time: 2026-11-21T19:00:00Z, 15m, 2h, 3d, or seconds since 1970", text));
  std::tm parts{};
  if (const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts); end != nullptr && *end == 0) {
    const std::int64_t seconds_since = ::timegm(&parts);
    if (seconds_since < 0) return wrong;
    return Timestamp{static_cast<std::uint64_t>(seconds_since) * 1'000'000};
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > std::uint64_t{1} << 62) return wrong;
  const std::string unit(end, text.data() + text.size());
  if (unit == "us") return Timestamp{number};
  if (number > 100'000'000'000) return wrong;
  if (unit.empty()) return Timestamp{number * 1'000'000};
  const std::uint64_t each = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86'400 : 0;
  const auto now = static_cast<std::uint64_t>(now_us);
  if (each == 0 || number * each > now / 1'000'000) return wrong;
  return Timestamp{now - number * each * 1'000'000};
}

std::string explain_text(const visitors::VisitProgress& p, double seconds) {
  std::string nodes;
  for (const auto& [node, buckets] : p.buckets_by_node) {
    nodes += fmt::format("{}storage.{} {}", nodes.empty() ? "" : ", ", node, buckets);
  }
  const double megabytes = static_cast<double>(p.docblock_bytes) / 1e6;
  return fmt::format(
      "buckets:   {} read{}, {} begun again\n"
      "skipped:   {} in which the selection cannot hold, {} of other slices, {} done before\n"
      "nodes:     {}\n"
      "documents: {} read, {} matched\n"
      "bytes:     {:.1f} MB in {:.2f} s, {:.0f} MB/s\n",
      p.buckets_done, p.located ? " (named by the selection, not listed)" : "", p.buckets_repeated,
      p.skipped_by_selection, p.skipped_by_slice, p.skipped_as_done, nodes.empty() ? "none" : nodes, p.documents_read,
      p.documents_matched, megabytes, seconds, megabytes / std::max(seconds, 1e-6));
}

std::string explain_json(const visitors::VisitProgress& p, double seconds) {
  JsonText json;
  json.begin_object().key("buckets_read").number(p.buckets_done);
  json.key("buckets_repeated").number(p.buckets_repeated).key("buckets_located").boolean(p.located);
  json.key("buckets_skipped").begin_object().key("selection").number(p.skipped_by_selection);
  json.key("slice").number(p.skipped_by_slice).key("done_before").number(p.skipped_as_done).end_object();
  json.key("buckets_by_node").begin_object();
  for (const auto& [node, buckets] : p.buckets_by_node) json.key(fmt::format("storage.{}", node)).number(buckets);
  json.end_object().key("documents_read").number(p.documents_read);
  json.key("documents_matched").number(p.documents_matched).key("bytes").number(p.docblock_bytes);
  return json.key("seconds").real(seconds, 3).end_object().str();
}

}  // namespace fjord::cli
