#include "maintenance/check_without.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <string>

#include "unreported_buckets.h"

namespace fjord::distributor {
namespace {

constexpr std::size_t kReasonsMax = 3;

class Check {
 public:
  Check(Context& context, const rpc::CheckWithout& request, rpc::Responder respond)
      : context_(context), request_(request), respond_(std::move(respond)) {}

  static void run(const std::shared_ptr<Check>& check) {
    std::map<std::uint16_t, std::vector<BucketId>> questions = check->collect();
    for (auto& [node, buckets] : questions) check->ask(check, node, std::move(buckets));
    // Completes the additional count in `missing_`, which keeps the check open until all nodes have been asked.
    check->answered();
  }

 private:
  struct Left {
    std::uint64_t epoch = 0;
    bool is_confirmed = false;
    std::string doubt;
  };

  std::map<std::uint16_t, std::vector<BucketId>> collect() {
    std::map<std::uint16_t, std::vector<BucketId>> questions;
    reply_.state_version = context_.snapshot->state_version();
    for (auto& [key, entry] : context_.buckets) {
      ++reply_.buckets;
      if (const std::string* why = entry.unavailable_because()) {
        left_[entry.bucket] = {.doubt = "cannot be served even now: " + *why};
        continue;
      }
      const bool is_touched = std::any_of(entry.set.nodes.begin(), entry.set.nodes.end(),
                                          [&](std::uint16_t node) { return is_stopped(node); });
      if (!is_touched) continue;
      Left& left = left_[entry.bucket];
      left.epoch = entry.set.epoch;
      left.doubt = "all its intact replicas are there";
      for (std::uint16_t node : entry.intact()) {
        if (is_stopped(node)) continue;
        left.doubt = NodeId::storage(node).to_string() + " does not report it";
        questions[node].push_back(entry.bucket);
      }
    }
    for (const BucketId bucket : unreported_buckets(context_, newly_absent())) {
      ++reply_.buckets;
      left_[bucket] = {.doubt = "no storage node has all of it, so that it may be only on nodes that are away"};
    }
    missing_ = questions.size() + 1;
    return questions;
  }

  /// Returns how many of the nodes to be stopped serve now.
  std::size_t newly_absent() const {
    const auto nodes = context_.snapshot->distribution().flat_nodes();
    return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), [&](const auto& node) {
      return is_stopped(node.index) && context_.snapshot->storage_serves(node.index);
    }));
  }

  void ask(const std::shared_ptr<Check>& self, std::uint16_t node, std::vector<BucketId> buckets) {
    rpc::GetBucketInfo question;
    question.state_version = reply_.state_version;
    question.distributor = context_.options.index;
    question.buckets = std::move(buckets);
    rpc::call(context_.transport, context_.storage_address(node), std::move(question), context_.options.storage_timeout,
              context_.executor, [self, node](Result<rpc::GetBucketInfoReply> reply) {
                if (reply && reply->status) {
                  for (const rpc::BucketReport& report : reply->reports) self->take(node, report);
                }
                self->answered();
              });
  }

  void take(std::uint16_t node, const rpc::BucketReport& report) {
    const auto found = left_.find(report.bucket);
    if (found == left_.end()) return;
    Left& left = found->second;
    const std::string name = NodeId::storage(node).to_string();
    if (report.damaged) {
      left.doubt = "its replica on " + name + " is damaged";
    } else if (report.replica_set.epoch < left.epoch || !report.replica_set.contains(node)) {
      left.doubt = fmt::format("{} does not know itself as a member: its replica set has epoch {}, the bucket's {}",
                               name, report.replica_set.epoch, left.epoch);
    } else if (is_birth(report.replica_set) && report.info.max_timestamp_us == 0) {
      left.doubt = "it is being made, and " + name + " does not know whether on all its nodes";
    } else {
      left.is_confirmed = true;
    }
  }

  void answered() {
    if (--missing_ != 0) return;
    if (context_.snapshot->state_version() != reply_.state_version) {
      reply_.status = {StatusCode::WrongDistribution, "the cluster state changed meanwhile"};
    }
    for (const auto& [bucket, left] : left_) {
      if (left.is_confirmed) continue;
      ++reply_.unavailable;
      if (reply_.reasons.size() < kReasonsMax) reply_.reasons.push_back(bucket.to_string() + ": " + left.doubt);
    }
    respond_(std::move(reply_));
  }

  bool is_stopped(std::uint16_t node) const {
    return std::find(request_.nodes.begin(), request_.nodes.end(), node) != request_.nodes.end();
  }

  Context& context_;
  const rpc::CheckWithout request_;
  rpc::Responder respond_;
  rpc::CheckWithoutReply reply_;
  std::map<BucketId, Left> left_;
  std::size_t missing_ = 1;
};

}  // namespace

void check_without(Context& context, const rpc::CheckWithout& request, rpc::Responder respond) {
  rpc::CheckWithoutReply refused;
  if (context.snapshot == nullptr || !context.ready) {
    refused.status = {StatusCode::NotReady, "this distributor does not know its buckets yet"};
  } else if (context.snapshot->state_version() != request.state_version) {
    refused.status = {StatusCode::WrongDistribution,
                      fmt::format("this distributor is in cluster state {}, not {}", context.snapshot->state_version(),
                                  request.state_version)};
  }
  if (!refused.status) return respond(std::move(refused));
  Check::run(std::make_shared<Check>(context, request, std::move(respond)));
}

}  // namespace fjord::distributor
