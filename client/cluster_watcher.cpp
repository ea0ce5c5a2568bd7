#include "cluster_watcher.h"

#include <algorithm>
#include <fmt/core.h>
#include <iterator>

#include "backoff.h"
#include "fjord/common/callback_guard.h"
#include "fjord/common/check.h"
#include "fjord/common/log.h"

namespace fjord {

namespace {

/// Minimum time between an answer and the next refresh, so that operations that fail together cause one refresh.
constexpr Duration kRefreshPause = milliseconds(20);

void shuffle(std::vector<rpc::Address>& addresses, std::size_t begin, Random& random) {
  for (std::size_t left = addresses.size() - begin; left > 1; --left) {
    std::swap(addresses[begin + left - 1], addresses[begin + static_cast<std::size_t>(random.below(left))]);
  }
}

}  // namespace

ClusterWatcher::ClusterWatcher(std::shared_ptr<const ClientOptions> options, const Clock& clock, Random random,
                               std::shared_ptr<rpc::GatedTransport> gate, Executor& executor)
    : options_(std::move(options)), clock_(clock), random_(random), gate_(std::move(gate)), executor_(executor) {}

bool ClusterWatcher::take(const rpc::ClusterInfo& info) {
  // Ignores schemas without a cluster state if there is no snapshot yet: operations cannot be sent by schemas alone.
  if (closed_ || (info.state.empty() && (info.schemas.empty() || snapshot() == nullptr))) return false;
  const Result<bool> changed = holder_.update(info);
  if (!changed) {
    log::warning("client", "cluster information that came with an answer is of no use: {}",
                 changed.error().to_string());
    return false;
  }
  if (!*changed) return false;
  if (on_change_) on_change_();
  serve_waiters();
  return true;
}

void ClusterWatcher::refresh() {
  if (closed_ || asking_ || pausing_) return;
  if (answered_round_ > 0 && clock_.now() - answered_at_ < kRefreshPause) return;
  start_round();
}

void ClusterWatcher::need_snapshot(MonotonicTime deadline) {
  needed_until_ = std::max(needed_until_, deadline);
  if (!closed_ && !asking_ && !pausing_ && is_needed()) start_round();
}

void ClusterWatcher::wait(Condition condition, MonotonicTime deadline, Done done) {
  if (closed_) return done(client_closed());
  Waiter waiter{next_waiter_++, condition.fresh ? round_ + 1 : 0, condition.schema_version, std::move(done)};
  if (is_satisfied(waiter)) return waiter.done(Status::ok());
  const Duration left = std::max(deadline - clock_.now(), Duration(0));
  executor_.post_after(left,
                       while_alive(weak_from_this(), [id = waiter.id](ClusterWatcher& self) { self.expire(id); }));
  waiters_.push_back(std::move(waiter));
  if (!asking_ && !pausing_) start_round();
}

std::vector<rpc::Address> ClusterWatcher::candidates() {
  std::vector<rpc::Address> addresses;
  if (const auto known = snapshot()) {
    for (const std::uint16_t index : rpc::distributors_up(*known)) {
      const rpc::Address& address = known->info().distributor_addresses[index];
      if (!address.empty()) addresses.push_back(address);
    }
    shuffle(addresses, 0, random_);
  }
  const std::size_t known_count = addresses.size();
  for (const rpc::Address& address : options_->addresses) {
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) addresses.push_back(address);
  }
  shuffle(addresses, known_count, random_);
  return addresses;
}

void ClusterWatcher::start_round() {
  FJORD_CHECK(executor_.is_current());
  asking_ = true;
  ++round_;
  to_ask_ = candidates();
  asked_ = 0;
  ask_next();
}

void ClusterWatcher::ask_next() {
  if (asked_ == to_ask_.size()) return finish_round(false);
  const rpc::Address address = to_ask_[asked_++];
  rpc::call(*gate_, address, rpc::question_for_news(holder_), options_->cluster_info_timeout, executor_,
            while_alive(weak_from_this(), [round = round_, address](ClusterWatcher& self, Answer answer) {
              self.on_answer(round, address, answer);
            }));
}

void ClusterWatcher::on_answer(std::uint64_t round, const rpc::Address& address, const Answer& answer) {
  if (closed_ || !asking_ || round != round_) return;
  std::string reason = use_answer(answer);
  if (reason.empty()) {
    reasons_.clear();
    return finish_round(true);
  }
  // The list of reasons names the address, with which messages of the transport begin.
  if (const std::string named = address + ": "; reason.starts_with(named)) reason.erase(0, named.size());
  reasons_[address] = std::move(reason);
  ask_next();
}

std::string ClusterWatcher::use_answer(const Answer& answer) {
  if (answer && answer->status && snapshot() == nullptr &&
      (answer->info.state.empty() || answer->info.state_version == 0)) {
    return "it has no cluster state yet";
  }
  const Result<bool> changed = rpc::take_news(holder_, answer);
  if (!changed) return changed.error().message();
  if (*changed && on_change_) on_change_();
  return {};
}

void ClusterWatcher::finish_round(bool answered) {
  asking_ = false;
  if (answered) {
    answered_round_ = round_;
    answered_at_ = clock_.now();
  }
  serve_waiters();
  if (!is_needed()) {
    failures_ = 0;
    return;
  }
  ++failures_;
  pausing_ = true;
  executor_.post_after(backoff_delay(*options_, failures_, random_),
                       while_alive(weak_from_this(), [](ClusterWatcher& self) {
                         if (self.closed_) return;
                         self.pausing_ = false;
                         if (self.is_needed()) self.start_round();
                       }));
}

bool ClusterWatcher::is_needed() const {
  return !waiters_.empty() || (snapshot() == nullptr && clock_.now() < needed_until_);
}

bool ClusterWatcher::is_satisfied(const Waiter& waiter) const {
  const auto known = snapshot();
  return known != nullptr && answered_round_ >= waiter.round && known->schema_version() >= waiter.schema_version;
}

void ClusterWatcher::serve_waiters() {
  // A callback can add waiters, so the list is final before the first one runs.
  const auto first = std::stable_partition(waiters_.begin(), waiters_.end(),
                                           [this](const Waiter& waiter) { return !is_satisfied(waiter); });
  std::vector<Waiter> served(std::make_move_iterator(first), std::make_move_iterator(waiters_.end()));
  waiters_.erase(first, waiters_.end());
  for (Waiter& waiter : served) waiter.done(Status::ok());
}

void ClusterWatcher::expire(std::uint64_t waiter_id) {
  const auto at = std::find_if(waiters_.begin(), waiters_.end(),
                               [waiter_id](const Waiter& waiter) { return waiter.id == waiter_id; });
  if (at == waiters_.end()) return;
  Waiter waiter = std::move(*at);
  waiters_.erase(at);
  const auto known = snapshot();
  if (known == nullptr || !reasons_.empty()) return waiter.done(why_not_ready());
  waiter.done(Status(StatusCode::NotReady, known->schema_version() < waiter.schema_version
                                               ? fmt::format("the distributors have schema version {}, not {} yet",
                                                             known->schema_version(), waiter.schema_version)
                                               : std::string("no distributor answered in time")));
}

Status ClusterWatcher::why_not_ready() const {
  std::vector<rpc::Address> missing = options_->addresses;
  std::string list;
  for (const auto& [address, reason] : reasons_) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", address, reason);
    missing.erase(std::remove(missing.begin(), missing.end(), address), missing.end());
  }
  for (const rpc::Address& address : missing) {
    list += fmt::format("{}{} (has not answered)", list.empty() ? "" : ", ", address);
  }
  return Status(StatusCode::NotReady, "no distributor gives the cluster state: " + list);
}

void ClusterWatcher::close() {
  closed_ = true;
  std::vector<Waiter> waiters = std::move(waiters_);
  waiters_.clear();
  for (Waiter& waiter : waiters) waiter.done(client_closed());
}

}  // namespace fjord
