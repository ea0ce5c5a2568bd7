#include "fjord/visitors/visitor_service.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "change_reader.h"
#include "fjord/common/check.h"
#include "fjord/common/hash.h"
#include "fjord/common/turn_pool.h"
#include "fjord/document/selection.h"
#include "server_visitor.h"

namespace fjord::visitors {
namespace {

constexpr Duration kSweepInterval = seconds(1);

rpc::VisitorNextReply not_found(const char* why) {
  rpc::VisitorNextReply reply;
  reply.status = Status(StatusCode::NotFound, why);
  return reply;
}

/// Returns the parts of documents that the engine must read for a projection to these fields.
spi::Parts parts_for(const FieldSet& fields) {
  if (fields.needs_body()) return spi::Parts::All;
  return fields.needs_header_fields() ? spi::Parts::HeaderOnly : spi::Parts::IdOnly;
}

/// Returns the rank of a priority. Lower ranks run first.
std::size_t rank_of(rpc::Priority priority) {
  switch (priority) {
    case rpc::Priority::High:
      return 0;
    case rpc::Priority::Background:
      return 2;
    default:
      return 1;
  }
}

/// Percentage of the queue that visitors of a rank may fill, as in the distributors' queues of operations.
constexpr std::array<std::size_t, 3> kQueueShares = {100, 90, 50};

/// Number of classes: interactive visitors and background visitors have separate threads.
constexpr std::size_t kClasses = 2;
std::size_t class_of(rpc::Priority priority) { return rank_of(priority) == 2 ? 1 : 0; }

constexpr std::uint32_t kWeightDefault = 10;
constexpr std::uint32_t kWeightMax = 1000;
/// Factor by which a visit of high priority weighs more than one of normal priority.
constexpr std::uint32_t kHighPriority = 10;

struct ServiceMetrics {
  explicit ServiceMetrics(MetricRegistry& registry)
      : created(registry.counter("fjord_visitor_created_total", "Visitors created.")),
        expired(registry.counter("fjord_visitor_expired_total", "Visitors destroyed because their client was silent.")),
        running(registry.gauge("fjord_visitor_running", "Visitors that have begun.")),
        queued(registry.gauge("fjord_visitor_queued", "Visitors that have not begun, as there are too many.")),
        waited{&registry.histogram("fjord_visitor_wait_seconds", "From the creation of visitors to their beginning.",
                                   {{"class", "interactive"}}),
               &registry.histogram("fjord_visitor_wait_seconds", "From the creation of visitors to their beginning.",
                                   {{"class", "background"}})},
        refused(registry.counter("fjord_visitor_refused_total", "Visitors refused with BUSY: too many were waiting.")),
        events_resent(registry.counter("fjord_visitor_events_resent_total", "Events given to a client again.")) {}

  Counter& created;
  Counter& expired;
  Gauge& running;
  Gauge& queued;
  std::array<Histogram*, kClasses> waited;
  Counter& refused;
  Counter& events_resent;
};

}  // namespace

/// Confined to `executor_`, except for posting from handle().
class VisitorService::Impl {
 public:
  Impl(const VisitorServiceOptions& options, Runtime& runtime, spi::BucketAccess& access,
       const rpc::SnapshotHolder& snapshot, const VisitorRegistry& registry)
      : options_(options),
        runtime_(runtime),
        access_(access),
        snapshot_(snapshot),
        registry_(registry),
        metrics_(runtime.metrics),
        read_metrics_(runtime.metrics),
        visitors_max_(runtime.tunables.declare("storage.visitors_max",
                                               std::max<std::int64_t>(1, (5 * std::int64_t{options.cpus} + 1) / 2))),
        queued_max_(runtime.tunables.declare("storage.visitors_queued_max")),
        executor_(runtime.scheduler.make_executor("visitors")),
        mailbox_(*executor_),
        changes_(access, snapshot, runtime.clock, mailbox_) {
    Scheduler& scheduler = runtime.scheduler;
    classes_[0].pool = pool("visit", [&scheduler](auto& name) { return scheduler.make_interactive_executor(name); });
    classes_[1].pool = pool("visitor", [&scheduler](auto& name) { return scheduler.make_background_executor(name); });
  }

  ~Impl() {
    mailbox_.close();
    end_executor(executor_);
    for (auto& [id, record] : records_) record.visitor->cancel();
    for (auto& [id, run] : runs_) {
      run.mailbox.close();
      end_executor(run.executor);
    }
    ended_.clear();
  }

  void post(Task task) { mailbox_.post(std::move(task)); }
  void create(const rpc::CreateVisitor& request, rpc::Responder respond);
  void next(const rpc::VisitorNext& request, rpc::Responder respond);
  void read_changes(rpc::ReadChanges request, rpc::Responder respond) {
    changes_.read(std::move(request), std::move(respond));
  }
  void destroy(std::uint64_t id) {
    if (const auto it = records_.find(id); it != records_.end()) remove(it);
  }

 private:
  /// A visitor that has begun. Stays until the visitor has ended, also after its record was removed.
  struct Run {
    std::unique_ptr<Executor> executor;
    Mailbox mailbox;
    std::uint64_t visitor_id = 0;
    std::uint64_t group = 0;
    std::size_t in_class = 0;
  };
  /// The visitors of one visit or job with one priority.
  struct Group {
    std::uint32_t weight = kWeightDefault;
    std::size_t rank = 0;
    std::size_t running = 0;
    std::deque<std::uint64_t> queue;  ///< Ids of visitors that have not begun.
  };
  /// Visitors that share a pool of threads.
  struct Class {
    std::unique_ptr<TurnPool> pool;
    std::size_t running = 0;
    std::map<std::uint64_t, Group> groups;  ///< Groups that have a visitor, by id.
  };
  struct Waiter {
    rpc::Responder respond;
    std::uint32_t max_bytes = 0;
    std::uint64_t number = 0;
  };
  struct Record {
    std::shared_ptr<ServerVisitor> visitor;
    std::size_t in_class = 0;
    std::uint64_t group = 0;
    std::uint64_t run = 0;  ///< 0 while queued and after the visitor finished.
    MonotonicTime created;
    bool finished = false;
    std::uint64_t next_sequence = 1;
    std::uint64_t sent = 0;                ///< Highest sequence number sent to the client.
    std::deque<rpc::VisitorEvent> events;  ///< Events that the client has not acknowledged yet.
    std::optional<Waiter> waiter;
    MonotonicTime last_call;
    Duration idle_max{0};
  };
  using Records = std::map<std::uint64_t, Record>;

  Result<ReadPlan> plan(const rpc::CreateVisitor& request, const rpc::ClusterSnapshot& snapshot) const;
  Status check(const rpc::CreateVisitor& request, const rpc::ClusterSnapshot* snapshot) const;
  Status check_room(rpc::Priority priority) const;
  std::unique_ptr<TurnPool> pool(const char* name, TurnPool::MakeExecutor make) const {
    return std::make_unique<TurnPool>(name, runtime_.clock, runtime_.scheduler, std::move(make), visitors_max());
  }
  std::size_t visitors_max() const { return static_cast<std::size_t>(visitors_max_.value()); }
  void enqueue(std::uint64_t id, const rpc::CreateVisitor& request);
  void start_queued();
  /// Returns the group whose next visitor may begin, or end() if there is none.
  std::map<std::uint64_t, Group>::iterator next_group(Class& of) const;
  void start(std::size_t in_class, std::uint64_t group_id, Group& group);
  void on_events(std::uint64_t id, std::vector<rpc::VisitorEvent> events);
  void on_finished(std::uint64_t run_id);
  void forget_if_empty(std::size_t in_class, std::uint64_t group);
  void acknowledge(Record& record, std::uint64_t sequence);
  void answer(Record& record, rpc::Responder& respond, std::uint32_t max_bytes);
  void answer_waiter(Record& record);
  void remove(Records::iterator it);
  void sweep_later();
  void sweep();

  VisitorServiceOptions options_;
  Runtime& runtime_;
  spi::BucketAccess& access_;
  const rpc::SnapshotHolder& snapshot_;
  const VisitorRegistry& registry_;
  ServiceMetrics metrics_;
  ReadMetrics read_metrics_;
  Tunable& visitors_max_;
  Tunable& queued_max_;

  std::array<Class, kClasses> classes_;
  Records records_;
  std::map<std::uint64_t, Run> runs_;
  std::uint64_t next_run_ = 1;
  std::vector<std::unique_ptr<Executor>> ended_;  ///< Executors of visitors whose last task may still run.
  std::size_t queued_ = 0;
  std::uint64_t next_waiter_ = 1;
  bool sweeping_ = false;
  std::unique_ptr<Executor> executor_;
  Mailbox mailbox_;
  ChangeReader changes_;
};

Status VisitorService::Impl::check(const rpc::CreateVisitor& request, const rpc::ClusterSnapshot* snapshot) const {
  if (snapshot == nullptr) return Status(StatusCode::NotReady, "this node has no cluster state yet");
  if (snapshot->schema_version() < request.schema_version) {
    return Status(StatusCode::NotReady, "this node has schema version " + std::to_string(snapshot->schema_version()) +
                                            ", the visit needs " + std::to_string(request.schema_version));
  }
  if (request.buckets.empty()) return Status(StatusCode::InvalidArgument, "a visitor without buckets");
  for (const BucketId bucket : request.buckets) {
    if (!bucket.is_valid()) return Status(StatusCode::InvalidArgument, "not a bucket id: " + bucket.to_string());
  }
  return Status::ok();
}

Status VisitorService::Impl::check_room(rpc::Priority priority) const {
  const auto all = static_cast<std::size_t>(queued_max_.value());
  const std::size_t mine = std::max<std::size_t>(1, all * kQueueShares[rank_of(priority)] / 100);
  if (queued_ < mine) return Status::ok();
  return {StatusCode::Busy, std::to_string(queued_) + " visitors wait on this node; those of this priority may be " +
                                std::to_string(mine) + " (storage.visitors_queued_max)"};
}

Result<ReadPlan> VisitorService::Impl::plan(const rpc::CreateVisitor& request,
                                            const rpc::ClusterSnapshot& snapshot) const {
  ReadPlan plan;
  plan.buckets = request.buckets;
  plan.refuses_damaged = request.refuses_damaged;
  plan.even_damaged = request.even_damaged;
  plan.iterate.types = snapshot.types();
  if (!request.selection.empty()) {
    FJORD_TRY_ASSIGN(Selection selection, Selection::parse(request.selection, *snapshot.types()));
    if (selection.needs_now()) {  // The time is fixed once for all buckets of the visitor.
      selection = selection.with_now(runtime_.clock.wall_now().us / 1'000'000);
    }
    plan.iterate.selection = std::make_shared<const Selection>(std::move(selection));
  }
  if (!request.field_set.empty()) {
    FJORD_TRY_ASSIGN(FieldSet fields, FieldSet::parse(*snapshot.types(), request.field_set));
    plan.iterate.parts = parts_for(fields);
    if (fields.kind() != FieldSet::Kind::All) plan.fields = std::make_shared<const FieldSet>(std::move(fields));
  }
  if (request.header_only) plan.iterate.parts = spi::Parts::HeaderOnly;
  if (request.ids_only) plan.iterate.parts = spi::Parts::IdOnly;
  plan.docblock_bytes =
      request.docblock_bytes == 0 ? options_.docblock_bytes : std::min(request.docblock_bytes, options_.docblock_bytes);
  plan.iterate.from = Timestamp{request.from_us};
  if (request.to_us != 0) plan.iterate.to = Timestamp{request.to_us};
  plan.iterate.include_removed = request.include_removed;
  plan.iterate.snapshot = request.snapshot;
  if (request.last_position != 0) plan.positions = {request.first_position, request.last_position};
  plan.buckets_at_once = std::clamp(request.buckets_at_once, 1u, 64u);
  plan.docblocks_pending = std::max(1u, options_.docblocks_pending);
  return plan;
}

void VisitorService::Impl::create(const rpc::CreateVisitor& request, rpc::Responder respond) {
  if (const auto it = records_.find(request.visitor_id); it != records_.end()) {
    it->second.last_call = runtime_.clock.now();
    respond(rpc::CreateVisitorReply{});
    return;
  }
  if (Status room = check_room(request.priority); !room) {
    metrics_.refused.add();
    respond(rpc::CreateVisitorReply{.status = std::move(room)});
    return;
  }
  const auto make = [&]() -> Result<std::shared_ptr<ServerVisitor>> {
    const auto snapshot = snapshot_.get();
    FJORD_TRY(check(request, snapshot.get()));
    const VisitorFactory* factory = registry_.find(request.library);
    if (factory == nullptr) {
      std::string known;
      for (const std::string& name : registry_.names()) known += (known.empty() ? "" : ", ") + name;
      return Status(StatusCode::InvalidArgument, "no visitor \"" + request.library + "\"; there are: " + known);
    }
    FJORD_TRY_ASSIGN(ReadPlan read_plan, plan(request, *snapshot));
    auto visitor = std::make_shared<ServerVisitor>(runtime_.clock, access_, read_metrics_, std::move(read_plan));
    FJORD_TRY(visitor->make_visitor(*factory, request.parameters));
    return visitor;
  };
  auto made = make();
  if (made) {
    Record& record = records_[request.visitor_id];
    record.visitor = std::move(*made);
    record.created = record.last_call = runtime_.clock.now();
    record.idle_max = std::min(options_.idle_max, record.visitor->idle_max().value_or(options_.idle_max));
    enqueue(request.visitor_id, request);
    metrics_.created.add();
    start_queued();
    sweep_later();
  }
  respond(rpc::CreateVisitorReply{.status = made.status()});
}

void VisitorService::Impl::enqueue(std::uint64_t id, const rpc::CreateVisitor& request) {
  const std::size_t rank = rank_of(request.priority);
  const std::uint32_t weight = request.weight == 0 ? kWeightDefault : std::min(request.weight, kWeightMax);
  Record& record = records_.at(id);
  record.in_class = class_of(request.priority);
  record.group = mix64(request.group, rank);
  Group& group = classes_[record.in_class].groups[record.group];
  group.rank = rank;
  group.weight = rank == 0 ? kHighPriority * weight : weight;
  group.queue.push_back(id);
  ++queued_;
}

/// Visitors that have begun hold memory, so their number is limited to about the setting. Each group may have its share
/// of it at once, and other groups may take what is left. So a late group need not wait for the visitors of others to
/// end.
std::map<std::uint64_t, VisitorService::Impl::Group>::iterator VisitorService::Impl::next_group(Class& of) const {
  std::uint64_t weights = 0;
  for (const auto& [id, group] : of.groups) weights += group.weight;
  auto best = of.groups.end();
  const auto comes_before = [this](const Group& a, const Group& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    const std::uint64_t left = a.running * b.weight, right = b.running * a.weight;
    if (left != right) return left < right;
    return records_.at(a.queue.front()).created < records_.at(b.queue.front()).created;
  };
  for (auto it = of.groups.begin(); it != of.groups.end(); ++it) {
    const Group& group = it->second;
    const std::uint64_t part = (visitors_max() * group.weight + weights - 1) / weights;
    const bool may_begin = !group.queue.empty() && (of.running < visitors_max() || group.running < part);
    if (may_begin && (best == of.groups.end() || comes_before(group, best->second))) best = it;
  }
  return best;
}

void VisitorService::Impl::start_queued() {
  std::size_t running = 0;
  for (std::size_t in_class = 0; in_class < kClasses; ++in_class) {
    Class& of = classes_[in_class];
    of.pool->set_threads(visitors_max());
    for (auto next = next_group(of); next != of.groups.end(); next = next_group(of)) {
      start(in_class, next->first, next->second);
    }
    running += of.running;
  }
  metrics_.running.set(static_cast<double>(running));
  metrics_.queued.set(static_cast<double>(queued_));
}

void VisitorService::Impl::start(std::size_t in_class, std::uint64_t group_id, Group& group) {
  Class& of = classes_[in_class];
  const std::uint64_t id = group.queue.front();
  group.queue.pop_front();
  --queued_;
  ++group.running;
  ++of.running;
  Record& record = records_.at(id);
  record.run = next_run_++;
  metrics_.waited[in_class]->observe(runtime_.clock.now() - record.created);
  Run& run = runs_[record.run];
  run.executor = of.pool->make_executor({group_id, group.weight});
  run.mailbox = Mailbox(*run.executor);
  run.visitor_id = id;
  run.group = group_id;
  run.in_class = in_class;
  VisitorOutput output;
  output.on_events = [this, id, mailbox = mailbox_](std::vector<rpc::VisitorEvent> events) {
    mailbox.post([this, id, shared = std::make_shared<std::vector<rpc::VisitorEvent>>(std::move(events))] {
      on_events(id, std::move(*shared));
    });
  };
  output.on_finished = [this, run_id = record.run, mailbox = mailbox_] {
    mailbox.post([this, run_id] { on_finished(run_id); });
  };
  record.visitor->assign(run.mailbox, std::move(output));
  run.mailbox.post([visitor = record.visitor] { visitor->start(); });
}

void VisitorService::Impl::on_events(std::uint64_t id, std::vector<rpc::VisitorEvent> events) {
  const auto it = records_.find(id);
  if (it == records_.end()) return;
  for (rpc::VisitorEvent& event : events) {
    event.sequence = it->second.next_sequence++;
    it->second.events.push_back(std::move(event));
  }
  answer_waiter(it->second);
}

void VisitorService::Impl::on_finished(std::uint64_t run_id) {
  auto node = runs_.extract(run_id);
  Run& run = node.mapped();
  run.mailbox.close();
  ended_.push_back(std::move(run.executor));
  if (ended_.size() == 1) {
    // The last task of an executor may not have returned yet, and this executor must not wait for it.
    executor_->post_after(kSweepInterval, [this] { ended_.clear(); });
  }
  --classes_[run.in_class].running;
  --classes_[run.in_class].groups.at(run.group).running;
  forget_if_empty(run.in_class, run.group);
  const auto it = records_.find(run.visitor_id);
  if (it != records_.end() && it->second.run == run_id) {
    it->second.finished = true;
    it->second.run = 0;
    answer_waiter(it->second);
  }
  start_queued();
}

void VisitorService::Impl::forget_if_empty(std::size_t in_class, std::uint64_t group) {
  auto& groups = classes_[in_class].groups;
  const auto it = groups.find(group);
  if (it != groups.end() && it->second.running == 0 && it->second.queue.empty()) groups.erase(it);
}

void VisitorService::Impl::next(const rpc::VisitorNext& request, rpc::Responder respond) {
  const auto it = records_.find(request.visitor_id);
  if (it == records_.end()) {
    respond(not_found("no such visitor on this node"));
    return;
  }
  Record& record = it->second;
  record.last_call = runtime_.clock.now();
  acknowledge(record, request.acknowledged);
  answer_waiter(record);  // Ends an older call of the same client, which no longer waits for its answer.
  const Duration wait = std::min(Duration(request.wait_us), options_.poll_wait_max);
  if (!record.events.empty() || record.finished || wait <= Duration(0)) {
    answer(record, respond, request.max_bytes);
    return;
  }
  const std::uint64_t number = next_waiter_++;
  record.waiter = Waiter{std::move(respond), request.max_bytes, number};
  executor_->post_after(wait, [this, id = request.visitor_id, number] {
    const auto found = records_.find(id);
    if (found == records_.end() || !found->second.waiter || found->second.waiter->number != number) return;
    found->second.last_call = runtime_.clock.now();
    answer_waiter(found->second);
  });
}

void VisitorService::Impl::acknowledge(Record& record, std::uint64_t sequence) {
  unsigned docblocks = 0;
  while (!record.events.empty() && record.events.front().sequence <= sequence) {
    if (!record.events.front().docblock.empty()) ++docblocks;
    record.events.pop_front();
  }
  if (docblocks == 0 || record.run == 0) return;
  runs_.at(record.run).mailbox.post([visitor = record.visitor, docblocks] { visitor->on_acknowledged(docblocks); });
}

void VisitorService::Impl::answer(Record& record, rpc::Responder& respond, std::uint32_t max_bytes) {
  const std::size_t limit = max_bytes == 0 ? options_.reply_bytes_max : std::min(max_bytes, options_.reply_bytes_max);
  rpc::VisitorNextReply reply;
  std::size_t bytes = 0;
  for (const rpc::VisitorEvent& event : record.events) {
    bytes += event.docblock.size() + event.result.size();
    if (!reply.events.empty() && bytes > limit) break;
    if (event.sequence <= record.sent) metrics_.events_resent.add();
    record.sent = std::max(record.sent, event.sequence);
    reply.events.push_back(event);
  }
  reply.finished = record.finished && reply.events.size() == record.events.size();
  reply.processor_us = record.visitor->processor_us();
  reply.documents_open = record.visitor->documents_open();
  respond(std::move(reply));
}

void VisitorService::Impl::answer_waiter(Record& record) {
  if (!record.waiter) return;
  Waiter waiter = std::move(*record.waiter);
  record.waiter.reset();
  answer(record, waiter.respond, waiter.max_bytes);
}

void VisitorService::Impl::remove(Records::iterator it) {
  Record& record = it->second;
  record.visitor->cancel();
  if (record.run != 0) {
    runs_.at(record.run).mailbox.post([visitor = record.visitor] { visitor->stop(); });
  } else if (!record.finished) {
    std::erase(classes_[record.in_class].groups.at(record.group).queue, it->first);
    --queued_;
    forget_if_empty(record.in_class, record.group);
  }
  if (record.waiter) {
    record.waiter->respond(not_found("the visitor was destroyed"));
  }
  records_.erase(it);
  start_queued();
}

void VisitorService::Impl::sweep_later() {
  if (sweeping_ || records_.empty()) return;
  sweeping_ = true;
  executor_->post_after(kSweepInterval, [this] { sweep(); });
}

void VisitorService::Impl::sweep() {
  sweeping_ = false;
  const MonotonicTime now = runtime_.clock.now();
  for (auto it = records_.begin(); it != records_.end();) {
    const auto current = it++;
    if (current->second.waiter || now - current->second.last_call < current->second.idle_max) continue;
    metrics_.expired.add();
    remove(current);
  }
  sweep_later();
}

VisitorService::VisitorService(const VisitorServiceOptions& options, Runtime& runtime, spi::BucketAccess& access,
                               const rpc::SnapshotHolder& snapshot, const VisitorRegistry& registry)
    : impl_(std::make_unique<Impl>(options, runtime, access, snapshot, registry)) {}

VisitorService::~VisitorService() = default;

bool VisitorService::handle(rpc::Request& request, rpc::Responder& respond) {
  Impl* impl = impl_.get();
  if (auto* create = std::get_if<rpc::CreateVisitor>(&request)) {
    impl->post([impl, taken = std::move(*create), answer = std::move(respond)]() mutable {
      impl->create(taken, std::move(answer));
    });
  } else if (auto* next = std::get_if<rpc::VisitorNext>(&request)) {
    impl->post([impl, taken = *next, answer = std::move(respond)]() mutable { impl->next(taken, std::move(answer)); });
  } else if (auto* destroy = std::get_if<rpc::DestroyVisitor>(&request)) {
    impl->post([impl, id = destroy->visitor_id, answer = std::move(respond)]() mutable {
      impl->destroy(id);
      answer(rpc::DestroyVisitorReply{});
    });
  } else if (auto* changes = std::get_if<rpc::ReadChanges>(&request)) {
    impl->post([impl, taken = std::move(*changes), answer = std::move(respond)]() mutable {
      impl->read_changes(std::move(taken), std::move(answer));
    });
  } else {
    return false;
  }
  return true;
}

}  // namespace fjord::visitors
