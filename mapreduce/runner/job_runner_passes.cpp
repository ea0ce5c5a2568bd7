// The part of the runner for jobs of several passes and for rows that become documents.

#include <algorithm>
#include <fmt/core.h>
#include <set>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/common/retry.h"
#include "fjord/document/docblock.h"
#include "job_runner.h"
#include "record/job_record_writer.h"
#include "task/rows.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kPageBytesMin = std::size_t{16} << 10;
constexpr std::size_t kPageBytesMax = std::size_t{1} << 20;
constexpr std::size_t kPumpOutstanding = 32;
constexpr unsigned kPumpTriesMax = 20;
constexpr Duration kPumpAgain = milliseconds(500);
constexpr std::uint64_t kBytesOfId = 32;  // memory per id of a document that must exist

std::string of_job(const std::string& job) { return fmt::format("{}.job == \"{}\"", kTuplesType, job); }

std::string of_target(const rpc::RowTarget& target) {
  return fmt::format("{} and id.type == \"{}\" and id.namespace == \"{}\" and id.specific = \"{}/*\"", target.type,
                     target.type, target.name_space, target.name);
}

std::size_t bytes_of(const JobRows& rows) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : rows) bytes += key.size() + value.size() + sizeof(rows[0]);
  return bytes;
}

}  // namespace

// --- What the pass reads and puts

/// True if the next pass reads the rows, or they become documents.
bool JobRunner::puts_rows() const { return !plan_.is_last || !plan_.pass.into.type.empty(); }

/// True if the runner decides which of the rows remain (a limit).
bool JobRunner::takes_some() const { return puts_rows() && application_->is_limited(); }

/// Returns the buckets of all destinations. `spec_` does not have them: in a direct map phase it has one destination.
std::vector<BucketId> JobRunner::output_buckets() const {
  const unsigned bits = environment_.snapshot.get()->distribution_bits();
  std::set<BucketId> buckets;
  for (std::uint32_t i = 0; i < job_.output_buckets; ++i) buckets.insert(BucketId(bits, job_.output_base + i));
  return {buckets.begin(), buckets.end()};
}

std::string JobRunner::input_selection() const {
  if (plan_.reads_rows) {
    TaskSpec before = spec_;
    before.run = job_.pass_run - 1;
    return of_job(before.rows_job(false));
  }
  std::string selection = plan_.reads.type.empty() ? spec_.document_type : of_target(plan_.reads);
  if (!plan_.pass.selection.empty()) selection += " and (" + plan_.pass.selection + ")";
  return selection;
}

/// Checks that the pass read exactly what the one before it put, and that map() did not fail on all documents. Errors:
/// Corruption; InvalidArgument.
Status JobRunner::check_input() const {
  const std::uint64_t failed = job_.dead_letters.size() - job_.dead_letters_before();
  if (failed > 0 && failed == job_.counts.documents_read) {
    return Status(StatusCode::InvalidArgument, fmt::format("map() failed on each of the {} documents, at last with: {}",
                                                           failed, job_.dead_letters.back().error));
  }
  const bool counts_all = plan_.reads_rows || plan_.pass.selection.empty();
  if (job_.passes_done.empty() || !counts_all) return Status::ok();
  const std::uint64_t put = job_.passes_done.back().counts.results;
  if (job_.counts.documents_read == put) return Status::ok();
  return Status(StatusCode::Corruption, fmt::format("pass {} read {} documents, the pass before put {}",
                                                    job_.passes_done.size() + 1, job_.counts.documents_read, put));
}

/// Sets what reduce tasks put. Rows that a limit may drop are not results yet.
void JobRunner::set_outputs() {
  spec_.puts_rows = puts_rows();
  spec_.puts_all = takes_some();
  spec_.puts_results = plan_.is_last && !takes_some();
  spec_.into = takes_some() ? rpc::RowTarget() : plan_.pass.into;
}

// --- From reduce to pages of rows

/// Ends reduce if no map task made a tuple. A result without documents (tuple_of_nothing) is made in this process.
void JobRunner::reduce_nothing() {
  if (!application_->tuple_of_nothing()) {
    reduced();
    return;
  }
  auto rows = DirectReduce(*application_, environment_.bulk).finish(static_cast<std::size_t>(memory_limit()));
  if (!rows) {
    fail(rows.error());
    return;
  }
  rows_ = std::move(*rows);
  has_rows_ = true;
  job_.counts.results = rows_.size();
  job_.shuffle = rpc::Shuffle::Direct;
  reduced();
}

void JobRunner::reduced() {
  if (!puts_rows()) {
    finish_pass();
    return;
  }
  if (job_.shuffle == rpc::Shuffle::Direct) {
    // A new owner must know where pages may be before the first one is put.
    choose_output();
    commit([this] {
      if (outcome_ == rpc::JobPhase::Done) write_pages();
    });
    return;
  }
  commit([this] {
    if (outcome_ != rpc::JobPhase::Done) return;
    if (!takes_some()) {
      pages_written();
      return;
    }
    rows_.clear();
    collected_.clear();
    spec_.puts_all = true;
    in_phase([this] { collect([this] { write_pages(); }); });
  });
}

/// Options of a visit that returns documents to the runner.
visitors::VisitorSessionOptions JobRunner::reading_options() const {
  auto options = session_options("dump");
  options.deduplicate = true;
  options.follow_bits = true;
  return options;
}

/// Reads all pages and keeps the rows that the application's limit leaves.
void JobRunner::collect(std::function<void()> then) {
  rows_.clear();
  collected_.clear();
  auto options = reading_options();
  options.selection = of_job(spec_.rows_job(spec_.puts_all));
  options.buckets = output_buckets();
  job_.counts.documents_put = 0;
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_begin = [this](std::size_t) { return wait_for_share(environment_.clock.now()); };
  callbacks.on_docblock = [this](BucketId, const std::string& docblock) { take_rows_of(docblock); };
  callbacks.on_finished = [this, then = std::move(then)](const Status& status) {
    if (!status) {
      fail(status);
    } else {
      on_collected(then);
    }
  };
  settling_.rows = 0;
  start_session(std::move(options), std::move(callbacks));
}

void JobRunner::take_rows_of(const std::string& docblock) {
  const auto types = snapshot_->types();
  DocBlockReader reader(docblock);
  Status status;
  while (const auto entry = status ? reader.next() : std::nullopt) {
    const auto view = DocumentView::open(*types, entry->header, entry->body);
    const auto tuples = view ? view->field("tuples") : std::nullopt;
    if (!tuples) status = Status(StatusCode::Corruption, "a page without rows");
    if (!tuples || !collected_.insert(std::string(view->id())).second) continue;
    status = for_each_tuple(tuples->as_string_view(), [&](std::string_view key, std::string_view row) {
      rows_.emplace_back(key, row);
      ++settling_.rows;
      return Status::ok();
    });
    // Rows that are dropped now would also be dropped at the end.
    if (status && bytes_of(rows_) > memory_limit()) status = application_->arrange(rows_);
    if (status && bytes_of(rows_) > memory_limit()) {
      status = Status(StatusCode::TooLarge,
                      fmt::format("the rows that the limit leaves need more than {} bytes; the "
                                  "limit is the {}",
                                  memory_limit(), memory_limit_name()),
                      memory_limit_details());
    }
  }
  if (status && !reader.ok()) status = Status(StatusCode::Corruption, "malformed block of documents");
  if (!status) fail(status);
}

void JobRunner::on_collected(std::function<void()> then) {
  if (settling_.rows != job_.counts.results) {
    fail(Status(StatusCode::Corruption,
                fmt::format("reduce made {} rows, {} are there", job_.counts.results, settling_.rows)));
    return;
  }
  if (!std::is_sorted(rows_.begin(), rows_.end())) std::sort(rows_.begin(), rows_.end());
  if (const Status status = application_->arrange(rows_); !status) {
    fail(status);
    return;
  }
  has_rows_ = true;
  between_ = true;
  environment_.executor.post(if_alive([this, then = std::move(then)] {
    if (outcome_ == rpc::JobPhase::Done && !begins_anew_) then();
  }));
}

/// Writes the rows as pages before the first row becomes a document, so that a new owner puts the same rows.
void JobRunner::write_pages() {
  job_.counts.results = rows_.size();
  const std::size_t page_bytes =
      std::clamp(bytes_of(rows_) / (2 * std::size_t{job_.output_buckets}), kPageBytesMin, kPageBytesMax);
  struct Place {
    std::size_t row = 0;
    std::uint32_t page = 0;
  };
  pump(
      [this, page_bytes, at = Place()](SinkOperation& operation) mutable -> Result<bool> {
        RowPage page;
        while (at.row < rows_.size() && page.bytes() < page_bytes) {
          page.add(printable_key(rows_[at.row].first), rows_[at.row].second);
          ++at.row;
        }
        if (page.is_empty()) return false;
        const std::uint32_t number = at.page++;
        FJORD_TRY_ASSIGN(operation.document,
                         page_document(spec_, *snapshot_->types(), false, number % job_.output_buckets,
                                       number / job_.output_buckets, page.take(), operation.id));
        job_.counts.sent_bytes += operation.document->size();
        return true;
      },
      0, [this] { pages_written(); });
}

/// Puts or removes what `next` returns. After a transient error or a timeout it starts again with a fresh copy of
/// `next`.
void JobRunner::pump(std::function<Result<bool>(SinkOperation&)> next, unsigned tries, std::function<void()> then) {
  between_ = true;
  pumps_ = outcome_ == rpc::JobPhase::Done && !begins_anew_;
  if (!pumps_) {
    stop();
    return;
  }
  const auto ended = [this, next, tries, then = std::move(then)](const Status& status) {
    const bool goes_on = outcome_ == rpc::JobPhase::Done && !begins_anew_;
    if (goes_on && may_succeed_later(status.code()) && tries < kPumpTriesMax) {
      if (puts_documents()) note_late_writes();
      environment_.executor.post_after(kPumpAgain,
                                       if_alive([this, next, tries, then] { pump(next, tries + 1, then); }));
      return;
    }
    pumps_ = false;
    if (!goes_on) {
      stop();
    } else if (!status) {
      fail(status);
    } else {
      then();
    }
  };
  pump_ = std::make_shared<SinkPump>(
      environment_.records.sink(), environment_.mailbox, kPumpOutstanding,
      [this, next](SinkOperation& operation) mutable -> Result<bool> {
        if (outcome_ != rpc::JobPhase::Done || begins_anew_) return false;
        if (puts_documents() && !callbacks_.is_owner())
          return Status(StatusCode::NotReady, "the job may have another owner by now");
        return next(operation);
      },
      [this, ended](const Status& status) {
        // Deferred: the pump is about to be replaced and must not be on the stack.
        environment_.executor.post(if_alive([ended, status] { ended(status); }));
      });
  pump_->start();
}

/// Called when all pages of the pass are written.
void JobRunner::pages_written() {
  if (plan_.pass.into.type.empty()) {
    finish_pass();
    return;
  }
  job_.phase = rpc::JobPhase::Put;
  commit([this] {
    if (outcome_ == rpc::JobPhase::Done) put();
  });
}

// --- Rows become lasting documents

/// Puts rows as documents. With the store shuffle reduce tasks have already put them, unless a limit drops rows.
void JobRunner::put() {
  job_.phase = rpc::JobPhase::Put;
  settling_ = Settling();
  const bool is_to_put = job_.shuffle == rpc::Shuffle::Direct || takes_some();
  const bool misses_rows = plan_.is_last && job_.shuffle == rpc::Shuffle::Direct && !has_rows_;
  spec_.puts_all = false;
  const auto next = [this, is_to_put] {
    in_phase([this, is_to_put] { is_to_put&& job_.counts.results != 0 ? run_put() : settle(); });
  };
  if (misses_rows) {
    in_phase([this, next] { collect(next); });
  } else {
    next();
  }
}

void JobRunner::run_put() {
  TaskSpec spec = spec_;
  spec.into = plan_.pass.into;
  spec.puts_results = plan_.is_last && job_.shuffle == rpc::Shuffle::Store;
  spec.expected_documents.clear();
  auto options = session_options(kPutVisitor);
  options.parameters = spec.to_parameters();
  options.selection = of_job(spec_.rows_job(false));
  options.buckets = output_buckets();
  job_.counts.documents_put = 0;
  run(
      std::move(options),
      [this](const TaskReport& report) {
        job_.counts.documents_put += report.results;
        job_.counts.sent_bytes += report.sent_bytes;
        job_.busy_us += report.busy_us;
        job_.processor_us += report.processor_us;
        throttle_.bucket_done(report.sent_bytes, report.results, snapshot_->distribution().redundancy(),
                              environment_.clock.now());
        if (const Status within = check_limits(); !within) fail(within);
      },
      {},
      [this](const Status& status) {
        if (!status) {
          fail(status);
          return;
        }
        if (job_.counts.documents_put != job_.counts.results) {
          fail(Status(StatusCode::Corruption,
                      fmt::format("{} rows were put, there are {}", job_.counts.documents_put, job_.counts.results)));
          return;
        }
        between_ = true;
        environment_.executor.post(if_alive([this] {
          if (outcome_ == rpc::JobPhase::Done && !begins_anew_) in_phase([this] { settle(); });
        }));
      });
}

/// Checks that every row has its document, and removes documents of an earlier job with the same target that are not
/// rows of this one. It compares document ids; each round compares as many as fit into memory.
void JobRunner::settle() {
  const std::uint64_t fit = std::max<std::uint64_t>(1, memory_limit() / 2 / kBytesOfId);
  const std::uint64_t round = settling_.round;
  settling_ = Settling();
  settling_.round = round;
  settling_.rounds = job_.counts.results / fit + 1;
  auto options = reading_options();
  options.selection = of_job(spec_.rows_job(false));
  options.buckets = output_buckets();
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_begin = [this](std::size_t) { return wait_for_share(environment_.clock.now()); };
  callbacks.on_docblock = [this](BucketId, const std::string& docblock) {
    DocBlockReader reader(docblock);
    Status status;
    while (const auto entry = status ? reader.next() : std::nullopt) {
      const auto view = DocumentView::open(*snapshot_->types(), entry->header, entry->body);
      const auto tuples = view ? view->field("tuples") : std::nullopt;
      if (!tuples) status = Status(StatusCode::Corruption, "a page without rows");
      if (!tuples || !settling_.pages.insert(std::string(view->id())).second) continue;
      status = for_each_tuple(tuples->as_string_view(), [&](std::string_view key, std::string_view) -> Status {
        ++settling_.rows;
        FJORD_TRY_ASSIGN(const DocumentId id, row_target_id(plan_.pass.into, key));
        if (id.gid().hash_bits() % settling_.rounds == settling_.round) settling_.wanted.push_back(id.gid());
        return Status::ok();
      });
    }
    if (!status) fail(status);
  };
  callbacks.on_finished = [this](const Status& status) {
    if (!status) {
      fail(status);
    } else if (settling_.rows != job_.counts.results) {
      fail(Status(StatusCode::Corruption,
                  fmt::format("reduce made {} rows, {} are there", job_.counts.results, settling_.rows)));
    } else {
      between_ = true;
      environment_.executor.post(if_alive([this] {
        if (outcome_ == rpc::JobPhase::Done && !begins_anew_) in_phase([this] { read_targets(); });
      }));
    }
  };
  start_session(std::move(options), std::move(callbacks));
}

void JobRunner::read_targets() {
  std::sort(settling_.wanted.begin(), settling_.wanted.end());
  settling_.found.assign(settling_.wanted.size(), false);
  settling_.stale.clear();
  settling_.stale_bytes = 0;
  settling_.again = false;
  auto options = reading_options();
  options.ids_only = true;
  options.selection = of_target(plan_.pass.into);
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_begin = [this](std::size_t) { return wait_for_share(environment_.clock.now()); };
  callbacks.on_docblock = [this](BucketId, const std::string& docblock) { take_targets(docblock); };
  callbacks.on_finished = [this](const Status& status) {
    const auto missing = std::count(settling_.found.begin(), settling_.found.end(), false);
    if (!status) {
      fail(status);
    } else if (missing != 0) {
      fail(Status(StatusCode::Corruption, fmt::format("{} of {} documents of type {} are not there after they were put",
                                                      missing, job_.counts.results, plan_.pass.into.type)));
    } else {
      between_ = true;
      environment_.executor.post(if_alive([this] {
        if (outcome_ == rpc::JobPhase::Done && !begins_anew_) remove_stale();
      }));
    }
  };
  start_session(std::move(options), std::move(callbacks));
}

void JobRunner::take_targets(const std::string& docblock) {
  DocBlockReader reader(docblock);
  while (const auto entry = reader.next()) {
    if (entry->gid.hash_bits() % settling_.rounds != settling_.round) continue;
    const auto at = std::lower_bound(settling_.wanted.begin(), settling_.wanted.end(), entry->gid);
    if (at != settling_.wanted.end() && *at == entry->gid) {
      settling_.found[static_cast<std::size_t>(at - settling_.wanted.begin())] = true;
      continue;
    }
    const auto view = DocumentView::open(*snapshot_->types(), entry->header, entry->body);
    if (!view) {
      fail(view.error());
      return;
    }
    if (settling_.stale_bytes > memory_limit() / 2) {
      settling_.again = true;
      continue;
    }
    settling_.stale.emplace_back(view->id());
    settling_.stale_bytes += settling_.stale.back().size() + sizeof(std::string);
  }
  if (!reader.ok()) fail(Status(StatusCode::Corruption, "malformed block of documents"));
}

void JobRunner::remove_stale() {
  pump(
      [this, at = std::size_t{0}](SinkOperation& operation) mutable -> Result<bool> {
        if (at == settling_.stale.size()) return false;
        operation.id = settling_.stale[at++];
        operation.document.reset();
        return true;
      },
      0,
      [this] {
        job_.counts.documents_removed += settling_.stale.size();
        if (!settling_.again) ++settling_.round;
        if (settling_.round < settling_.rounds) {
          in_phase([this] { settle(); });
        } else {
          finish_pass();
        }
      });
}

// --- From pass to pass

bool JobRunner::puts_documents() const {
  return !plan_.pass.into.type.empty() && (job_.phase == rpc::JobPhase::Reduce || job_.phase == rpc::JobPhase::Put);
}

/// Notes that tasks or pumps that put or remove lasting documents were abandoned.
void JobRunner::note_late_writes() {
  if (!plan_.pass.into.type.empty())
    late_writes_until_ = environment_.clock.now() + environment_.options.late_writes_max;
}

void JobRunner::note_repeated() {
  const std::uint64_t before = std::exchange(repeated_noted_, session_->progress().buckets_repeated);
  if (repeated_noted_ != before) note_late_writes();
}

/// Ends the pass, but first waits for puts of abandoned tasks. They put rows of this job; once the job has ended,
/// another job may put newer rows under the same ids.
void JobRunner::finish_pass() {
  if (late_writes_until_ > environment_.clock.now()) {
    between_ = true;
    environment_.executor.post_after(*late_writes_until_ - environment_.clock.now(), if_alive([this] {
      if (outcome_ == rpc::JobPhase::Done && !begins_anew_) finish_pass();
    }));
    return;
  }
  if (!plan_.is_last) {
    next_pass();
    return;
  }
  if (job_.output_buckets == 0) {
    end();
    return;
  }
  const bool is_kept =
      has_rows_ && job_.shuffle == rpc::Shuffle::Direct && bytes_of(rows_) <= environment_.options.recorded_rows_bytes;
  if (!is_kept) {
    finish_store(rpc::JobPhase::Done);
    return;
  }
  // Clean-up removes the pages. A new owner then finds the rows beside the record.
  between_ = true;
  callbacks_.save_rows(rows_, [this, alive = std::weak_ptr<int>(alive_)](const Status& status) {
    if (alive.expired() || outcome_ != rpc::JobPhase::Done || begins_anew_) return;
    if (!status) log::warning("job", "{}: the results are only in memory: {}", job_.job_id, status.to_string());
    finish_store(rpc::JobPhase::Done);
  });
}

/// For a job that was taken over in clean-up: reads the rows that finish_pass() stored, so that this process can return
/// them.
void JobRunner::read_kept_rows() {
  if (outcome_ != rpc::JobPhase::Done || job_.shuffle != rpc::Shuffle::Direct) {
    clean_up();
    return;
  }
  callbacks_.load_rows([this, alive = std::weak_ptr<int>(alive_)](Result<JobRows> rows) {
    if (alive.expired()) return;
    has_rows_ = rows.has_value();
    if (rows) rows_ = std::move(*rows);
    clean_up();
  });
}

/// Records the pass as done and begins the next one. Each pass has its own run, so that their documents never mix.
void JobRunner::next_pass() {
  PassResult done{state().counts, job_.dead_letters.size() - job_.dead_letters_before(), job_.shuffle};
  end_mapping();
  job_.passes_done.push_back(std::move(done));
  reset_counts();
  ++job_.run;
  job_.pass_run = job_.run;
  spec_.run = job_.run;
  job_.bits = 0;
  job_.shuffle = rpc::Shuffle::Auto;
  repeated_before_ = 0;
  commit([this] {
    if (outcome_ != rpc::JobPhase::Done) return;
    session_.reset();
    if (choose_pass()) begin();
  });
}

}  // namespace fjord::mapreduce
