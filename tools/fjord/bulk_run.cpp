#include "bulk_run.h"

#include <algorithm>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <utility>

#include "cli.h"
#include "fjord/common/hash.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_format.h"
#include "json_text.h"

namespace fjord::cli {
namespace {

constexpr const char* kFilePrefix = "fjord-bulk-1 ";
/// Documents that wait for room before the visit is stopped for a while.
constexpr std::size_t kWaitingMax = 10'000;

}  // namespace

std::uint64_t BulkResult::failed_total() const {
  std::uint64_t total = 0;
  for (const auto& [code, count] : failed) total += count;
  return total;
}

std::string BulkResult::to_json() const {
  JsonText json;
  json.begin_object().key("matched").number(matched).key("applied").number(applied).key("skipped").number(skipped);
  json.key("in_doubt").number(in_doubt).key("failed").begin_object();
  for (const auto& [code, count] : failed) json.key(to_string(code)).number(count);
  return json.end_object().key("seconds").real(seconds, 3).end_object().str();
}

BulkRun::BulkRun(Connection& connection, BulkRunOptions options)
    : connection_(connection), options_(std::move(options)), progress_("done", "docs", options_.progress) {}

BulkRun::~BulkRun() = default;

Status BulkRun::run() {
  FJORD_TRY(load());
  const MonotonicTime start = connection_.runtime().clock.now();
  Feeder::Options feed;
  feed.timeout = options_.timeout;
  feed.priority = rpc::Priority::Background;
  if (options_.in_flight != 0) feed.window_operations = options_.in_flight;
  feed.on_result = [this](std::uint64_t tag, const OperationOutcome& outcome) { on_result(tag, outcome); };
  feed.on_room = [this] { pump(); };
  feeder_ = std::make_unique<Feeder>(connection_.client(), std::move(feed));

  VisitRunOptions visit;
  visit.session = options_.visit;
  visit.resume = {token_};
  VisitRunCallbacks callbacks;
  callbacks.on_docblock = [this](const VisitedBucket& from, const std::string& block) {
    return take(from.bucket, block);
  };
  callbacks.on_bucket_done = [this](const VisitedBucket& done) {
    buckets_[done.bucket].visited = true;
    settle(done.bucket);
    return save(false);
  };
  visit_ = std::make_unique<VisitRun>(connection_, std::move(visit), std::move(callbacks));
  Status status = visit_->run();

  // What was found is written, also when the visit failed.
  std::mutex mutex;
  std::condition_variable changed;
  for (bool idle = false; !idle;) {
    feeder_->flush();
    bool answered = false;
    connection_.executor().post([&] {
      pump();
      const std::lock_guard lock(mutex);
      idle = waiting_.empty() && under_way_.empty();
      answered = true;
      changed.notify_one();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return answered; });
  }
  feeder_.reset();
  result_.seconds = std::chrono::duration<double>(connection_.runtime().clock.now() - start).count();
  if (Status saved = save(true); !saved && status) status = saved;
  return status;
}

Status BulkRun::load() {
  token_.question = options_.visit.fingerprint();
  const std::uint64_t kind = hash64(options_.kind);
  if (options_.resume_file.empty()) {
    run_name_ = fmt::format("bulk-{:016x}", Random::from_system().next());
    return Status::ok();
  }
  FJORD_TRY_ASSIGN(const std::string text, read_small_file(options_.resume_file));
  const std::size_t end = text.find('\n');
  const Status wrong(StatusCode::InvalidArgument, options_.resume_file + " is no progress file of this operation");
  const std::string expected_end = fmt::format(" {:016x}", kind);
  const std::string first = text.substr(0, end);
  if (end == std::string::npos || !first.starts_with(kFilePrefix) || !first.ends_with(expected_end)) return wrong;
  const std::size_t prefix = std::string_view(kFilePrefix).size();
  if (first.size() <= prefix + expected_end.size()) return wrong;
  run_name_ = first.substr(prefix, first.size() - prefix - expected_end.size());
  auto token = visitors::VisitToken::parse(text.substr(end + 1));
  if (!token) return token.error().with_context(options_.resume_file);
  token_ = std::move(*token);
  return Status::ok();
}

Status BulkRun::save(bool at_once) {
  const MonotonicTime now = connection_.runtime().clock.now();
  if (options_.progress_file.empty() || (!at_once && now < next_save_)) return Status::ok();
  next_save_ = now + seconds(1);
  return replace_file(options_.progress_file, fmt::format("{}{} {:016x}\n{}\n", kFilePrefix, run_name_,
                                                          hash64(options_.kind), token_.to_text()));
}

Status BulkRun::take(BucketId bucket, const std::string& docblock) {
  DocBlockReader reader(docblock);
  while (const auto entry = reader.next()) {
    const std::string_view id = entry->removed ? entry->id : document_id_of_header(entry->header);
    if (id.empty()) return {StatusCode::Corruption, "a document without an id"};
    ++result_.matched;
    ++buckets_[bucket].writes;
    waiting_.push_back({std::string(id), bucket});
  }
  if (!reader.ok()) return {StatusCode::Corruption, "a block of documents is malformed"};
  pump();
  return Status::ok();
}

/// On the executor, as everything from here on.
void BulkRun::pump() {
  while (!waiting_.empty()) {
    rpc::Operation operation = options_.make(waiting_.front().id);
    operation.condition = options_.visit.selection;
    operation.token = run_name_;
    if (!feeder_->try_submit(operation, next_tag_)) break;
    under_way_.emplace(next_tag_++, std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (waiting_.size() > kWaitingMax && !std::exchange(paused_, true)) visit_->pause();
  if (waiting_.size() < kWaitingMax / 2 && std::exchange(paused_, false)) visit_->resume();
}

void BulkRun::on_result(std::uint64_t tag, const OperationOutcome& outcome) {
  const auto at = under_way_.find(tag);
  const Write write = std::move(at->second);
  under_way_.erase(at);
  Pending& pending = buckets_[write.bucket];
  --pending.writes;
  if (outcome.outcome == Outcome::Applied) {
    ++result_.applied;
  } else if (outcome.outcome == Outcome::NotApplied &&
             (outcome.status.code() == StatusCode::TestAndSetFailed || outcome.status.code() == StatusCode::NotFound)) {
    ++result_.skipped;
  } else {
    pending.spoilt = true;
    note_failure(write.id, outcome.status);
    if (outcome.outcome == Outcome::InDoubt) {
      ++result_.in_doubt;
    } else {
      ++result_.failed[outcome.status.code()];
    }
  }
  settle(write.bucket);
  progress_.update(visit_->part_done(), result_.applied + result_.skipped);
}

void BulkRun::settle(BucketId bucket) {
  const Pending& pending = buckets_.at(bucket);
  if (!pending.visited || pending.writes != 0) return;
  // A bucket that was cut into parts while it was visited may have writes of its own under way.
  const bool whole_is_open = std::any_of(buckets_.begin(), buckets_.end(), [&](const auto& other) {
    return other.first != bucket && other.first.contains(bucket) && (other.second.writes != 0 || other.second.spoilt);
  });
  if (!pending.spoilt && !whole_is_open) token_.done.add(visitors::PositionRange::of(bucket));
  buckets_.erase(bucket);
}

void BulkRun::note_failure(const std::string& id, const Status& status) {
  if (++errors_ <= options_.errors_shown) complain(fmt::format("{}: {}", id, status.to_string()));
}

}  // namespace fjord::cli
