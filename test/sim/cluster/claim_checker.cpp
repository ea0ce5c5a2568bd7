#include "claim_checker.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/common/hash.h"

namespace fjord::sim {
namespace {

constexpr Duration kNoticedWithin = ClaimTrial::kNoticedWithin;
constexpr Duration kPolledWithin = seconds(1);
constexpr Duration kBetweenLooks = milliseconds(250);

bool is_in_sync(const rpc::PollReply& reply) {
  return reply.buckets_out_of_sync == 0 && reply.buckets_unavailable == 0 && reply.buckets_damaged == 0 &&
         reply.buckets_failing == 0 && reply.buckets_unplaced == 0 && reply.buckets_under_replicated == 0 &&
         reply.buckets_collecting == 0;
}

/// Trials of a hundred, in the order of Trial.
constexpr unsigned kShares[kTrials] = {25, 15, 20, 15, 10, 15};

Trial draw_trial(Random& random) {
  std::uint64_t dice = random.below(100);
  unsigned trial = 0;
  while (dice >= kShares[trial]) dice -= kShares[trial++];
  return static_cast<Trial>(trial);
}

std::optional<Trial> only(const std::string& choice) {
  const Result<Trial> trial = trial_from_string(choice);
  return trial ? std::optional(*trial) : std::nullopt;
}

}  // namespace

ClaimChecker::ClaimChecker(std::uint64_t seed, const std::string& choice)
    : none_(choice == "none"), only_(only(choice)), random_(mix64(seed, 0x636c61696d73)) {}

void ClaimChecker::observe(SimCluster& cluster) {
  cluster_ = &cluster;
  cluster.network().set_observer(this);
  // After a loss of power without sync a node may have an older replica set than it told others of.
  if (cluster.options().power_loss && !cluster.options().sync) return;
  outages_.observe(cluster);
  acknowledged_.set_listener([this](const std::string& id, const Status& status) { outages_.see_answer(id, status); });
}

void ClaimChecker::watch(Duration span) {
  if (none_) return;
  const Duration moment(random_.below(static_cast<std::uint64_t>(span.count())));
  cluster_->scheduler().outside().post_after(moment, [this] { look(); });
}

void ClaimChecker::look() {
  if (stopped_ || !trials_.empty()) return;
  make_trial();
  cluster_->scheduler().outside().post_after(kBetweenLooks, [this] { look(); });
}

void ClaimChecker::at_end() {
  stopped_ = true;
  if (none_ || !failure().empty()) return;
  if (!trials_.empty() && random_.chance(0.5)) return;
  cluster_->scheduler().run_for(kNoticedWithin + kPolledWithin);
  make_trial();
}

void ClaimChecker::make_trial() {
  std::optional<ClusterView> view = state_in_sync();
  if (!view || !failure().empty()) return;
  const Trial drawn = draw_trial(random_);
  const Trial trial = only_.value_or(drawn);
  ClaimTrial maker(*cluster_, acknowledged_, std::move(*view), random_.next());
  failure_ = maker.run(trial);
  ++trials_[trial];
  trace_ = maker.trace();
  if (maker.done()) done_.insert(trial);
}

std::vector<unsigned> ClaimChecker::tested() const {
  std::vector<unsigned> columns;
  for (const Trial trial : done_) columns.push_back(claim(static_cast<unsigned>(trial) + 1));
  if (acknowledged_.not_found() > 0) columns.push_back(claim(kTrials + 1));
  if (outages_.looked_into() > 0) columns.push_back(claim(kTrials + 2));
  return columns;
}

bool ClaimChecker::is_quiet() const {
  const MonotonicTime now = cluster_->scheduler().clock().now();
  const std::vector<std::string> names = cluster_->storage_names();
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return now - cluster_->disturbed_at(name) >= kNoticedWithin; });
}

std::optional<ClusterView> ClaimChecker::state_in_sync() const {
  if (!state_ || is_changing_ || !is_quiet()) return std::nullopt;
  const MonotonicTime now = cluster_->scheduler().clock().now();
  bool is_said = false;  // By a distributor; the buckets are theirs.
  for (const NodeType type : {NodeType::Storage, NodeType::Distributor}) {
    for (std::uint16_t i = 0; i < state_->state->node_count(type); ++i) {
      const NodeId node{type, i};
      if (!state_->is_up(node)) continue;
      is_said = is_said || type == NodeType::Distributor;
      const auto polled = polled_.find(node.to_string());
      if (polled == polled_.end() || now - polled->second.at > kPolledWithin) return std::nullopt;
      const rpc::PollReply& reply = polled->second.reply;
      if (reply.state_version != state_->version() || !is_in_sync(reply)) return std::nullopt;
    }
  }
  return is_said ? state_ : std::nullopt;
}

NetworkObserver::SeeReply ClaimChecker::see_request(const std::string&, const std::string& to,
                                                    const rpc::Request& request) {
  if (cluster_ == nullptr) return {};
  if (const auto* poll = std::get_if<rpc::Poll>(&request)) {
    see_state(poll->info);
    return [this, to](const Result<rpc::Reply>& reply) { see_poll(to, reply); };
  }
  return acknowledged_.see_request(to, request);
}

void ClaimChecker::see_state(const rpc::ClusterInfo& info) {
  const std::uint64_t known = state_ ? state_->version() : 0;
  if (info.state_version < known) return;
  is_changing_ = !info.pending_state.empty();
  if (const Result<ClusterState> pending = ClusterState::parse(info.pending_state); is_changing_ && pending) {
    outages_.see_state(pending->version(), *pending);
  }
  if (info.state_version == known || info.state.empty() || info.distribution.empty()) return;
  Result<ClusterState> state = ClusterState::parse(info.state);
  Result<DistributionConfig> groups = DistributionConfig::parse(info.distribution);
  if (state) outages_.see_state(state->version(), *state);
  if (state && groups) state_ = ClusterView::make(std::move(*state), std::move(*groups));
}

void ClaimChecker::see_poll(const std::string& to, const Result<rpc::Reply>& reply) {
  const auto* polled = reply ? std::get_if<rpc::PollReply>(&*reply) : nullptr;
  if (polled == nullptr || !polled->status) return;
  polled_[to] = {cluster_->scheduler().clock().now(), *polled};
}

std::string ClaimChecker::summary() const {
  std::string text;
  for (const auto& [trial, count] : trials_) {
    text += fmt::format(" {} {}{}", count, to_string(trial), done_.contains(trial) ? "" : " (impossible)");
  }
  return text.empty() ? "no claim tested" : "claims tested:" + text;
}

}  // namespace fjord::sim
