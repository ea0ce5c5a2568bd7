#include "fjord/mapreduce/job_results.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "fjord/document/docblock.h"
#include "fjord/document/document.h"
#include "fjord/mapreduce/job_rows.h"
#include "fjord/visitors/visitor_session.h"
#include "task/task.h"

namespace fjord::mapreduce {

namespace {

/// Bytes of a page of results: pages of this size stay in the caches of the processors that pass them on.
constexpr std::uint32_t kPageBytes = std::uint32_t{1} << 20;
constexpr Duration kCallTimeout = seconds(5);
constexpr unsigned kTriesMax = 3;

}  // namespace

bool has_results(const rpc::ListJobsReply& reply) { return !reply.results.empty() || !reply.packed_results.empty(); }

Result<std::vector<KeyedResult>> take_results(rpc::ListJobsReply& reply) {
  FJORD_TRY_ASSIGN(const JobRows rows, JobRows::unpack(std::exchange(reply.packed_results, {})));
  std::vector<KeyedResult> results;
  results.reserve(reply.results.size() + rows.size());
  for (rpc::Parameter& result : reply.results) results.emplace_back(std::move(result.name), std::move(result.value));
  for (const auto& [key, value] : rows) results.emplace_back(key, value);
  return results;
}

class JobResults::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(rpc::JobStatus job, rpc::Transport& transport, rpc::SnapshotHolder& snapshot, Clock& clock, Random random,
       Executor& executor, std::uint64_t bytes_max, std::uint64_t window_bytes)
      : job_(std::move(job)),
        transport_(transport),
        snapshot_(snapshot),
        clock_(clock),
        random_(random),
        executor_(executor),
        bytes_max_(bytes_max),
        window_bytes_(window_bytes) {}

  void start(Done done) {
    done_ = std::move(done);
    const auto snapshot = snapshot_.get();
    if (job_.results_removed) {
      return finish_later({StatusCode::NotFound, "the results of the job " + job_.job_id + " were removed"});
    }
    if (job_.phase != rpc::JobPhase::Done || snapshot == nullptr) {
      return finish_later({StatusCode::InvalidArgument, "the job " + job_.job_id + " is not done"});
    }
    if (is_over_) return finish_later(Status::ok());
    if (job_.shuffle == rpc::Shuffle::Direct) {
      if (addresses_.empty()) addresses_ = snapshot->info().distributor_addresses;
      ask();
      return;
    }
    has_more_ = false;
    visitors::VisitorSessionOptions options;
    options.selection = std::string(kResultType) + ".job == \"" + job_.job_id + "\"";
    options.buckets = output_buckets(job_.output_base, job_.output_buckets, snapshot->distribution_bits());
    options.follow_bits = true;  // if bits were added since, an output bucket may be spread over nodes
    visitors::VisitorSessionCallbacks callbacks;
    callbacks.on_docblock = [this](BucketId, const std::string& block) { take(block); };
    callbacks.on_finished = [this](Status status) { finish(std::move(status)); };
    session_ = std::make_unique<visitors::VisitorSession>(std::move(options), std::move(callbacks), transport_,
                                                          snapshot_, clock_, random_, executor_);
    session_->start();
  }

 private:
  /// Asks a distributor for the next page of results that it holds.
  void ask() {
    if (at_address_ == addresses_.size()) return finish_later(reason_);
    rpc::ListJobs request;
    request.job_id = job_.job_id;
    request.results_from = given_ + results_.size();
    request.results_bytes_max = window_bytes_ == 0
                                    ? kPageBytes
                                    : static_cast<std::uint32_t>(std::min<std::uint64_t>(kPageBytes, window_bytes_));
    request.records = true;
    request.packed = true;
    rpc::call(transport_, addresses_[at_address_], std::move(request), kCallTimeout, executor_,
              [weak = weak_from_this()](Result<rpc::ListJobsReply> reply) {
                if (const auto self = weak.lock()) self->on_page(std::move(reply));
              });
  }

  void on_page(Result<rpc::ListJobsReply> reply) {
    const Status status = reply ? reply->status : reply.error();
    // A distributor that knows only the job's record may lack the results.
    const bool lacks_results = status && !has_results(*reply) && given_ + results_.size() < job_.results;
    if (!status || reply->jobs.empty() || lacks_results) {
      // A distributor without the job is skipped. One that did not answer is asked up to kTriesMax more times.
      if (!status) reason_ = status;
      const bool is_lost = !status && tries_++ < kTriesMax && is_transient(status.code());
      if (!is_lost) {
        ++at_address_;
        tries_ = 0;
      }
      ask();
      return;
    }
    auto results = take_results(*reply);
    if (!results) return finish(results.error());
    for (auto& [key, value] : *results) append(std::move(key), std::move(value));
    has_more_ = reply->more_results && !results->empty();
    if (is_too_large_) {
      finish(too_large());
    } else if (has_more_ && window_bytes_ == 0) {
      ask();
    } else {
      finish(Status::ok());
    }
  }

  void take(const std::string& block) {
    const auto types = snapshot_.get()->types();
    DocBlockReader reader(block);
    while (const auto entry = reader.next()) {
      const auto view = DocumentView::open(*types, entry->header, entry->body);
      const auto key = view ? view->field("key") : std::nullopt;
      const auto value = view ? view->field("value") : std::nullopt;
      if (key && value) {
        add(std::string(key->as_string_view()), std::string(value->as_string_view()));
      } else {
        malformed_ = true;
      }
    }
    malformed_ = malformed_ || !reader.ok();
  }

  /// Takes a result from the store, where they are in no order.
  void add(std::string key, std::string value) {
    if (window_bytes_ == 0) return append(std::move(key), std::move(value));
    if (last_key_ && key <= *last_key_) return;
    // Keys were dropped from the window, so those after it belong to the next one.
    if (has_more_ && !window_.empty() && key > window_.rbegin()->first) return;
    const std::size_t bytes = key.size() + value.size();
    if (!window_.emplace(std::move(key), std::move(value)).second) return;  // A bucket that was read twice.
    bytes_ += bytes;
    while (bytes_ > window_bytes_ && window_.size() > 1) {
      const auto last = std::prev(window_.end());
      bytes_ -= last->first.size() + last->second.size();
      window_.erase(last);
      has_more_ = true;
    }
  }

  void append(std::string key, std::string value) {
    bytes_ += key.size() + value.size();
    if (bytes_max_ != 0 && bytes_ > bytes_max_) is_too_large_ = true;
    if (!is_too_large_) results_.emplace_back(std::move(key), std::move(value));
  }

  Status too_large() const {
    return {StatusCode::TooLarge,
            "the results of the job " + job_.job_id + " have more than " + std::to_string(bytes_max_) + " bytes"};
  }

  void finish(Status status) {
    if (status && is_too_large_) status = too_large();
    const auto self = shared_from_this();  // `done` may destroy the reader
    const auto done = std::move(done_);
    for (auto& [key, value] : window_) results_.emplace_back(key, std::move(value));
    window_.clear();
    if (status && malformed_) status = Status(StatusCode::Corruption, "malformed result documents");
    if (!std::is_sorted(results_.begin(), results_.end())) std::sort(results_.begin(), results_.end());
    // A bucket that was read twice gives duplicates.
    const auto has_same_key = [](const KeyedResult& a, const KeyedResult& b) { return a.first == b.first; };
    results_.erase(std::unique(results_.begin(), results_.end(), has_same_key), results_.end());
    given_ += results_.size();
    is_over_ = !has_more_;
    if (status && is_over_ && given_ != job_.results) {
      status = Status(StatusCode::Corruption, "job " + job_.job_id + " put " + std::to_string(job_.results) +
                                                  " results, " + std::to_string(given_) + " are there");
    }
    if (!status) {
      done(status);
      return;
    }
    if (!results_.empty()) last_key_ = results_.back().first;
    bytes_ = 0;
    done(std::exchange(results_, {}));
  }

  void finish_later(Status status) {
    executor_.post([weak = weak_from_this(), status = std::move(status)] {
      if (const auto self = weak.lock()) self->finish(status);
    });
  }

  rpc::JobStatus job_;
  rpc::Transport& transport_;
  rpc::SnapshotHolder& snapshot_;
  Clock& clock_;
  Random random_;
  Executor& executor_;
  Done done_;
  std::vector<KeyedResult> results_;
  std::vector<rpc::Address> addresses_;  ///< Direct shuffle: the distributors to ask.
  std::size_t at_address_ = 0;
  unsigned tries_ = 0;
  Status reason_{StatusCode::NotFound, "no distributor holds the results of the job any more"};
  bool malformed_ = false;
  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  bool is_too_large_ = false;
  const std::uint64_t window_bytes_;
  std::map<std::string, std::string> window_;  ///< The least keys that were read after `last_key_`.
  std::optional<std::string> last_key_;        ///< The greatest key that was given.
  std::uint64_t given_ = 0;                    ///< Results in earlier windows.
  bool has_more_ = false;                      ///< There are results after this window.
  bool is_over_ = false;
  std::unique_ptr<visitors::VisitorSession> session_;
};

JobResults::JobResults(rpc::JobStatus job, rpc::Transport& transport, rpc::SnapshotHolder& snapshot, Clock& clock,
                       Random random, Executor& executor, std::uint64_t bytes_max, std::uint64_t window_bytes)
    : impl_(std::make_shared<Impl>(std::move(job), transport, snapshot, clock, random, executor, bytes_max,
                                   window_bytes)) {}
JobResults::~JobResults() = default;
void JobResults::start(Done done) { impl_->start(std::move(done)); }

}  // namespace fjord::mapreduce
