#include "feed_run.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>

#include "cli.h"
#include "json_text.h"
#include "visit_run.h"

namespace fjord::cli {
namespace {

constexpr std::size_t kBatchRecords = 512;
constexpr std::size_t kBatchBytes = 1 << 20;
constexpr unsigned kLineBits = 40;
constexpr const char* kProgressPrefix = "fjord-import-1 ";

std::size_t parser_count() { return std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, 4); }

Feeder::Options feeder_options(const FeedRunOptions& options,
                               UniqueFunction<void(std::uint64_t, OperationOutcome)> on_result) {
  Feeder::Options out;
  out.timeout = options.timeout;
  out.priority = options.priority;
  if (options.window_operations != 0) out.window_operations = options.window_operations;
  out.on_result = std::move(on_result);
  return out;
}

/// Removes the line from the front of a message, "feed, line 7, byte 90: ..." or "line 7: ...", and returns it; 0
/// without a line.
std::uint64_t take_line(Status& status) {
  std::string_view message = status.message();
  for (const std::string_view prefix : {"feed, line ", "line "}) {
    if (!message.starts_with(prefix)) continue;
    message.remove_prefix(prefix.size());
    std::uint64_t line = 0;
    const auto [end, error] = std::from_chars(message.data(), message.data() + message.size(), line);
    if (error != std::errc()) return 0;
    message.remove_prefix(static_cast<std::size_t>(end - message.data()));
    const std::size_t rest = message.find_first_not_of(",: ");
    status = Status(status.code(), std::string(message.substr(std::min(rest, message.size()))));
    return line;
  }
  return 0;
}

}  // namespace

/// Records that pass through the pipeline together.
struct FeedRun::Batch {
  struct Item {
    std::size_t offset = 0;
    std::size_t size = 0;
    std::uint64_t line = 0;
  };
  std::string text;
  std::vector<Item> items;
  std::vector<std::optional<rpc::Operation>> operations;
  bool parsed = false;
};

struct FeedRun::Pipeline {
  std::uint64_t file = 0;
  std::size_t batches_max = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Batch>> to_parse FJORD_GUARDED_BY(mutex);
  std::deque<std::shared_ptr<Batch>> to_submit FJORD_GUARDED_BY(mutex);  // in the order of the file
  bool read_all FJORD_GUARDED_BY(mutex) = false;

  void push(std::shared_ptr<Batch> batch) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return to_submit.size() < batches_max; });
    to_parse.push_back(batch);
    to_submit.push_back(std::move(batch));
    changed.notify_all();
  }
  void close() {
    const std::lock_guard lock(mutex);
    read_all = true;
    changed.notify_all();
  }
  std::shared_ptr<Batch> next_to_parse() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !to_parse.empty() || read_all; });
    if (to_parse.empty()) return nullptr;
    auto batch = std::move(to_parse.front());
    to_parse.pop_front();
    return batch;
  }
  void set_parsed(Batch& batch) {
    const std::lock_guard lock(mutex);
    batch.parsed = true;
    changed.notify_all();
  }
  std::shared_ptr<Batch> next_to_submit() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return to_submit.empty() ? read_all : to_submit.front()->parsed; });
    if (to_submit.empty()) return nullptr;
    auto batch = std::move(to_submit.front());
    to_submit.pop_front();
    changed.notify_all();
    return batch;
  }
};

FeedRun::FeedRun(AsyncClient& client, const FeedRunOptions& options)
    : options_(options),
      start_(client.clock().now()),
      clock_(client.clock()),
      progress_("feed", "docs", options.progress),
      feeder_(client, feeder_options(
                          options, [this](std::uint64_t tag, OperationOutcome outcome) { on_result(tag, outcome); })) {}

FeedRun::~FeedRun() = default;

Status FeedRun::load_progress(const std::string& input) {
  input_ = input;
  const auto text = read_small_file(options_.resume_file);
  if (!text) return text.error().code() == StatusCode::NotFound ? Status::ok() : text.error();
  const std::string prefix = std::string(kProgressPrefix) + input_ + ' ';
  const char* const begin = text->data() + std::min(prefix.size(), text->size());
  const char* const end = text->data() + text->size();
  const auto number = std::from_chars(begin, end, skipped_through_);
  if (!text->starts_with(prefix) || number.ec != std::errc() || number.ptr + 1 != end || *number.ptr != '\n') {
    return {StatusCode::InvalidArgument, fmt::format("{} does not say how far {} is", options_.resume_file, input_)};
  }
  return Status::ok();
}

/// Marks a line as done, unless its write is in doubt, and saves the progress every second. A refused line is done,
/// too: its message was printed.
void FeedRun::note_done(std::uint64_t line, bool in_doubt) {
  std::uint64_t done = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!in_doubt) open_lines_.erase(line);
    if (clock_.now() < next_save_) return;
    next_save_ = clock_.now() + seconds(1);
    done = open_lines_.empty() ? last_line_ : *open_lines_.begin() - 1;
  }
  const Status saved = replace_file(options_.resume_file, fmt::format("{}{} {}\n", kProgressPrefix, input_, done));
  if (!saved) show_error(saved.to_string());
}

void FeedRun::feed(RecordSource& source) {
  Pipeline pipeline;
  pipeline.batches_max = 2 * parser_count() + 2;
  {
    const std::lock_guard lock(mutex_);
    pipeline.file = files_.size();
    files_.push_back(source.name());
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < parser_count(); ++i) {
    threads.emplace_back([&] { parse_batches(source, pipeline); });
  }
  threads.emplace_back([&] { submit_batches(pipeline); });
  read(source, pipeline);
  pipeline.close();
  for (std::thread& thread : threads) thread.join();
}

void FeedRun::read(RecordSource& source, Pipeline& pipeline) {
  auto batch = std::make_shared<Batch>();
  while (true) {
    const auto record = source.next();
    if (!record) {
      Status status = record.error();
      const std::uint64_t line = take_line(status);
      record_error(source.name(), line, status);
      if (source.failed()) break;
      continue;
    }
    if (!record->has_value()) break;
    if ((*record)->line <= skipped_through_) continue;
    batch->items.push_back({batch->text.size(), (*record)->text.size(), (*record)->line});
    batch->text += (*record)->text;
    if (batch->items.size() < kBatchRecords && batch->text.size() < kBatchBytes) continue;
    pipeline.push(std::exchange(batch, std::make_shared<Batch>()));
    const FeedStats stats = feeder_.stats();
    progress_.update(source.part_read(), stats.ok,
                     stats.failed_total() == 0 ? "" : fmt::format("{} failed", failed_total()));
  }
  if (!batch->items.empty()) pipeline.push(std::move(batch));
}

void FeedRun::parse_batches(const RecordSource& source, Pipeline& pipeline) {
  while (const auto batch = pipeline.next_to_parse()) {
    batch->operations.resize(batch->items.size());
    for (std::size_t i = 0; i < batch->items.size(); ++i) {
      const Batch::Item& item = batch->items[i];
      auto operation = source.parse({std::string_view(batch->text).substr(item.offset, item.size), item.line});
      if (operation) {
        batch->operations[i] = std::move(*operation);
      } else {
        record_error(source.name(), item.line, operation.error());
      }
    }
    pipeline.set_parsed(*batch);
  }
}

void FeedRun::submit_batches(Pipeline& pipeline) {
  while (const auto batch = pipeline.next_to_submit()) {
    for (std::size_t i = 0; i < batch->items.size(); ++i) {
      if (!batch->operations[i]) continue;
      if (!options_.resume_file.empty()) {
        const std::lock_guard lock(mutex_);
        last_line_ = batch->items[i].line;
        open_lines_.insert(last_line_);
      }
      feeder_.submit(std::move(*batch->operations[i]), pipeline.file << kLineBits | batch->items[i].line);
    }
  }
}

void FeedRun::on_result(std::uint64_t tag, const OperationOutcome& outcome) {
  if (!options_.resume_file.empty()) {
    note_done(tag & ((std::uint64_t{1} << kLineBits) - 1), outcome.outcome == Outcome::InDoubt);
  }
  if (outcome.is_ok()) return;
  std::string where;
  {
    const std::lock_guard lock(mutex_);
    where = fmt::format("{}:{}", files_[tag >> kLineBits], tag & ((std::uint64_t{1} << kLineBits) - 1));
  }
  show_error(fmt::format("{}: {}{}", where, outcome.status.to_string(),
                         outcome.outcome == Outcome::InDoubt ? " (in doubt: it may have been applied)" : ""));
}

void FeedRun::record_error(const std::string& file, std::uint64_t line, const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    ++unread_[status.code()];
  }
  show_error(line == 0 ? fmt::format("{}: {}", file, status.to_string())
                       : fmt::format("{}:{}: {}", file, line, status.to_string()));
}

void FeedRun::fail(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    ++unread_[status.code()];
    whole_failures_.push_back(status);
  }
  show_error(status.to_string());
}

void FeedRun::show_error(const std::string& text) {
  const std::lock_guard lock(mutex_);
  ++errors_;
  if (errors_ <= options_.errors_shown) complain(text);
  if (errors_ == options_.errors_shown + 1) complain("further errors are only counted, see --errors-shown");
}

std::uint64_t FeedRun::failed_total() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = stats_.failed_total();
  for (const auto& [code, count] : unread_) total += count;
  return total;
}

std::string FeedRun::finish() {
  feeder_.flush();
  stats_ = feeder_.stats();
  if (!options_.resume_file.empty() && stats_.in_doubt == 0) std::remove(options_.resume_file.c_str());
  const double seconds = std::chrono::duration<double>(clock_.now() - start_).count();
  std::map<StatusCode, std::uint64_t> failed = stats_.failed;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [code, count] : unread_) failed[code] += count;
  }
  JsonText json;
  json.begin_object()
      .key("ok")
      .number(stats_.ok)
      .key("failed")
      .number(failed_total())
      .key("failed_by_code")
      .begin_object();
  for (const auto& [code, count] : failed) json.key(to_string(code)).number(count);
  json.end_object().key("in_doubt").number(stats_.in_doubt).key("retried").number(stats_.retried);
  json.key("bytes").number(stats_.bytes).key("seconds").real(seconds, 3);
  json.key("docs_per_s").real(static_cast<double>(stats_.ok) / std::max(seconds, 1e-6), 1);
  json.key("latency_ms").begin_object().key("p50").real(stats_.latency_p50_seconds * 1e3, 2);
  json.key("p99").real(stats_.latency_p99_seconds * 1e3, 2);
  json.key("max").real(stats_.latency_max_seconds * 1e3, 2).end_object().end_object();
  return json.str();
}

int FeedRun::exit_code() const {
  const std::uint64_t bad = failed_total() + stats_.in_doubt;
  if (bad == 0) return kOk;
  if (stats_.ok > 0) return kPartial;
  const std::lock_guard lock(mutex_);
  if (bad != whole_failures_.size()) return kFailed;
  const int code = failure_code(whole_failures_.front());
  const bool is_same = std::all_of(whole_failures_.begin(), whole_failures_.end(),
                                   [&](const Status& status) { return failure_code(status) == code; });
  return is_same ? code : static_cast<int>(kFailed);
}

}  // namespace fjord::cli
