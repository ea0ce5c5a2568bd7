#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "fjord/document/docblock.h"
#include "fjord/mapreduce/job_results.h"
#include "fjord/visitors/visitor_session.h"
#include "operations_workload.h"
#include "updates_workload.h"
#include "workload.h"

namespace fjord::sim {
namespace {

/// Schema of the documents that visits and jobs read.
constexpr const char* kFactSchema = R"(document fact {
  field city type string { header }
  field price type long { header }
}
)";

class VisitWorkload final : public Workload {
 public:
  explicit VisitWorkload(WorkloadContext context) : context_(std::move(context)) {}

  std::string name() const override { return "visit"; }

  bool prepare() override {
    const auto documents = static_cast<unsigned>(20 + context_.random().below(60));
    std::vector<rpc::Operation> puts;
    std::vector<rpc::Operation> removes;
    for (unsigned i = 0; i < documents; ++i) {
      const std::string id = fmt::format("id:sim:fact::v{}", i);
      puts.push_back(put_json_operation(id, R"({"city": "visited", "price": 1})"));
      if (i % 4 == 3) {
        removes.push_back(remove_operation(id));
        gone_.insert(id);
      } else {
        stay_.insert(id);
      }
    }
    return feed_operations(context_, puts) && feed_operations(context_, removes);
  }

  void start() override { visit(); }
  void stop() override { stopped_ = true; }
  bool is_idle() const override { return !under_way_; }

  std::string check() override {
    if (!failure_.empty()) return failure_;
    // The faults are over: a visit that begins now has to reach its end.
    stopped_ = false;
    last_ = true;
    visit();
    if (!context_.cluster.run_until([&] { return !under_way_; }, seconds(60))) return "I16: a visit never ended";
    return failure_;
  }

  std::string summary() const override { return fmt::format("visit: {} visits, {} failed", visits_, failed_); }

 private:
  void visit() {
    if (stopped_) return;
    under_way_ = true;
    ++visits_;
    seen_.clear();
    context_.clients.front()->executor().post([this] {
      visitors::VisitorSessionOptions options;
      options.selection = "fact.city == \"visited\"";
      options.ids_only = context_.random().chance(0.5);
      options.docblock_bytes = 300;
      options.visitors_per_node = 1 + static_cast<std::uint32_t>(context_.random().below(4));
      options.bootstrap = context_.clients.front()->options().addresses;
      options.deadline = last_ ? seconds(40) : seconds(15);
      options.call_timeout = seconds(1);
      visitors::VisitorSessionCallbacks callbacks;
      callbacks.on_docblock = [this](BucketId, const std::string& docblock) { take(docblock); };
      callbacks.on_finished = [this](const Status& status) { finish(status); };
      AsyncClient& client = *context_.clients.front();
      session_ = std::make_unique<visitors::VisitorSession>(
          std::move(options), std::move(callbacks), client.transport(), snapshots_,
          context_.cluster.scheduler().clock(), context_.random().fork(), client.executor());
      session_->start();
    });
  }

  void take(const std::string& docblock) {
    DocBlockReader reader(docblock);
    while (std::optional<EntryView> entry = reader.next()) {
      std::string id(entry->id);
      if (id.empty()) {
        const Result<DocumentView> view =
            DocumentView::open(*snapshots_.get()->types(), std::string(entry->header), std::string(entry->body));
        if (view) id = view->id();
      }
      if (gone_.contains(id)) fail("I8: a visit gave {}, which was removed before it", id);
      if (!stay_.contains(id) && !gone_.contains(id)) fail("I8: a visit gave '{}', which nobody put", id);
      if (++seen_[id] > 1) fail("I8: a visit gave {} twice", id);
    }
    if (!reader.ok()) fail("I8: a visit gave a malformed docblock");
  }

  void finish(const Status& status) {
    session_.reset();
    under_way_ = false;
    context_.exposure.note(8);
    if (status) {
      for (const std::string& id : stay_) {
        if (!seen_.contains(id)) fail("I8: a visit that ended well did not give {}", id);
      }
    } else {
      ++failed_;
      if (last_) fail("I16: a visit failed when all faults were over: {}", status.to_string());
    }
    if (last_) return;
    context_.later([this] {
      if (!under_way_) visit();
    });
  }

  template <typename... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (failure_.empty()) failure_ = fmt::format(format, std::forward<Args>(args)...);
  }

  WorkloadContext context_;
  rpc::SnapshotHolder snapshots_;
  std::unique_ptr<visitors::VisitorSession> session_;
  std::set<std::string> stay_;
  std::set<std::string> gone_;
  std::map<std::string, int> seen_;
  std::string failure_;
  unsigned visits_ = 0;
  unsigned failed_ = 0;
  bool under_way_ = false;
  bool last_ = false;
  bool stopped_ = false;
};

class JobWorkload final : public Workload {
 public:
  explicit JobWorkload(WorkloadContext context) : context_(std::move(context)) {}

  std::string name() const override { return "job"; }

  bool prepare() override {
    const auto documents = static_cast<unsigned>(30 + context_.random().below(60));
    std::vector<rpc::Operation> puts;
    for (unsigned i = 0; i < documents; ++i) {
      const std::string city = fmt::format("city-{}", context_.random().below(5));
      const auto price = static_cast<std::int64_t>(context_.random().below(1000));
      Totals& totals = expected_[city];
      ++totals.count;
      totals.sum += price;
      puts.push_back(put_json_operation(fmt::format("id:sim:fact::j{}", i),
                                        fmt::format(R"({{"city": "{}", "price": {}}})", city, price)));
    }
    return feed_operations(context_, puts);
  }

  void start() override { submit(); }
  void stop() override { stopped_ = true; }
  /// A job is followed until it ends, or until check() gives up on it.
  bool is_idle() const override { return true; }

  std::string check() override {
    if (!failure_.empty()) return failure_;
    // A job begun during faults may be lost with its distributor. A new one without faults has to end.
    ++generation_;
    stopped_ = false;
    last_ = true;
    over_ = false;
    submit();
    if (!context_.cluster.run_until([&] { return over_; }, seconds(120))) return "I16: a job never ended";
    return failure_;
  }

  std::string summary() const override { return fmt::format("job: {} jobs, {} done", jobs_, done_); }

 private:
  struct Totals {
    std::int64_t count = 0;
    std::int64_t sum = 0;
  };

  void submit() {
    if (stopped_) return;
    ++jobs_;
    AsyncClient& client = *context_.clients.front();
    const std::string id = client.new_job_id();
    rpc::SubmitJob submit;
    submit.job_id = id;
    submit.spec.application = "fieldstats";
    submit.spec.document_type = "fact";
    submit.spec.selection = "fact.city != \"visited\"";
    submit.spec.parameters = {{"group", "city"}, {"value", "price"}};
    submit.spec.output_namespace = fmt::format("out{}", jobs_);
    submit.spec.visitors_per_node = 1 + static_cast<std::uint32_t>(context_.random().below(4));
    submit.spec.output_buckets = 1 + static_cast<std::uint32_t>(context_.random().below(4));
    client.call_any(std::move(submit), seconds(20),
                    [this, id, generation = generation_](const Result<rpc::SubmitJobReply>& reply) {
                      if (generation != generation_) return;
                      if (!reply || !reply->status) return end("cannot be submitted");
                      lost_ = 0;
                      look(id, generation);
                    });
  }

  void look(const std::string& id, unsigned generation) {
    context_.cluster.scheduler().outside().post_after(milliseconds(200), [this, id, generation] {
      if (generation != generation_ || (stopped_ && !last_)) return;
      context_.clients.front()->call_all(rpc::ListJobs{id}, seconds(2), [this, id, generation](auto answers) {
        if (generation != generation_) return;
        const rpc::JobStatus* status = nullptr;
        bool all_answered = answers.has_value();
        if (answers) {
          for (auto& [address, reply] : *answers) {
            all_answered = all_answered && reply && reply->status;
            if (reply && reply->status && !reply->jobs.empty()) status = &reply->jobs.front();
          }
        }
        if (status != nullptr && status->finished_unix_us != 0) return finish(*status);
        // No distributor knows the job: it is lost with the process that ran it.
        if (status == nullptr && all_answered && ++lost_ > 10) return end("is gone");
        look(id, generation);
      });
    });
  }

  void finish(const rpc::JobStatus& status) {
    context_.exposure.note(9);
    if (status.phase != rpc::JobPhase::Done) return end("failed: " + status.error.to_string());
    FJORD_CHECK(snapshots_.update(context_.clients.front()->snapshot()->info()).has_value());
    AsyncClient& client = *context_.clients.front();
    reader_ = std::make_unique<mapreduce::JobResults>(status, client.transport(), snapshots_,
                                                      context_.cluster.scheduler().clock(), context_.random().fork(),
                                                      client.executor());
    client.executor().post([this, generation = generation_] {
      if (generation != generation_) return;
      reader_->start([this, generation](const Result<std::vector<mapreduce::KeyedResult>>& results) {
        if (generation != generation_) return;
        if (!results) return end("has no results: " + results.error().to_string());
        ++done_;
        compare(*results);
        end({});
      });
    });
  }

  void compare(const std::vector<mapreduce::KeyedResult>& results) {
    if (results.size() != expected_.size()) {
      failure_ = fmt::format("I9: {} results instead of {}", results.size(), expected_.size());
    }
    for (const auto& [key, value] : results) {
      const auto expected = expected_.find(key);
      const std::string start = expected == expected_.end() ? "nothing"
                                                            : fmt::format(R"({{"count":{},"sum":{},)",
                                                                          expected->second.count, expected->second.sum);
      if (!value.starts_with(start)) failure_ = fmt::format("I9: '{}' is {} instead of {}…", key, value, start);
    }
  }

  /// Ends a job; `problem` is empty if it returned results.
  void end(const std::string& problem) {
    over_ = true;
    if (last_) {
      if (!problem.empty() && failure_.empty()) failure_ = "I16: a job without faults " + problem;
      return;
    }
    context_.later([this, generation = generation_] {
      if (generation == generation_) submit();
    });
  }

  WorkloadContext context_;
  std::map<std::string, Totals> expected_;
  rpc::SnapshotHolder snapshots_;
  std::unique_ptr<mapreduce::JobResults> reader_;
  std::string failure_;
  unsigned jobs_ = 0;
  unsigned done_ = 0;
  unsigned lost_ = 0;
  unsigned generation_ = 0;
  bool last_ = false;
  bool over_ = false;
  bool stopped_ = false;
};

/// UpdatesWorkload as a Workload.
class TallyWorkload final : public Workload {
 public:
  TallyWorkload(const WorkloadContext& context, bool only_test_and_set)
      : context_(context),
        updates_(context.cluster, context.clients, 3 + static_cast<unsigned>(context.random().below(10))) {
    if (only_test_and_set) updates_.only_test_and_set();
    updates_.set_pause_max(context.pause_max);
    updates_.on_ended([this](Outcome outcome, bool is_test_and_set) {
      context_.exposure.note(outcome == Outcome::Applied ? 1 : 6);
      if (is_test_and_set) context_.exposure.note(5);
    });
  }

  std::string name() const override { return "tally"; }
  void start() override { updates_.start(); }
  void stop() override { updates_.stop(); }
  bool is_idle() const override { return updates_.idle(); }
  std::string check() override { return updates_.failure().empty() ? updates_.check_all() : updates_.failure(); }
  std::string summary() const override {
    return fmt::format("tally: {} changes, {} settled by repetition", updates_.begun(), updates_.settled());
  }

 private:
  WorkloadContext context_;
  UpdatesWorkload updates_;
};

}  // namespace

std::unique_ptr<Workload> make_visit_workload(WorkloadContext context) {
  return std::make_unique<VisitWorkload>(std::move(context));
}

std::unique_ptr<Workload> make_job_workload(WorkloadContext context) {
  return std::make_unique<JobWorkload>(std::move(context));
}

std::unique_ptr<Workload> make_update_workload(WorkloadContext context, bool only_test_and_set) {
  return std::make_unique<TallyWorkload>(context, only_test_and_set);
}

std::vector<std::string> workload_schemas() { return {kOperationsSchema, kUpdatesSchema, kFactSchema, feed_schema()}; }

}  // namespace fjord::sim
