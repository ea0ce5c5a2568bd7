#include "fjord/storage/storage_node.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "fjord/cluster/feature.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "fjord/common/run_inline.h"
#include "fjord/rpc/short_work.h"
#include "folder_guard.h"
#include "folder_identity.h"
#include "foreground_cpus.h"
#include "maintenance_budget.h"
#include "poll_answers.h"
#include "space_monitor.h"
#include "stripe.h"
#include "utilisation_meter.h"

namespace fjord::storage {
namespace {

// Number of buckets that a stripe reports, or whose replica sets it stores, before other tasks come in between.
constexpr std::size_t kBucketsInOneTurn = 128;

/// Collects the results of all stripes in one reply; the last stripe to finish sends it. Each stripe writes to its own
/// places in the reply, so only the counter is shared between threads.
template <typename ReplyType>
struct Join {
  Join(std::size_t parts, rpc::Responder responder) : left(parts), respond(std::move(responder)) {}
  void done() {
    if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) respond(std::move(reply));
  }
  std::atomic<std::size_t> left;
  ReplyType reply;
  rpc::Responder respond;
};

}  // namespace

StorageNode::StorageNode(const StorageNodeOptions& options, Runtime& runtime, rpc::Transport& transport)
    : options_(options),
      runtime_(runtime),
      transport_(transport),
      clock_(runtime.clock),
      incarnation_(runtime.random.next() | 1),
      began_at_(runtime.clock.now()),
      damaged_buckets_(runtime.metrics.gauge("fjord_storage_damaged_buckets",
                                             "Buckets that have lost something and wait for an intact replica")),
      fault_gauge_(runtime.metrics.gauge("fjord_storage_fault",
                                         "1 while the files of the node are gone, or writes or background work fail")),
      name_(NodeId::storage(options.index).to_string()),
      settings_(runtime.tunables, options.settings_from_file),
      budget_(std::make_unique<MaintenanceBudget>(runtime)),
      foreground_cpus_(std::make_unique<ForegroundCpus>(runtime)),
      utilisation_(std::make_unique<UtilisationMeter>(runtime.clock.now(), options_.stripes, options_.machine_load)) {}

StorageNode::~StorageNode() {
  if (polls_ != nullptr) polls_->close();
}

Result<std::unique_ptr<StorageNode>> StorageNode::open(const StorageNodeOptions& options, Runtime& runtime,
                                                       rpc::Transport& transport, const ProviderFactory& providers) {
  FJORD_TRY_ASSIGN(std::unique_ptr<StorageNode> node, make(options, runtime, transport));
  FJORD_TRY(node->open_stripes(providers));
  return node;
}

Result<std::unique_ptr<StorageNode>> StorageNode::make(const StorageNodeOptions& options, Runtime& runtime,
                                                       rpc::Transport& transport) {
  if (options.stripes == 0 || (options.stripes & (options.stripes - 1)) != 0) {
    return Status(StatusCode::InvalidArgument,
                  "storage.stripes is " + std::to_string(options.stripes) + ", which is not a power of two");
  }
  std::unique_ptr<StorageNode> node(new StorageNode(options, runtime, transport));
  node->polls_ = std::make_unique<PollAnswers>(
      node->name_, options.stripes, runtime,
      PollAnswers::Hooks{[&node = *node](std::size_t stripe) { node.report_for_polls(stripe); },
                         [&node = *node](rpc::PollReply& reply, bool wants) { node.fill_in(reply, wants); }});
  if (!options.files.empty()) {
    // The incarnation is random, so the number of a new folder is as well.
    const std::uint64_t drawn = mix64(node->incarnation_, 0x666f6c646572) | 1;
    FJORD_TRY_ASSIGN(FolderIdentity identity, open_folder(runtime.env, options.files, node->name_, drawn));
    log::info("storage", "{}: {} is {}", node->name_, options.files, to_string(identity));
    FolderSession session{
        .boot = options.boot, .incarnation = node->incarnation_, .syncs = options.durability == spi::Durability::Sync};
    if (options.folder_stamp) {
      FJORD_TRY_ASSIGN(session.stamp, options.folder_stamp());
    }
    FJORD_TRY_ASSIGN(node->kept_from_, begin_session(runtime.env, options.files, identity, session));
    node->folder_ = std::make_unique<FolderGuard>(
        options.files, std::move(identity), options.folder_stamp, runtime,
        [&node = *node](const Status& why) { node.fail(why); },
        [&node = *node](const Status& probed) { node.note_probe(probed); });
  }
  return node;
}

Status StorageNode::open_stripes(const ProviderFactory& providers) {
  for (unsigned i = 0; i < options_.stripes; ++i) {
    FJORD_TRY_ASSIGN(std::unique_ptr<spi::PersistenceProvider> provider, providers(i, options_.stripes));
    stripes_.push_back(
        std::make_unique<Stripe>(options_, runtime_, transport_, snapshots_, *budget_, std::move(provider), i));
    ++stripes_open_;
  }
  end_period_later();
  space_monitor_ = std::make_unique<SpaceMonitor>(options_.directory, name_, runtime_,
                                                  [this](const SpaceState& space) { set_space(space); });
  is_open_ = true;
  std::lock_guard lock(mutex_);
  if (!failure_) fail_stripes(failure_);  // The folder was lost while it was being opened.
  return Status::ok();
}

void StorageNode::set_space(const SpaceState& space) {
  {
    std::lock_guard lock(mutex_);
    space_stage_ = static_cast<std::uint32_t>(space.stage);
    space_ = space.stage == SpaceStage::Normal ? std::string() : space.reason;
  }
  SpaceState of_stripe = space;
  of_stripe.budget_bytes /= stripes_.size();
  of_stripe.last_bytes /= stripes_.size();
  for (const auto& stripe : stripes_) {
    stripe->executor().post([&stripe = *stripe, of_stripe] { stripe.space().set(of_stripe); });
  }
}

void StorageNode::fail(const Status& why) {
  log::error("storage", "{}: {}", name_, why.message());
  {
    std::lock_guard lock(mutex_);
    failure_ = why;
    fault_gauge_.set(1);
  }
  if (is_open_) fail_stripes(why);
}

void StorageNode::fail_stripes(const Status& why) {
  for (const auto& stripe : stripes_) {
    stripe->executor().post([&stripe = *stripe, why] { stripe.fail(why); });
  }
}

void StorageNode::note_probe(const Status& probed) {
  std::lock_guard lock(mutex_);
  if (!probed && probe_) log::error("storage", "{}: {}", name_, probed.to_string());
  probe_ = probed;
}

StorageNodeHealth StorageNode::health() const {
  StorageNodeHealth health;
  if (const auto snapshot = snapshots_.get(); snapshot != nullptr && snapshot->state_version() != 0) {
    health.state_version = snapshot->state_version();
    health.config_version = snapshot->config_version();
    health.state = std::string(to_string(snapshot->state().node(NodeId::storage(options_.index)).state));
  }
  health.damaged_buckets = damaged_;
  health.buckets = polls_->buckets();
  health.is_starting = !is_open_;
  health.is_stopping = stop_.is_announced();
  std::lock_guard lock(mutex_);
  health.misnamed = misnamed_.empty() ? foreign_ : misnamed_;
  health.is_failed = !failure_;
  health.fault = failure_ ? fault_ : failure_.message();
  health.space_stage = space_stage_;
  health.space = space_;
  return health;
}

void StorageNode::end_period_later() {
  static_assert(YieldingRate::kPeriod == ForegroundCpus::kPeriod);
  stripes_.front()->executor().post_after(YieldingRate::kPeriod, [this] {
    foreground_cpus_->end_period(clock_.now());
    utilisation_->end_period(clock_.now());
    budget_->end_period(foreground_cpus_->users_come());
    end_period_later();
  });
}

std::uint64_t StorageNode::state_version() const {
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = snapshots_.get();
  return snapshot == nullptr ? 0 : snapshot->state_version();
}

void StorageNode::on_stripe(BucketId bucket, UniqueFunction<void(spi::PersistenceProvider&)> task) {
  Stripe& stripe = *stripes_[stripe_of(bucket)];
  stripe.executor().post([&stripe, task = std::move(task)] { task(stripe.provider()); });
}

void StorageNode::count_searches(std::span<const spi::SearchLoad> loads) {
  for (const spi::SearchLoad& load : loads) stripes_[stripe_of(load.bucket)]->count_search(load);
}

void StorageNode::handle_while_starting(rpc::Request& request, rpc::Responder& respond) {
  if (const auto* asked = std::get_if<rpc::Poll>(&request)) {
    respond(poll_while_starting(*asked));
  } else {
    respond(rpc::error_reply(request, {StatusCode::NotReady, name_ + " is starting: it opens its files"}));
  }
}

bool StorageNode::handle(rpc::Request& request, rpc::Responder& respond) {
  if (!is_open_) {
    handle_while_starting(request, respond);
    return true;
  }
  if (auto* batch = std::get_if<rpc::Apply>(&request)) {
    apply(std::move(*batch), std::move(respond));
  } else if (auto* info = std::get_if<rpc::GetBucketInfo>(&request)) {
    get_bucket_info(std::move(*info), std::move(respond));
  } else if (auto* sets = std::get_if<rpc::SetReplicaSets>(&request)) {
    set_replica_sets(std::move(*sets), std::move(respond));
  } else if (auto* deletes = std::get_if<rpc::DeleteBuckets>(&request)) {
    delete_buckets(std::move(*deletes), std::move(respond));
  } else if (auto* asked = std::get_if<rpc::Poll>(&request)) {
    poll(std::move(*asked), std::move(respond));
  } else if (const auto* known = std::get_if<rpc::GetClusterInfo>(&request); known != nullptr && known->everything) {
    respond(cluster_info());
  } else if (std::holds_alternative<rpc::GetLoads>(request)) {
    get_loads(std::move(respond));
  } else if (auto* merge = std::get_if<rpc::MergeBucket>(&request)) {
    Stripe& stripe = *stripes_[stripe_of(merge->bucket)];
    stripe.executor().post([&stripe, r = std::move(*merge), respond = std::move(respond)]() mutable {
      stripe.merge(std::move(r), std::move(respond));
    });
  } else if (auto* split = std::get_if<rpc::SplitBucket>(&request)) {
    Stripe& stripe = *stripes_[stripe_of(split->bucket)];
    stripe.executor().post([&stripe, r = *split, respond = std::move(respond)] { respond(stripe.buckets().split(r)); });
  } else if (auto* join = std::get_if<rpc::JoinBuckets>(&request)) {
    Stripe& stripe = *stripes_[stripe_of(join->parent)];
    stripe.executor().post([&stripe, r = *join, respond = std::move(respond)] { respond(stripe.buckets().join(r)); });
  } else if (auto* garbage = std::get_if<rpc::FindGarbage>(&request)) {
    Stripe& stripe = *stripes_[stripe_of(garbage->bucket)];
    stripe.executor().post([&stripe, r = *garbage, respond = std::move(respond)]() mutable {
      stripe.find_garbage(r, std::move(respond));
    });
  } else if (auto* list = std::get_if<rpc::ListEntries>(&request)) {
    Stripe& stripe = *stripes_[stripe_of(list->bucket)];
    stripe.executor().post([&stripe, r = std::move(*list), respond = std::move(respond)] {
      respond(stripe.merge_source().list_entries(r));
    });
  } else if (auto* fetch = std::get_if<rpc::FetchEntries>(&request)) {
    Stripe& stripe = *stripes_[stripe_of(fetch->bucket)];
    stripe.executor().post([&stripe, r = std::move(*fetch), respond = std::move(respond)] {
      respond(stripe.merge_source().fetch_entries(r));
    });
  } else {
    return false;
  }
  return true;
}

void StorageNode::apply(rpc::Apply request, rpc::Responder respond) {
  foreground_cpus_->note(request.operations.size() -
                         std::min<std::size_t>(request.in_background, request.operations.size()));
  std::vector<std::vector<std::uint32_t>> parts(stripes_.size());
  for (std::uint32_t i = 0; i < request.operations.size(); ++i) {
    parts[stripe_of(request.operations[i].bucket)].push_back(i);
  }
  std::size_t used = 0;
  for (const auto& part : parts) used += part.empty() ? 0 : 1;
  auto join = std::make_shared<Join<rpc::ApplyReply>>(std::max<std::size_t>(used, 1), std::move(respond));
  join->reply.results.resize(request.operations.size());
  join->reply.state_version = state_version();
  join->reply.utilisation_permille = utilisation_->permille();
  if (used == 0) {
    join->done();
    return;
  }
  const bool is_short = rpc::is_short(request);
  auto shared = std::make_shared<const rpc::Apply>(std::move(request));
  const MonotonicTime arrived = clock_.now();
  for (std::size_t s = 0; s < parts.size(); ++s) {
    if (parts[s].empty()) continue;
    Executor& executor = stripes_[s]->executor();
    Task task = [this, &stripe = *stripes_[s], join, shared, arrived, indexes = std::move(parts[s])]() mutable {
      const MonotonicTime begun = clock_.now();
      if (shared->timeout_us > 0 && begun - arrived > Duration(shared->timeout_us)) {
        refuse_late_gets(*shared, indexes, join->reply.results);
      }
      stripe.operations().apply(*shared, arrived, indexes, join->reply.results);
      utilisation_->add(clock_.now() - begun);
      join->done();
    };
    if (is_short) {
      run_or_post(executor, std::move(task));
    } else {
      executor.post(std::move(task));
    }
  }
}

/// Refuses the gets of a batch that waited longer than its time limit. Late writes are applied nevertheless, because
/// another replica may have applied them.
void StorageNode::refuse_late_gets(const rpc::Apply& request, std::vector<std::uint32_t>& indexes,
                                   std::vector<rpc::OperationResult>& results) const {
  std::erase_if(indexes, [&](std::uint32_t i) {
    if (request.operations[i].kind != rpc::OperationKind::Get) return false;
    results[i].status = Status(StatusCode::Busy, "the stripe came to it after its deadline");
    return true;
  });
}

/// The answers of all stripes to one question. Each stripe writes to its own part.
struct StorageNode::InfoQuestion {
  struct Part {
    rpc::GetBucketInfo request;  ///< With the buckets of this stripe only.
    std::vector<BucketId> buckets;
    std::size_t done = 0;  ///< Number of `buckets` that are reported.
    std::vector<rpc::BucketReport> reports;
    Status status;
  };
  InfoQuestion(std::size_t stripes, rpc::Responder responder)
      : parts(stripes), left(stripes), respond(std::move(responder)) {}

  std::vector<Part> parts;
  SpaceState space;  ///< The state of the disk as the first stripe knows it.
  std::atomic<std::size_t> left;
  rpc::Responder respond;
};

void StorageNode::get_bucket_info(rpc::GetBucketInfo request, rpc::Responder respond) {
  auto question = std::make_shared<InfoQuestion>(stripes_.size(), std::move(respond));
  std::vector<std::vector<BucketId>> asked(stripes_.size());
  for (const BucketId bucket : std::exchange(request.buckets, {})) asked[stripe_of(bucket)].push_back(bucket);
  for (std::size_t s = 0; s < stripes_.size(); ++s) {
    question->parts[s].request = request;
    question->parts[s].request.buckets = std::move(asked[s]);
    stripes_[s]->executor().post([this, s, question] {
      InfoQuestion::Part& part = question->parts[s];
      Result<std::vector<BucketId>> buckets = stripes_[s]->buckets().asked_buckets(part.request);
      if (s == 0) question->space = stripes_[s]->space().state();
      if (buckets) part.buckets = std::move(*buckets);
      part.status = buckets ? Status::ok() : buckets.error();
      report_next(s, question);
    });
  }
}

/// Reports the next buckets of a stripe. Polls and operations that wait for the stripe come in between.
void StorageNode::report_next(std::size_t s, const std::shared_ptr<InfoQuestion>& question) {
  InfoQuestion::Part& part = question->parts[s];
  const std::size_t count = std::min(part.buckets.size() - part.done, kBucketsInOneTurn);
  if (part.status) {
    part.status =
        stripes_[s]->buckets().report(part.request, std::span(part.buckets).subspan(part.done, count), part.reports);
  }
  part.done += count;
  if (part.status && part.done < part.buckets.size()) {
    stripes_[s]->executor().post([this, s, question] { report_next(s, question); });
    return;
  }
  if (part.status) stripes_[s]->buckets().end_reports(part.request);
  if (question->left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  rpc::GetBucketInfoReply reply;
  reply.state_version = state_version();
  reply.can_forget = true;
  for (InfoQuestion::Part& one : question->parts) {
    if (!one.status) reply.status = one.status;
    reply.reports.insert(reply.reports.end(), std::make_move_iterator(one.reports.begin()),
                         std::make_move_iterator(one.reports.end()));
  }
  if (!reply.status) reply.reports.clear();
  reply.space_stage = static_cast<std::uint16_t>(static_cast<unsigned>(question->space.stage) + 1);
  reply.space_reason = std::move(question->space.reason);
  question->respond(std::move(reply));
}

void StorageNode::get_loads(rpc::Responder respond) {
  struct Collected {
    explicit Collected(std::size_t stripes) : loads(stripes), left(stripes) {}
    std::vector<std::vector<rpc::BucketLoad>> loads;
    std::atomic<std::size_t> left;
  };
  auto collected = std::make_shared<Collected>(stripes_.size());
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  for (std::size_t s = 0; s < stripes_.size(); ++s) {
    stripes_[s]->executor().post([this, s, collected, answer] {
      collected->loads[s] = stripes_[s]->loads();
      if (collected->left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      rpc::GetLoadsReply reply;
      // The element behind the 2^bits buckets is the total.
      std::size_t buckets = collected->loads[0].size() - 1;
      for (const auto& part : collected->loads) {
        if (part.size() != buckets + 1) {
          reply.status = {StatusCode::Busy, "the number of distribution bits is just changing"};
        }
      }
      if (!reply.status) return (*answer)(std::move(reply));
      while ((std::size_t{1} << reply.bits) < buckets) ++reply.bits;
      for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
        rpc::BucketLoad sum{.bucket = bucket};
        for (const auto& part : collected->loads) add(sum, part[bucket]);
        if (!is_empty(sum)) reply.buckets.push_back(sum);
      }
      for (const auto& part : collected->loads) add(reply.total, part.back());
      reply.incarnation = incarnation_;
      reply.began_us = began_at_.us;
      reply.now_us = clock_.now().us;
      reply.state_version = state_version();
      (*answer)(std::move(reply));
    });
  }
}

/// The replica sets of one message, by stripes. Each stripe writes to its own places in the reply.
struct StorageNode::SetsMessage {
  SetsMessage(rpc::SetReplicaSets message, std::size_t stripes, rpc::Responder responder)
      : request(std::move(message)), parts(stripes), join(stripes, std::move(responder)) {}

  const rpc::SetReplicaSets request;
  std::vector<std::vector<std::uint32_t>> parts;  ///< Places in the request, by stripes.
  Join<rpc::SetReplicaSetsReply> join;
};

void StorageNode::set_replica_sets(rpc::SetReplicaSets request, rpc::Responder respond) {
  auto message = std::make_shared<SetsMessage>(std::move(request), stripes_.size(), std::move(respond));
  const std::vector<rpc::BucketReplicaSet>& sets = message->request.buckets;
  message->join.reply.statuses.resize(sets.size());
  message->join.reply.contents.resize(sets.size());
  message->join.reply.state_version = state_version();
  for (std::uint32_t i = 0; i < sets.size(); ++i) message->parts[stripe_of(sets[i].bucket)].push_back(i);
  for (std::size_t s = 0; s < stripes_.size(); ++s) {
    if (message->parts[s].empty()) {
      message->join.done();
    } else {
      stripes_[s]->executor().post([this, s, message] { set_next(s, 0, message); });
    }
  }
}

/// Stores the next replica sets of a stripe, from place `from` in its part on.
void StorageNode::set_next(std::size_t s, std::size_t from, const std::shared_ptr<SetsMessage>& message) {
  const std::vector<std::uint32_t>& part = message->parts[s];
  const std::size_t end = std::min(part.size(), from + kBucketsInOneTurn);
  LocalBuckets& buckets = stripes_[s]->buckets();
  for (; from < end; ++from) {
    const rpc::BucketReplicaSet& set = message->request.buckets[part[from]];
    message->join.reply.statuses[part[from]] = buckets.set_replica_set(message->request, set);
    message->join.reply.contents[part[from]] = buckets.content_of(set.bucket);
  }
  if (end == part.size()) {
    message->join.done();
  } else {
    stripes_[s]->executor().post([this, s, end, message] { set_next(s, end, message); });
  }
}

void StorageNode::delete_buckets(rpc::DeleteBuckets request, rpc::Responder respond) {
  auto join = std::make_shared<Join<rpc::DeleteBucketsReply>>(request.buckets.size() + 1, std::move(respond));
  join->reply.statuses.resize(request.buckets.size());
  join->reply.state_version = state_version();
  auto shared = std::make_shared<const rpc::DeleteBuckets>(std::move(request));
  for (std::size_t i = 0; i < shared->buckets.size(); ++i) {
    Stripe& stripe = *stripes_[stripe_of(shared->buckets[i])];
    stripe.executor().post([&stripe, join, shared, i] {
      join->reply.statuses[i] = stripe.buckets().delete_bucket(*shared, shared->buckets[i]);
      join->done();
    });
  }
  join->done();
}

rpc::GetClusterInfoReply StorageNode::cluster_info() const {
  rpc::GetClusterInfoReply reply;
  if (const auto received = received_.get()) {
    reply.info = received->info();
  } else {
    reply.status = {StatusCode::NotReady, name_ + " has heard of no cluster state yet"};
  }
  return reply;
}

Status StorageNode::apply_poll(const rpc::Poll& request) {
  std::lock_guard lock(mutex_);
  if (!request.node.empty() && request.node != name_) {
    std::string why = rpc::misnamed_text(name_, request.node);
    if (why != misnamed_) log::error("storage", "{}", why);
    misnamed_ = std::move(why);
    return {StatusCode::InvalidArgument, misnamed_};
  }
  misnamed_.clear();
  FJORD_TRY(failure_);
  if (folder_ != nullptr && request.info.cluster_id != 0) {
    const Status bound = folder_->bind(request.info.cluster_id);
    if (!bound && bound.message() != foreign_) log::error("storage", "{}", bound.message());
    foreign_ = bound.message();
    FJORD_TRY(bound);
  }
  if (request.heard_incarnation != incarnation_)
    version_before_ = std::max(version_before_, request.info.state_version);
  FJORD_TRY(received_.update(request.info).status());
  const std::shared_ptr<const rpc::ClusterSnapshot> received = received_.get();
  stop_.note_poll(request, incarnation_, received->storage_serves(options_.index), clock_.now());
  // A state that still counts an earlier process of this node as up does not show that the node has restarted. The node
  // may have lost writes that were not synced, so it serves nothing before the distributors know of the restart.
  const std::uint64_t up_since = received->state().node(NodeId::storage(options_.index)).up_since_version;
  if (state_version() == 0 && up_since != 0 && up_since <= version_before_) return Status::ok();
  return snapshots_.update(received->info()).status();
}

void StorageNode::add_versions(rpc::PollReply& reply, const rpc::ClusterSnapshot& received) {
  reply.node = name_;
  reply.features = known_features();
  reply.incarnation = incarnation_;
  reply.state_version = received.state_version();
  reply.schema_version = received.schema_version();
  reply.pending_version = received.pending_version();
  reply.term = received.term();
  reply.config_errors = settings_.apply(received.info());
  reply.config_version = received.config_version();
}

rpc::PollReply StorageNode::poll_while_starting(const rpc::Poll& request) {
  rpc::PollReply reply;
  reply.node = name_;
  reply.status = apply_poll(request);
  describe_folder(reply);
  const auto received = received_.get();
  if (!reply.status) {
    if (received != nullptr) reply.term = received->term();
    return reply;
  }
  stop_.stamp(reply, clock_.now());
  NodeStateInfo starting;
  starting.state = NodeState::Initializing;
  starting.init_progress = kListingProgressLimit * stripes_open_ / (options_.stripes + 1);
  reply.node_state = starting.to_string();
  add_versions(reply, *received);
  if (request.wants_settings) reply.settings = settings_.base();
  return reply;
}

void StorageNode::describe_folder(rpc::PollReply& reply) const {
  if (folder_ == nullptr) return;
  const FolderIdentity identity = folder_->identity();
  reply.folder_id = identity.folder;
  reply.folder_cluster = identity.cluster;
  reply.folder_adopted = identity.adopted;
  reply.kept_from = kept_from_;
}

void StorageNode::refuse_poll(Status why, rpc::Responder respond) const {
  rpc::PollReply reply;
  reply.status = std::move(why);
  reply.node = name_;
  describe_folder(reply);
  if (const auto received = received_.get()) reply.term = received->term();
  respond(std::move(reply));
}

void StorageNode::poll(rpc::Poll request, rpc::Responder respond) {
  if (Status applied = apply_poll(request); !applied) return refuse_poll(std::move(applied), std::move(respond));
  polls_->add(std::move(respond), request.wants_settings);
}

void StorageNode::report_for_polls(std::size_t s) {
  Stripe& stripe = *stripes_[s];
  stripe.executor().post([this, s, &stripe] {
    stripe.follow_bits();
    polls_->reported(s, stripe.buckets().totals(), {.health = stripe.health(), .fault = stripe.fault()});
  });
}

void StorageNode::fill_in(rpc::PollReply& reply, bool wants_settings) {
  const std::shared_ptr<const rpc::ClusterSnapshot> snapshot = received_.get();
  stop_.stamp(reply, clock_.now());
  add_versions(reply, *snapshot);
  damaged_buckets_.set(static_cast<double>(reply.buckets_damaged));
  damaged_ = reply.buckets_damaged;
  if (wants_settings) reply.settings = settings_.base();
  describe_folder(reply);
  std::lock_guard lock(mutex_);
  reply.space_stage = space_stage_;
  reply.space = space_;
  fault_ = reply.status ? reply.fault : reply.status.message();
  if (fault_.empty() && !probe_) fault_ = probe_.to_string();
  reply.fault = fault_;
  fault_gauge_.set(fault_.empty() ? 0 : 1);
}

}  // namespace fjord::storage
