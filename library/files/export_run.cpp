#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "csv_lines.h"
#include "export_file.h"
#include "fjord/library/detail/document_lines.h"
#include "fjord/library/detail/document_query.h"
#include "fjord/library/detail/file_format.h"
#include "fjord/library/detail/transfers.h"
#include "visit_stream.h"

namespace fjord {

namespace {

constexpr Duration kSaveInterval = seconds(1);
constexpr std::size_t kBufferBytes = std::size_t{16} << 20;

/// Appends a converted docblock to the text. Returns the number of documents.
using Converter = std::function<Result<std::uint64_t>(const std::string& docblock, std::string& text)>;

/// Returns the options of the visit. Errors: InvalidArgument.
Result<visitors::VisitorSessionOptions> session_of(const ExportOptions& options, const DocumentQuery& query) {
  visitors::VisitorSessionOptions session;
  session.selection = query.selection;
  session.field_set = query.field_set;
  session.no_progress_limit = options.no_progress_limit;
  session.follow_bits = true;
  session.snapshot = options.snapshot;
  session.from = options.from;
  session.to = options.to;
  session.visitors_per_node = options.visitors_per_node;
  session.buckets_per_visitor = options.buckets_per_visitor;
  session.buckets_at_once = options.buckets_at_once;
  session.priority = options.priority == ClientPriority::Default ? rpc::Priority::Background
                                                                 : static_cast<rpc::Priority>(options.priority);
  if (!options.slice) return session;
  if (options.slice->index >= options.slice->count) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("there is no slice {} of {}", options.slice->index, options.slice->count));
  }
  session.slice = visitors::PositionRange::slice(options.slice->index, options.slice->count);
  return session;
}

ExportFile::Mode file_mode(ExportMode mode) {
  switch (mode) {
    case ExportMode::New:
      break;
    case ExportMode::Replace:
      return ExportFile::Mode::Overwrite;
    case ExportMode::Resume:
      return ExportFile::Mode::Resume;
  }
  return ExportFile::Mode::New;
}

/// One run of an export: a visit whose complete buckets are appended to a file.
class Export {
 public:
  Export(ClientCore& core, const ExportOptions& options) : core_(core), options_(options) {}

  Status run(const std::string& path) {
    FJORD_TRY(open(path));
    FJORD_TRY(stream_->start());
    Status status;
    {
      const std::stop_callback on_stop(
          options_.stop, [this] { stream_->stop(Status(StatusCode::Cancelled, "the export was stopped")); });
      status = write_all();
    }
    if (status) return file_->finish();
    FJORD_TRY(file_->save(cursors_));
    return status.with_context("the export can be resumed");
  }

  /// Returns the numbers of the summary.
  ExportSummary summary() const {
    ExportSummary summary;
    if (file_ == nullptr) return summary;
    summary.documents = file_->documents();
    summary.bytes = file_->bytes();
    if (stream_ == nullptr) return summary;
    const visitors::VisitProgress progress = stream_->progress();
    summary.buckets_done = progress.buckets_done;
    summary.buckets_done_before = progress.skipped_as_done;
    summary.buckets_repeated = progress.buckets_repeated;
    return summary;
  }

 private:
  Status open(const std::string& path) {
    const FileFormat format = file_format(path);
    if (format != FileFormat::Lines && format != FileFormat::Csv) {
      return {StatusCode::InvalidArgument,
              path + ": the ending says the format; expected .jsonl or .csv, both also with .gz"};
    }
    FJORD_TRY(core_.refresh());
    const auto types = core_.types();
    FJORD_TRY_ASSIGN(const DocumentQuery query,
                     DocumentQuery::make(options_.type, options_.selection, options_.fields, *types));
    FJORD_TRY_ASSIGN(visitors::VisitorSessionOptions session, session_of(options_, query));
    std::string header;
    if (format == FileFormat::Csv) {
      FJORD_TRY_ASSIGN(const CsvLines lines, CsvLines::make(types, options_.type, options_.fields));
      header = lines.header();
      convert_ = [lines](const std::string& block, std::string& text) { return lines.append(block, text); };
    } else {
      convert_ = [lines = DocumentLines(types, query.names)](const std::string& block, std::string& text) mutable {
        return lines.append(block, text);
      };
    }
    FJORD_TRY_ASSIGN(file_, ExportFile::open(path, file_mode(options_.mode)));
    FJORD_TRY(file_->begin(header));
    cursors_ = file_->resumed();
    if (cursors_.empty()) cursors_ = {{.question = session.fingerprint(), .done = {}}};
    FJORD_TRY(file_->save(cursors_));
    session.resume = cursors_.front();
    stream_ =
        std::make_unique<VisitStream>(core_, std::vector{std::move(session)}, kBufferBytes, VisitStream::Drops::Tell);
    return Status::ok();
  }

  Status write_all() {
    const Clock& clock = core_.connection().runtime().clock;
    MonotonicTime next_save = clock.now() + kSaveInterval;
    std::uint64_t read = file_->documents();
    std::string text;
    VisitItem item;
    while (stream_->pop(item)) {
      switch (item.kind) {
        case VisitItem::Kind::Documents: {
          text.clear();
          FJORD_TRY_ASSIGN(const std::uint64_t count, convert_(item.docblock, text));
          read += count;
          FJORD_TRY(file_->add(item.from, text, count));
          break;
        }
        case VisitItem::Kind::BucketDropped:
          file_->drop(item.from);
          break;
        case VisitItem::Kind::BucketEnd:
          FJORD_TRY(file_->commit(item.from));
          cursors_.front().done.add(visitors::PositionRange::of(item.from.bucket));
          if (clock.now() < next_save) break;
          next_save = clock.now() + kSaveInterval;
          FJORD_TRY(file_->save(cursors_));
          break;
      }
      if (options_.on_progress) options_.on_progress({fraction_done(), read});
    }
    return stream_->result();
  }

  double fraction_done() const {
    const visitors::VisitProgress progress = stream_->progress();
    if (progress.buckets_total == 0) return -1;
    return static_cast<double>(progress.buckets_done) / static_cast<double>(progress.buckets_total);
  }

  ClientCore& core_;
  const ExportOptions& options_;
  Converter convert_;
  std::unique_ptr<ExportFile> file_;
  std::vector<visitors::SessionCursor> cursors_;  ///< One cursor: the buckets that the file holds.
  std::unique_ptr<VisitStream> stream_;
};

}  // namespace

ExportSummary export_documents(ClientCore& core, const std::string& path, const ExportOptions& options) {
  ExportSummary summary;
  summary.status = core.wait_ready();
  if (!summary.status) return summary;
  const Clock& clock = core.connection().runtime().clock;
  const MonotonicTime begun = clock.now();
  Export run(core, options);
  const Status status = run.run(path);
  summary = run.summary();
  summary.status = status;
  summary.seconds = std::chrono::duration<double>(clock.now() - begun).count();
  return summary;
}

}  // namespace fjord
