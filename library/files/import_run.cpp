#include "import_run.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>

#include "feed_source.h"
#include "fjord/library/detail/file_format.h"
#include "fjord/library/detail/small_file.h"
#include "fjord/library/detail/transfers.h"
#include "import_progress.h"
#include "import_source.h"

namespace fjord {
namespace {

constexpr std::size_t kBatchRecords = 512;
constexpr std::size_t kBatchBytes = 1 << 20;
constexpr unsigned kLineBits = 40;

std::size_t parser_count() { return std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, 4); }

Feeder::Options feeder_options(const ImportOptions& options,
                               UniqueFunction<void(std::uint64_t, OperationOutcome)> on_result) {
  Feeder::Options out;
  out.timeout = options.timeout;
  out.priority = static_cast<rpc::Priority>(options.priority);
  if (options.in_flight != 0) out.window_operations = options.in_flight;
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
struct ImportRun::Batch {
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

struct ImportRun::Pipeline {
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

ImportRun::ImportRun(AsyncClient& client, const ImportOptions& options)
    : options_(options),
      start_(client.clock().now()),
      clock_(client.clock()),
      feeder_(client, feeder_options(options, [this](std::uint64_t tag, const OperationOutcome& outcome) {
                on_result(tag, outcome);
              })) {}

ImportRun::~ImportRun() = default;

Status ImportRun::load_progress(const std::string& input) {
  input_ = input;
  const auto text = read_small_file(options_.progress_file);
  if (!text) return text.error().code() == StatusCode::NotFound ? Status::ok() : text.error();
  const auto done = parse_import_progress(*text, input_);
  if (!done) {
    return done.error().with_context(options_.progress_file + " (restore this file, or remove it to begin again)");
  }
  skipped_through_ = *done;
  return Status::ok();
}

/// Marks a line as done, unless its write is in doubt, and saves the progress every second. A refused line is done,
/// too: it was reported.
void ImportRun::note_done(std::uint64_t line, bool in_doubt) {
  {
    const std::lock_guard lock(mutex_);
    if (!in_doubt) open_lines_.erase(line);
    if (clock_.now() < next_save_) return;
    next_save_ = clock_.now() + seconds(1);
  }
  save_progress();
}

void ImportRun::save_progress() {
  std::uint64_t done = 0;
  {
    const std::lock_guard lock(mutex_);
    done = open_lines_.empty() ? last_line_ : *open_lines_.begin() - 1;
    done = std::max(done, skipped_through_);
  }
  const Status saved = replace_file(options_.progress_file, import_progress_text(input_, done));
  if (!saved) report({.file = {}, .line = 0, .status = saved, .in_doubt = false});
}

void ImportRun::feed(RecordSource& source) {
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

void ImportRun::read(RecordSource& source, Pipeline& pipeline) {
  auto batch = std::make_shared<Batch>();
  while (true) {
    if (options_.stop.stop_requested()) {
      is_complete_ = false;
      break;
    }
    const auto record = source.next();
    if (!record) {
      Status status = record.error();
      const std::uint64_t line = take_line(status);
      count_failure({.file = source.name(), .line = line, .status = status, .in_doubt = false});
      if (!source.failed()) continue;
      is_complete_ = false;
      break;
    }
    if (!record->has_value()) break;
    if ((*record)->line <= skipped_through_) continue;
    batch->items.push_back({batch->text.size(), (*record)->text.size(), (*record)->line});
    batch->text += (*record)->text;
    if (batch->items.size() < kBatchRecords && batch->text.size() < kBatchBytes) continue;
    pipeline.push(std::exchange(batch, std::make_shared<Batch>()));
    if (options_.on_progress) options_.on_progress({source.part_read(), feeder_.stats().ok, failed_total()});
  }
  if (!batch->items.empty()) pipeline.push(std::move(batch));
}

void ImportRun::parse_batches(const RecordSource& source, Pipeline& pipeline) {
  while (const auto batch = pipeline.next_to_parse()) {
    batch->operations.resize(batch->items.size());
    for (std::size_t i = 0; i < batch->items.size(); ++i) {
      const Batch::Item& item = batch->items[i];
      auto operation = source.parse({std::string_view(batch->text).substr(item.offset, item.size), item.line});
      if (operation && options_.create_only) {
        if (Status status = make_create_only(*operation); !status) operation = std::move(status);
      }
      if (operation) {
        batch->operations[i] = std::move(*operation);
      } else {
        count_failure({.file = source.name(), .line = item.line, .status = operation.error(), .in_doubt = false});
      }
    }
    pipeline.set_parsed(*batch);
  }
}

void ImportRun::submit_batches(Pipeline& pipeline) {
  while (const auto batch = pipeline.next_to_submit()) {
    for (std::size_t i = 0; i < batch->items.size(); ++i) {
      if (!batch->operations[i]) continue;
      if (!options_.progress_file.empty()) {
        const std::lock_guard lock(mutex_);
        last_line_ = batch->items[i].line;
        open_lines_.insert(last_line_);
      }
      feeder_.submit(std::move(*batch->operations[i]), pipeline.file << kLineBits | batch->items[i].line);
    }
  }
}

Status ImportRun::make_create_only(rpc::Operation& operation) {
  if (operation.kind != rpc::OperationKind::Put || !operation.condition.empty()) {
    return {StatusCode::InvalidArgument, "create_only takes puts without a condition, and nothing else"};
  }
  operation.required_version = 0;
  return Status::ok();
}

bool ImportRun::is_existing(const OperationOutcome& outcome) const {
  return options_.create_only && outcome.status.code() == StatusCode::TestAndSetFailed;
}

void ImportRun::on_result(std::uint64_t tag, const OperationOutcome& outcome) {
  const std::uint64_t line = tag & ((std::uint64_t{1} << kLineBits) - 1);
  const bool in_doubt = outcome.outcome == Outcome::InDoubt;
  if (!options_.progress_file.empty()) note_done(line, in_doubt);
  if (outcome.is_ok()) {
    if (outcome.existed) ++replaced_;
    return;
  }
  if (is_existing(outcome)) {
    ++existing_;
    return;
  }
  ImportFailure failure{.file = {}, .line = line, .status = outcome.status, .in_doubt = in_doubt};
  {
    const std::lock_guard lock(mutex_);
    failure.file = files_[tag >> kLineBits];
  }
  report(failure);
}

void ImportRun::count_failure(ImportFailure failure) {
  {
    const std::lock_guard lock(mutex_);
    ++unread_[failure.status.code()];
  }
  report(failure);
}

void ImportRun::fail(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    unreadable_.push_back(status);
  }
  count_failure({.file = {}, .line = 0, .status = status, .in_doubt = false});
}

void ImportRun::report(const ImportFailure& failure) {
  const std::lock_guard lock(report_mutex_);
  if (options_.on_failure) options_.on_failure(failure);
}

std::uint64_t ImportRun::failed_total() const {
  const std::uint64_t existing = existing_;  // Read first: what is counted here, the feeder has counted before.
  std::uint64_t total = feeder_.stats().failed_total();
  const std::lock_guard lock(mutex_);
  for (const auto& [code, count] : unread_) total += count;
  return total - existing;
}

ImportSummary ImportRun::finish() {
  feeder_.flush();
  const FeedStats stats = feeder_.stats();
  if (!options_.progress_file.empty()) {
    if (is_complete_ && stats.in_doubt == 0) {
      std::remove(options_.progress_file.c_str());
    } else {
      save_progress();
    }
  }
  ImportSummary summary;
  summary.stored = stats.ok;
  summary.failed = stats.failed;
  summary.in_doubt = stats.in_doubt;
  summary.retried = stats.retried;
  summary.bytes = stats.bytes;
  summary.latency_p50_seconds = stats.latency_p50_seconds;
  summary.latency_p99_seconds = stats.latency_p99_seconds;
  summary.latency_max_seconds = stats.latency_max_seconds;
  summary.seconds = std::chrono::duration<double>(clock_.now() - start_).count();
  const std::lock_guard lock(mutex_);
  for (const auto& [code, count] : unread_) summary.failed[code] += count;
  summary.replaced = replaced_;
  summary.existing = existing_;
  if (existing_ > 0) summary.failed.erase(StatusCode::TestAndSetFailed);  // Nothing else fails so.
  summary.unreadable_files = unreadable_;
  if (options_.stop.stop_requested() && !is_complete_) {
    summary.status = Status(StatusCode::Cancelled, "the import was stopped");
  }
  return summary;
}

// --- the import as a whole -------------------------------------------------------------------------------------------

namespace {

/// Opens one file as the options say. Errors: those of the sources; InvalidArgument for a format that is not read.
Result<std::unique_ptr<RecordSource>> open_source(const std::string& path, const ImportOptions& options,
                                                  const std::shared_ptr<const DocumentTypeRepo>& types) {
  const FileFormat format = file_format(path);
  if (format == FileFormat::Parquet) {
    return Status(StatusCode::InvalidArgument, path + ": Parquet is not read here; `fjord import` converts it");
  }
  const bool is_feed = options.format == ImportFormat::Feed || (options.type.empty() && format == FileFormat::Lines);
  if (!is_feed && options.type.empty()) {
    return Status(StatusCode::InvalidArgument, path + ": the rows of a table need the type of the documents");
  }
  FJORD_TRY_ASSIGN(std::unique_ptr<InputFile> file, InputFile::open(path));
  const JsonValues values = options.convert_values ? JsonValues::Converted : JsonValues::Exact;
  if (is_feed) return std::unique_ptr<RecordSource>(std::make_unique<FeedSource>(std::move(file), types, values));
  const RowOptions rows{options.type, options.id_field, options.id_namespace, options.ignore_unknown, values};
  if (format == FileFormat::Lines) {
    FJORD_TRY_ASSIGN(auto source, JsonImport::open(std::move(file), types, rows));
    return std::unique_ptr<RecordSource>(std::move(source));
  }
  std::vector<std::string> warnings;
  auto source = CsvImport::open(std::move(file), types, rows, warnings);
  for (const std::string& warning : warnings) {
    if (options.on_warning) options.on_warning(warning);
  }
  if (!source) return source.error();
  return std::unique_ptr<RecordSource>(std::move(*source));
}

/// Checks that the options suit the number of files. Errors: InvalidArgument.
Status check(const std::vector<std::string>& paths, const ImportOptions& options) {
  if (paths.size() < 2) return Status::ok();
  if (!options.progress_file.empty()) {
    return {StatusCode::InvalidArgument, "progress_file keeps the position in one file, not in several"};
  }
  if (options.format == ImportFormat::ByName && !options.type.empty() && options.id_field.empty()) {
    return {StatusCode::InvalidArgument,
            "without id_field the ids are the numbers of the rows, which are the same in each of several files"};
  }
  return Status::ok();
}

Result<ImportSummary> import_all(ClientCore& core, const std::vector<std::string>& paths,
                                 const ImportOptions& options) {
  FJORD_TRY(check(paths, options));
  FJORD_TRY(core.refresh());
  const auto types = core.types();
  ImportRun run(core.client(), options);
  if (!options.progress_file.empty() && !paths.empty()) FJORD_TRY(run.load_progress(paths.front()));
  for (const std::string& path : paths) {
    auto source = open_source(path, options, types);
    if (source) {
      run.feed(**source);
    } else {
      run.fail(source.error());
    }
  }
  return run.finish();
}

}  // namespace

std::uint64_t ImportSummary::failed_total() const {
  std::uint64_t total = 0;
  for (const auto& [code, count] : failed) total += count;
  return total;
}

std::string ImportFailure::to_string() const {
  const std::string_view doubt = in_doubt ? " (in doubt: it may have been applied)" : "";
  if (file.empty()) return fmt::format("{}{}", status.to_string(), doubt);
  if (line == 0) return fmt::format("{}: {}{}", file, status.to_string(), doubt);
  return fmt::format("{}:{}: {}{}", file, line, status.to_string(), doubt);
}

ImportSummary import_documents(ClientCore& core, const std::vector<std::string>& paths, const ImportOptions& options) {
  Result<ImportSummary> summary = import_all(core, paths, options);
  if (summary) return std::move(*summary);
  ImportSummary failed;
  failed.status = summary.error();
  return failed;
}

}  // namespace fjord
