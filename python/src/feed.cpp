// Many writes from any iterable.
#include <map>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <unordered_map>

#include "bindings.h"
#include "client_handle.h"
#include "errors.h"
#include "feed_rows.h"
#include "fjord/client/feeder.h"
#include "fjord/library/detail/client_core.h"
#include "values.h"

namespace fjord::python {

namespace {

/// Number of rows that are taken between two looks at the results that have arrived.
constexpr std::uint64_t kRowsBetweenLooks = 256;
/// Number of failures that are kept for FeedStats.errors.
constexpr std::size_t kErrorsKept = 100;

/// What the client's thread tells the thread that feeds. Threading: any thread.
class FeedResults {
 public:
  struct Result {
    std::uint64_t tag;
    std::string id;
    OperationOutcome outcome;
  };

  /// `wants_all`: successes, too.
  explicit FeedResults(bool wants_all) : wants_all_(wants_all) {}

  /// Remembers the id of an operation until its result comes.
  void expect(std::uint64_t tag, std::string id) {
    const std::lock_guard lock(mutex_);
    ids_.emplace(tag, std::move(id));
  }
  void add(std::uint64_t tag, OperationOutcome outcome) {
    const std::lock_guard lock(mutex_);
    auto id = ids_.extract(tag);
    if (wants_all_ || !outcome.is_ok()) results_.push_back({tag, std::move(id.mapped()), std::move(outcome)});
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
    changed_.notify_all();
  }
  /// Waits for wake(). Returns false if it does not come within kSignalInterval.
  bool wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kSignalInterval, [this] { return is_woken_; });
    return std::exchange(is_woken_, false);
  }
  std::vector<Result> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(results_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::uint64_t, std::string> ids_;
  std::vector<Result> results_;
  bool is_woken_ = false;
  const bool wants_all_;
};

struct FeedArguments {
  nb::handle on_result;  ///< None: the caller does not ask.
  std::optional<std::size_t> in_flight;
  nb::handle timeout;
  std::string_view priority;
};

/// One call of feed(). Threading: the interpreter lock.
class Feed {
 public:
  Feed(ClientHandle& handle, const FeedArguments& arguments)
      : handle_(handle),
        client_(handle.use_connected()),
        rows_(handle),
        on_result_(arguments.on_result),
        results_(std::make_shared<FeedResults>(!arguments.on_result.is_none())),
        feeder_(client_->core().client(), feeder_options(arguments, results_)) {}

  nb::dict run(nb::handle rows) {
    std::uint64_t index = 0;
    for_each(iterable_argument(rows, "rows", "an iterable of rows"), [&](nb::handle row) {
      submit(row, index++);
      if (index % kRowsBetweenLooks == 0) {
        check_signals();
        deliver();
      }
    });
    feeder_.when_idle([results = results_, is_idle = is_idle_] {
      is_idle->set();
      results->wake();
    });
    while (!is_idle_->is_set()) wait();
    deliver();
    return stats();
  }

 private:
  static Feeder::Options feeder_options(const FeedArguments& arguments, const std::shared_ptr<FeedResults>& results) {
    Feeder::Options options;
    if (arguments.in_flight) options.window_operations = std::max<std::size_t>(1, *arguments.in_flight);
    options.window_operations_min = std::min(options.window_operations_min, options.window_operations);
    options.timeout = duration_argument(arguments.timeout);
    options.priority = static_cast<rpc::Priority>(to_priority(arguments.priority));
    options.on_result = [results](std::uint64_t tag, OperationOutcome outcome) {
      results->add(tag, std::move(outcome));
    };
    options.on_room = [results] { results->wake(); };
    return options;
  }

  void submit(nb::handle row, std::uint64_t index) {
    std::string id;
    rpc::Operation operation;
    try {
      run_python([&] { operation = rows_.to_operation(row, id); });
    } catch (nb::python_error& error) {
      if (!error.matches(nb::module_::import_("fjord.errors").attr("InvalidRequest"))) throw;
      const nb::object exception = nb::borrow(error.value());
      ++bad_rows_[nb::cast<std::string>(exception.attr("code"))];
      give(index, id, exception, 0);
      return;
    }
    results_->expect(index, std::move(id));
    while (!feeder_.try_submit(operation, index)) wait();
  }

  void wait() {
    const WaitingThread counted;
    {
      const Unlocked unlocked;
      results_->wait();
    }
    check_signals();
    handle_.check_open();
    deliver();
  }

  /// Reports the results that have arrived.
  void deliver() {
    for (auto& [tag, id, outcome] : results_->take()) {
      if (outcome.is_ok()) {
        give(tag, id, nb::none(), outcome.timestamp_us);
        continue;
      }
      WriteResult result;
      result.status = outcome.status;
      result.outcome = static_cast<WriteOutcome>(outcome.outcome);
      result.current_version = Timestamp{outcome.version_us};
      give(tag, id, to_exception(result), 0);
    }
  }

  void give(std::uint64_t index, const std::string& id, const nb::object& error, std::uint64_t version) {
    static PyObject* const type =
        nb::object(nb::module_::import_("fjord.documents").attr("FeedResult")).release().ptr();
    if (on_result_.is_none() && errors_.size() >= kErrorsKept) return;
    const nb::object shown = id.empty() ? nb::none() : to_str(id);
    const nb::object result = run_python([&] {
      return nb::handle(type)(index, shown, version == 0 ? nb::none() : nb::object(nb::int_(version)), error);
    });
    if (!error.is_none() && errors_.size() < kErrorsKept) errors_.append(result);
    if (!on_result_.is_none()) run_python([&] { on_result_(result); });
  }

  nb::dict stats() const {
    const FeedStats found = feeder_.stats();
    nb::dict codes;
    std::map<std::string, std::uint64_t> failed = bad_rows_;
    for (const auto& [code, count] : found.failed) failed[std::string(to_string(code))] += count;
    std::uint64_t failed_total = 0;
    for (const auto& [code, count] : failed) {
      codes[to_str(code)] = count;
      failed_total += count;
    }
    nb::dict result;
    result["ok"] = found.ok;
    result["failed"] = failed_total;
    result["in_doubt"] = found.in_doubt;
    result["retried"] = found.retried;
    result["bytes"] = found.bytes;
    result["seconds"] = found.seconds;
    result["p50"] = found.latency_p50_seconds;
    result["p99"] = found.latency_p99_seconds;
    result["docs_s"] = found.seconds > 0 ? static_cast<double>(found.ok) / found.seconds : 0.0;
    result["failed_by_code"] = codes;
    result["errors"] = errors_;
    return result;
  }

  ClientHandle& handle_;
  std::shared_ptr<Client> client_;
  FeedRows rows_;
  nb::handle on_result_;
  std::shared_ptr<FeedResults> results_;
  std::shared_ptr<Event> is_idle_ = std::make_shared<Event>();
  std::map<std::string, std::uint64_t> bad_rows_;  ///< Rows that were not sent, by code.
  nb::list errors_;
  Feeder feeder_;
};

nb::dict feed(ClientHandle& handle, nb::handle rows, nb::handle on_result, std::optional<std::size_t> in_flight,
              nb::handle timeout, nb::handle priority) {
  Feed run(handle, {on_result, in_flight, timeout, view_of(priority.ptr(), "priority")});
  return run.run(rows);
}

}  // namespace

void bind_feed(nb::module_& module) {
  module.def("feed", &feed, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
             nb::arg().none());
}

}  // namespace fjord::python
