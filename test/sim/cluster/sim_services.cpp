#include "sim_services.h"

#include "affinity_faults.h"
#include "batched_application.h"
#include "faulty_services.h"
#include "fjord/mapreduce/document_sink.h"
#include "fjord/mapreduce/job_service.h"
#include "fjord/mapreduce/task_visitors.h"
#include "fjord/search/search_broker.h"
#include "fjord/search/search_service.h"
#include "fjord/visitors/visitor_service.h"
#include "job_record_faults.h"

namespace fjord::sim {
namespace {

/// A sink that sometimes drops a tuple document and reports success.
class ForgetfulSink final : public mapreduce::DocumentSink {
 public:
  ForgetfulSink(mapreduce::DocumentSink& sink, Random random) : sink_(sink), random_(random) {}

  void put(std::string id, EncodedDocument document, visitors::Mailbox reply_to, Done done) override {
    if (id.starts_with("id:fjord:fjord_tuples:") && random_.chance(0.1)) {
      reply_to.post([done = std::move(done)] { done(Status::ok()); });
    } else {
      sink_.put(std::move(id), std::move(document), std::move(reply_to), std::move(done));
    }
  }
  void remove(std::string id, visitors::Mailbox reply_to, Done done) override {
    sink_.remove(std::move(id), std::move(reply_to), std::move(done));
  }

 private:
  mapreduce::DocumentSink& sink_;
  Random random_;
};

ClientOptions client_options(std::vector<rpc::Address> distributors) {
  ClientOptions options;
  options.addresses = std::move(distributors);
  options.attempt_timeout = seconds(2);
  return options;
}

}  // namespace

struct StorageServices::Parts {
  Parts(Runtime& runtime, rpc::Transport& transport, storage::StorageNode& node, std::vector<rpc::Address> distributors,
        const SimClusterOptions& shape)
      : executor(runtime.scheduler.make_executor("tasks")),
        client(client_options(std::move(distributors)), runtime, transport, *executor),
        sink(client, mapreduce::kTaskPutTimeout),
        forgetful(sink, runtime.random.fork()) {
    mapreduce::add_builtin_applications(applications);
    add_batched_application(applications);
    visitors::add_builtin_visitors(registry);
    mapreduce::TaskOptions task;
    task.tuple_document_bytes = 300;  // Small, so that a task puts several tuple documents.
    task.writes = {.operations = 4, .bytes = 700};
    task.chunk_bytes = 300;
    task.spill_directory = "/spill";
    const Bug bug = shape.bug;
    mapreduce::DocumentSink& chosen = bug == Bug::ForgetTuple ? static_cast<mapreduce::DocumentSink&>(forgetful)
                                                              : static_cast<mapreduce::DocumentSink&>(sink);
    mapreduce::add_task_visitors(registry, applications, chosen, runtime, task);
    visitors::VisitorServiceOptions options;
    options.docblock_bytes = 700;
    visitors = std::make_unique<visitors::VisitorService>(options, runtime, node, node.snapshots(), registry);
    visits = visitors.get();
    if (bug == Bug::ForgetVisited) {
      forgetful_visits = std::make_unique<ForgetfulVisits>(*visitors, runtime.random.fork());
      visits = forgetful_visits.get();
    }
    if (bug == Bug::HideRemoves) {
      hides_removes = std::make_unique<HidesRemoves>(*visitors, runtime.random.fork());
      visits = hides_removes.get();
    }
    if (!shape.search) return;
    // Loads are random: time does not pass while a simulated process works.
    search::SearchServiceOptions search;
    search.machine_load = [draws = std::make_shared<Random>(runtime.random.fork())] { return draws->uniform(); };
    searches = std::make_unique<search::SearchService>(runtime, node, node.snapshots(), search);
  }

  std::unique_ptr<Executor> executor;
  AsyncClient client;
  mapreduce::ClientSink sink;
  ForgetfulSink forgetful;
  mapreduce::ApplicationRegistry applications;
  visitors::VisitorRegistry registry;
  std::unique_ptr<visitors::VisitorService> visitors;
  std::unique_ptr<ForgetfulVisits> forgetful_visits;
  std::unique_ptr<HidesRemoves> hides_removes;
  std::unique_ptr<search::SearchService> searches;  ///< Null unless the cluster is searched.
  rpc::Service* visits = nullptr;
  OffersBatched plugins;
};

StorageServices::StorageServices(Runtime& runtime, rpc::Transport& transport, storage::StorageNode& node,
                                 std::vector<rpc::Address> distributors, const SimClusterOptions& options)
    : parts_(std::make_unique<Parts>(runtime, transport, node, std::move(distributors), options)) {}
StorageServices::~StorageServices() = default;

std::vector<rpc::Service*> StorageServices::list(storage::StorageNode& node) {
  std::vector<rpc::Service*> services = {&node, parts_->visits, &parts_->plugins};
  if (parts_->searches != nullptr) services.push_back(parts_->searches.get());
  return services;
}

struct DistributorServices::Parts final : rpc::Service {
  Parts(const std::string& name, Runtime& runtime, rpc::Transport& transport, std::vector<rpc::Address> distributors,
        const SimClusterOptions& shape)
      : bug(shape.bug), stored(client_options(std::move(distributors)), runtime, transport), records(stored, bug) {
    mapreduce::add_builtin_applications(applications);
    add_batched_application(applications);
    mapreduce::JobServiceOptions options;
    options.name = name;
    options.refresh_snapshot = [this] { refresh(); };
    jobs = std::make_unique<mapreduce::JobService>(options, runtime, transport, snapshots, applications, records);
    if (shape.search) {
      start_broker = [this, &runtime, &transport, redundancy = shape.redundancy] {
        broker = std::make_unique<search::SearchBroker>(
            search::SearchBrokerOptions(), runtime, transport, node->snapshots(),
            [this] { return node->state_in_force(); },
            search::BrokerDocuments{.tables = random_voting_tables(redundancy)});
      };
    }
  }

  void refresh() {
    if (node == nullptr) return;
    if (auto snapshot = node->snapshots().get()) FJORD_CHECK(snapshots.update(snapshot->info()).has_value());
  }

  /// A job starts from the distributor's cluster snapshot. Newer states that jobs receive are not passed to the
  /// distributor, which has to get them from the fleet controller.
  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    refresh();
    return jobs->handle(request, respond) || (broker != nullptr && broker->handle(request, respond));
  }

  distributor::DistributorNode* node = nullptr;
  const Bug bug;
  std::unique_ptr<DeniesWrites> denies_writes;
  rpc::SnapshotHolder snapshots;
  mapreduce::ApplicationRegistry applications;
  mapreduce::StoredJobRecords stored;
  FaultyJobRecords records;  ///< Changes nothing unless there is a bug in records.
  std::unique_ptr<mapreduce::JobService> jobs;
  std::function<void()> start_broker;  ///< Null unless the cluster is searched.
  std::unique_ptr<search::SearchBroker> broker;
};

DistributorServices::DistributorServices(const std::string& name, Runtime& runtime, rpc::Transport& transport,
                                         std::vector<rpc::Address> distributors, const SimClusterOptions& options)
    : parts_(std::make_unique<Parts>(name, runtime, transport, std::move(distributors), options)) {}
DistributorServices::~DistributorServices() = default;

std::vector<rpc::Service*> DistributorServices::list(distributor::DistributorNode& node) {
  parts_->node = &node;
  if (parts_->start_broker) parts_->start_broker();
  if (parts_->bug == Bug::UnstableBound) {
    parts_->denies_writes = std::make_unique<DeniesWrites>(node);
    return {parts_->denies_writes.get(), parts_.get()};
  }
  return {&node, parts_.get()};
}

}  // namespace fjord::sim
