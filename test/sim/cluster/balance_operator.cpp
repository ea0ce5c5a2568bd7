#include "balance_operator.h"

namespace fjord::sim {

void BalanceOperator::schedule() {
  const Duration pause(200'000 + cluster_.random().below(1'800'000));
  cluster_.scheduler().outside().post_after(pause, [this] {
    if (stopped_) return;
    step();
    schedule();
  });
}

void BalanceOperator::step() {
  const std::uint64_t dice = cluster_.random().below(12);
  if (dice >= 10) return shift_reads();
  if (dice < 6) return plan_and_apply();
  if (dice < 9) return revert();
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Balance;
  request.balance_to = cluster_.random().chance(0.5) ? "off" : "1.2";
  operator_.change_nodes(std::move(request), {});
}

void BalanceOperator::plan_and_apply() {
  rpc::Balance question;
  question.action = rpc::BalanceAction::Plan;
  cluster_.admin().call_any(std::move(question), seconds(5), [this](const Result<rpc::BalanceReply>& reply) {
    if (!reply || !reply->status || reply->plan.moves.empty()) return;
    // Applies about half of the plans up to 3 s late, when they may be outdated.
    const Duration wait(cluster_.random().chance(0.5) ? 0 : cluster_.random().below(3'000'000));
    cluster_.scheduler().outside().post_after(wait, [this, plan = reply->plan] { apply(plan); });
  });
}

void BalanceOperator::shift_reads() {
  rpc::Balance question;
  question.action = rpc::BalanceAction::Slices;
  cluster_.admin().call_any(std::move(question), seconds(5), [this](const Result<rpc::BalanceReply>& reply) {
    if (!reply || reply->slices.empty()) return;
    rpc::BalancePlan plan;
    plan.state_version = reply->state_version;
    for (std::uint64_t n = 1 + cluster_.random().below(5); n > 0; --n) {
      const rpc::BalanceSlice& slice = reply->slices[cluster_.random().below(reply->slices.size())];
      if (slice.nodes.size() < 2) continue;
      rpc::BalanceMove move;
      move.bucket = slice.bucket;
      const std::size_t from = cluster_.random().below(slice.nodes.size());
      move.source = slice.nodes[from];
      move.target = slice.nodes[(from + 1) % slice.nodes.size()];
      move.read_permille = static_cast<std::uint32_t>(1 + cluster_.random().below(1000 / slice.nodes.size()));
      plan.moves.push_back(move);
    }
    if (!plan.moves.empty()) apply(plan);
  });
}

void BalanceOperator::apply(const rpc::BalancePlan& plan) {
  rpc::Balance order;
  order.action = rpc::BalanceAction::Apply;
  order.state_version = plan.state_version;
  order.moves = plan.moves;
  order.who = "simulation";
  cluster_.admin().call_any(std::move(order), seconds(5), [this](const Result<rpc::BalanceReply>& reply) {
    if (!reply) return;
    applied_ += reply->status && reply->refusals.empty() ? 1 : 0;
    outdated_ += reply->status.code() == StatusCode::TestAndSetFailed ? 1 : 0;
  });
}

void BalanceOperator::revert() {
  rpc::Balance question;
  question.action = rpc::BalanceAction::History;
  cluster_.admin().call_any(std::move(question), seconds(5), [this](const Result<rpc::BalanceReply>& reply) {
    if (!reply || !reply->status || reply->steps.empty()) return;
    rpc::Balance order;
    order.action = rpc::BalanceAction::Revert;
    const std::size_t back = cluster_.random().below(std::min<std::size_t>(reply->steps.size(), 4));
    order.step = reply->steps[reply->steps.size() - 1 - back].step;
    order.who = "simulation";
    cluster_.admin().call_any(std::move(order), seconds(5), [this](const Result<rpc::BalanceReply>& done) {
      reverted_ += done && done->status ? 1 : 0;
    });
  });
}

}  // namespace fjord::sim
