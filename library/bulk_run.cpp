#include "fjord/library/detail/bulk_run.h"

#include <condition_variable>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <utility>

#include "bulk_buckets.h"
#include "fjord/client/feeder.h"
#include "fjord/client/operations.h"
#include "fjord/client/own_types.h"
#include "fjord/common/hash.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_format.h"
#include "fjord/document/document_update.h"
#include "fjord/library/detail/document_query.h"
#include "visit_stream.h"

namespace fjord {

namespace {

constexpr std::string_view kPrefix = "fjord-bulk-1 ";
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

/// The writes of one run. They start on the caller's thread and end on the executor.
class BulkWriter {
 public:
  BulkWriter(ClientCore& core, const BulkChange& change, std::string selection, BulkOptions& options, std::string name,
             visitors::SessionCursor cursor)
      : core_(core),
        change_(change),
        selection_(std::move(selection)),
        options_(options),
        name_(std::move(name)),
        question_(cursor.question),
        feeder_(core.client(), feeder_options()) {
    const std::lock_guard lock(mutex_);
    buckets_.resume(std::move(cursor.done));
  }

  void write(BucketId bucket, std::string_view id) {
    rpc::Operation operation =
        change_.changes ? update_json_operation(std::string(id), *change_.changes) : remove_operation(std::string(id));
    operation.condition = selection_;
    operation.token = name_;
    std::uint64_t tag = 0;
    {
      const std::lock_guard lock(mutex_);
      tag = next_tag_++;
      under_way_.emplace(tag, Write{std::string(id), bucket});
      buckets_.begin_write(bucket);
      ++summary_.matched;
    }
    submit(std::move(operation), tag);
  }

  /// Called when the visit has given all documents of the bucket.
  void end_bucket(BucketId bucket) {
    const std::lock_guard lock(mutex_);
    buckets_.end_visit(bucket);
  }

  /// Waits until all writes have ended.
  void wait() {
    feeder_.when_idle([this] { note(&BulkWriter::is_idle_); });
    wait_for(&BulkWriter::is_idle_);
  }
  BulkSummary summary() const {
    const std::lock_guard lock(mutex_);
    return summary_;
  }
  std::string cursor() const {
    const std::lock_guard lock(mutex_);
    return cursor_text(name_, change_, {question_, buckets_.done()});
  }

  static std::string kind_of(const BulkChange& change) {
    return fmt::format("{:016x}", hash64(change.changes ? "update " + *change.changes : std::string("remove")));
  }
  static std::string cursor_text(const std::string& name, const BulkChange& change,
                                 const visitors::SessionCursor& cursor) {
    const std::string first = fmt::format("{}{} {}", kPrefix, name, kind_of(change));
    visitors::SessionCursor sealed = cursor;
    sealed.seal(first);
    return fmt::format("{}\n{}\n", first, sealed.to_text());
  }

 private:
  struct Write {
    std::string id;
    BucketId bucket;
  };

  Feeder::Options feeder_options() {
    Feeder::Options feed;
    feed.timeout = options_.timeout;
    feed.priority = rpc::Priority::Background;
    feed.writes_own_types = true;  // session_of() has decided which.
    if (options_.in_flight != 0) feed.window_operations = options_.in_flight;
    feed.on_result = [this](std::uint64_t tag, const OperationOutcome& outcome) { on_result(tag, outcome); };
    feed.on_room = [this] { note(&BulkWriter::has_room_); };
    return feed;
  }

  void submit(rpc::Operation operation, std::uint64_t tag) {
    while (!feeder_.try_submit(operation, tag)) wait_for(&BulkWriter::has_room_);
  }

  void note(bool BulkWriter::*event) {
    const std::lock_guard lock(mutex_);
    this->*event = true;
    changed_.notify_one();
  }
  void wait_for(bool BulkWriter::*event) {
    std::unique_lock lock(mutex_);
    core_.wait(lock, changed_, [&] { return this->*event; });
    this->*event = false;
  }

  void on_result(std::uint64_t tag, const OperationOutcome& outcome) {
    Write write;
    bool is_failed = false;
    {
      const std::lock_guard lock(mutex_);
      const auto at = under_way_.find(tag);
      write = std::move(at->second);
      under_way_.erase(at);
      const StatusCode code = outcome.status.code();
      const bool is_skipped = code == StatusCode::TestAndSetFailed || code == StatusCode::NotFound;
      if (outcome.outcome == Outcome::Applied) {
        ++summary_.applied;
      } else if (outcome.outcome == Outcome::NotApplied && is_skipped) {
        ++summary_.skipped;
      } else {
        is_failed = true;
        ++(outcome.outcome == Outcome::InDoubt ? summary_.in_doubt : summary_.failed[code]);
      }
      buckets_.end_write(write.bucket, !is_failed);
    }
    if (is_failed && options_.on_failure) options_.on_failure(write.id, outcome.status);
  }

  ClientCore& core_;
  const BulkChange& change_;
  const std::string selection_;
  BulkOptions& options_;
  const std::string name_;
  const std::uint64_t question_;  ///< Fingerprint of the visit, for the cursor.
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Write> under_way_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t next_tag_ FJORD_GUARDED_BY(mutex_) = 1;
  BulkBuckets buckets_ FJORD_GUARDED_BY(mutex_);
  BulkSummary summary_ FJORD_GUARDED_BY(mutex_);
  std::condition_variable changed_;
  bool has_room_ FJORD_GUARDED_BY(mutex_) = false;  ///< The feeder has had room since it refused an operation.
  bool is_idle_ FJORD_GUARDED_BY(mutex_) = false;   ///< All writes have ended.
  Feeder feeder_;                                   ///< Last member: its callbacks use the other members.
};

struct BulkStart {
  std::string name;
  visitors::SessionCursor cursor;
};

/// Returns the name and the position of a new run, or of the one to resume. Errors: InvalidArgument if `resume` is
/// not a cursor of this change.
Result<BulkStart> start_of(ClientCore& core, const BulkChange& change, const std::string& resume,
                           std::uint64_t question) {
  BulkStart start;
  start.cursor.question = question;
  if (resume.empty()) {
    start.name = fmt::format("bulk-{:016x}", core.new_random().next());
    return start;
  }
  const Status wrong(StatusCode::InvalidArgument, "resume: it is not the cursor of this change");
  const std::size_t line_end = resume.find('\n');
  const std::string expected_end = ' ' + BulkWriter::kind_of(change);
  const std::string first = resume.substr(0, line_end);
  if (line_end == std::string::npos || !first.starts_with(kPrefix) || !first.ends_with(expected_end)) return wrong;
  if (first.size() <= kPrefix.size() + expected_end.size()) return wrong;
  start.name = first.substr(kPrefix.size(), first.size() - kPrefix.size() - expected_end.size());
  auto cursor = visitors::SessionCursor::parse(std::string_view(resume).substr(line_end + 1));
  if (!cursor) return cursor.error().with_context("resume");
  if (Status whole = cursor->open_seal(first); !whole) return whole.with_context("resume");
  if (cursor->question != question) return wrong;
  start.cursor = std::move(*cursor);
  return start;
}

/// Returns true for those of Fjord's own types whose documents are there for users, who also remove them when they need
/// them no more: results of jobs and recorded queries.
bool is_for_users(std::string_view own_type) { return own_type == "fjord_result" || own_type == "fjord_queries"; }

/// Returns the options of the visit. Errors: Unauthorized for one of Fjord's own types; UnknownType; those of the
/// selection and of the changes.
Result<visitors::VisitorSessionOptions> session_of(ClientCore& core, const BulkChange& change,
                                                   const BulkOptions& options) {
  FJORD_TRY(core.refresh());
  const auto types = core.types();
  const std::string type_name = options.all_types ? std::string() : options.type;
  const DocumentType* const type = types->find(type_name);
  if (type == nullptr && !options.all_types) {
    return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", type_name));
  }
  if (is_own_type(type_name) && (change.changes || !is_for_users(type_name))) {
    return Status(StatusCode::Unauthorized,
                  fmt::format("documents of type {} are Fjord's own and are not changed by selection", type_name));
  }
  FJORD_TRY_ASSIGN(DocumentQuery query, DocumentQuery::make(type_name, change.selection, {}, *types));
  if (change.changes && type != nullptr) {
    const auto understood = DocumentUpdate::from_json_fields(*type, DocumentId(), *change.changes);
    if (!understood) return understood.error();
  }
  visitors::VisitorSessionOptions session;
  if (options.slice) {
    if (options.slice->count == 0 || options.slice->index >= options.slice->count) {
      return Status(StatusCode::InvalidArgument,
                    fmt::format("there is no slice {} of {}", options.slice->index, options.slice->count));
    }
    session.slice = visitors::PositionRange::slice(options.slice->index, options.slice->count);
  }
  session.selection = std::move(query.selection);
  session.field_set = "[id]";
  session.follow_bits = true;
  session.no_progress_limit = core.timeout(options.timeout);
  return session;
}

/// Reads the stream to its end; calls `on_document(bucket, id)` and `on_bucket_end(bucket)`.
template <typename D, typename B>
Status for_each_document(VisitStream& stream, D on_document, B on_bucket_end) {
  VisitItem item;
  while (stream.pop(item)) {
    if (item.kind == VisitItem::Kind::BucketEnd) {
      FJORD_TRY(on_bucket_end(item.from.bucket));
      continue;
    }
    DocBlockReader reader(item.docblock);
    while (const auto entry = reader.next()) {
      const std::string_view id = entry->removed ? entry->id : document_id_of_header(entry->header);
      if (id.empty()) return {StatusCode::Corruption, "a document without an id"};
      on_document(item.from.bucket, id);
    }
    if (!reader.ok()) return {StatusCode::Corruption, "a block of documents is malformed"};
  }
  return stream.result();
}

double fraction_of(const VisitStream& stream) {
  const visitors::VisitProgress progress = stream.progress();
  if (progress.buckets_total == 0) return -1;
  return static_cast<double>(progress.buckets_done) / static_cast<double>(progress.buckets_total);
}

Status count(VisitStream& stream, const BulkOptions& options, BulkSummary& summary) {
  const auto tell = [&](BucketId) {
    if (options.on_progress) options.on_progress({fraction_of(stream), summary.matched});
    return Status::ok();
  };
  return for_each_document(
      stream, [&](BucketId, std::string_view) { ++summary.matched; }, tell);
}

/// Ends a run after a time. Buckets that were begun before are written to their ends, so that the cursor says exactly
/// what is done; documents of other buckets are dropped, and a later run reads them.
class TimeLimit {
 public:
  TimeLimit(const Clock& clock, Duration limit) : clock_(clock), limit_(limit), begun_(clock.now()) {}

  /// Returns false if the document belongs to a bucket that the run does not begin any more.
  bool takes(BucketId bucket) {
    if (begun_buckets_.contains(bucket)) return true;
    if (is_over()) {
      left_.insert(bucket);
      return false;
    }
    begun_buckets_.insert(bucket);
    return true;
  }
  /// Returns false if documents of the bucket were dropped.
  bool end(BucketId bucket) {
    begun_buckets_.erase(bucket);
    if (left_.erase(bucket) > 0) {
      has_more_ = true;
      return false;
    }
    has_ended_one_ = true;
    return true;
  }
  /// Returns true if the run need not read on. A bucket that was split meanwhile never ends under its own name: after
  /// kLateMax the run leaves such a bucket to the next run.
  bool stops() {
    const bool is_late = is_over() && (begun_buckets_.empty() || clock_.now() >= begun_ + limit_ + kLateMax);
    has_more_ = has_more_ || is_late;
    return is_late;
  }
  bool has_more() const { return has_more_ || !left_.empty(); }

 private:
  static constexpr Duration kLateMax = seconds(10);

  bool is_over() const { return limit_ > Duration(0) && has_ended_one_ && clock_.now() >= begun_ + limit_; }

  const Clock& clock_;
  const Duration limit_;
  const MonotonicTime begun_;
  std::set<BucketId> begun_buckets_;
  std::set<BucketId> left_;  ///< Buckets whose documents were dropped.
  bool has_ended_one_ = false;
  bool has_more_ = false;
};

Status write_all(VisitStream& stream, BulkWriter& writer, const BulkOptions& options, const Clock& clock,
                 TimeLimit& limit) {
  MonotonicTime next_cursor = clock.now();
  const auto on_bucket_end = [&](BucketId bucket) {
    if (limit.end(bucket)) writer.end_bucket(bucket);
    if (limit.stops()) {
      stream.stop(Status::ok());
      return Status::ok();
    }
    const BulkSummary now = writer.summary();
    if (options.on_progress) options.on_progress({fraction_of(stream), now.applied + now.skipped});
    if (!options.on_cursor || clock.now() < next_cursor) return Status::ok();
    next_cursor = clock.now() + seconds(1);
    return options.on_cursor(writer.cursor());
  };
  const auto on_document = [&](BucketId bucket, std::string_view id) {
    if (limit.takes(bucket)) writer.write(bucket, id);
  };
  return for_each_document(stream, on_document, on_bucket_end);
}

Result<BulkSummary> run(ClientCore& core, const BulkChange& change, BulkOptions& options) {
  FJORD_TRY(core.wait_ready());
  FJORD_TRY_ASSIGN(visitors::VisitorSessionOptions session, session_of(core, change, options));
  FJORD_TRY_ASSIGN(BulkStart start, start_of(core, change, options.resume, session.fingerprint()));
  session.resume = start.cursor;
  const std::string selection = session.selection;
  const Clock& clock = core.clock();
  const MonotonicTime begun = clock.now();
  VisitStream stream(core, {std::move(session)}, kBufferBytes);
  FJORD_TRY(stream.start());
  const std::stop_callback on_stop(options.stop,
                                   [&stream] { stream.stop(Status(StatusCode::Cancelled, "the run was stopped")); });
  BulkSummary summary;
  if (options.dry_run) {
    summary.status = count(stream, options, summary);
    return summary;
  }
  BulkWriter writer(core, change, selection, options, std::move(start.name), std::move(start.cursor));
  // The name of the run must be stored before the first write, so that a run that is cut short can be resumed under it.
  if (options.on_cursor && options.resume.empty()) FJORD_TRY(options.on_cursor(writer.cursor()));
  TimeLimit limit(clock, options.time_limit);
  Status status = write_all(stream, writer, options, clock, limit);
  writer.wait();  // Documents found before a failure of the visit are written, too.
  summary = writer.summary();
  summary.has_more = limit.has_more();
  summary.cursor = writer.cursor();
  if (options.on_cursor) {
    if (const Status kept = options.on_cursor(summary.cursor); !kept && status) status = kept;
  }
  summary.status = std::move(status);
  summary.seconds = std::chrono::duration<double>(clock.now() - begun).count();
  return summary;
}

}  // namespace

std::uint64_t BulkSummary::failed_total() const {
  std::uint64_t total = 0;
  for (const auto& [code, count] : failed) total += count;
  return total;
}

BulkSummary run_bulk(ClientCore& core, const BulkChange& change, BulkOptions options) {
  Result<BulkSummary> summary = run(core, change, options);
  if (summary) return std::move(*summary);
  BulkSummary failed;
  failed.status = summary.error();
  return failed;
}

}  // namespace fjord
