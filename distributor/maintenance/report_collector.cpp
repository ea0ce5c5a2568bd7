#include "maintenance/report_collector.h"

namespace fjord::distributor {

void ReportCollector::ask(std::map<std::uint16_t, Question> questions, UniqueFunction<void(Reports)> done) {
  reports_.clear();
  questions_ = std::move(questions);
  done_ = std::move(done);
  if (questions_.empty()) {
    done_({});
    return;
  }
  // Copied into a list first, because an answer may come at once and change `questions_`.
  std::vector<std::uint16_t> nodes;
  for (const auto& [node, question] : questions_) nodes.push_back(node);
  for (std::uint16_t node : nodes) ask_node(node);
}

void ReportCollector::ask_node(std::uint16_t node) {
  const Question& question = questions_.at(node);
  rpc::GetBucketInfo request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  request.all = question.all;
  request.buckets = question.buckets;
  rpc::call(context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
            context_.executor, [this, node, generation = context_.generation](Result<rpc::GetBucketInfoReply> reply) {
              if (generation == context_.generation) on_reports(node, std::move(reply));
            });
}

void ReportCollector::on_reports(std::uint16_t node, Result<rpc::GetBucketInfoReply> reply) {
  if (!questions_.contains(node)) return;
  if (!reply || !reply->status) {
    // Retries, because the node has not received the state yet, or is failing and a new state will follow.
    context_.executor.post_after(context_.options.retry_delay, [this, node, generation = context_.generation] {
      if (generation == context_.generation && questions_.contains(node)) ask_node(node);
    });
    return;
  }
  context_.space.update(node, reply->space_stage, reply->space_reason);
  for (rpc::BucketReport& report : reply->reports) {
    reports_[report.bucket.raw()].push_back({node, report.info, std::move(report.replica_set), report.damaged});
  }
  questions_.erase(node);
  if (questions_.empty()) std::exchange(done_, {})(std::exchange(reports_, {}));
}

void ReportCollector::divide(std::vector<Undivided> replicas, UniqueFunction<void(Reports)> done) {
  reports_.clear();
  undivided_ = std::move(replicas);
  undivided_left_ = undivided_.size();
  done_ = std::move(done);
  for (std::size_t i = 0; i < undivided_.size(); ++i) divide_one(i);
}

void ReportCollector::divide_one(std::size_t number) {
  const Undivided& replica = undivided_[number];
  rpc::SplitBucket request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  request.bucket = replica.bucket;
  request.epoch = replica.epoch;
  rpc::call(
      context_.transport, context_.storage_address(replica.node), request, context_.options.storage_timeout,
      context_.executor,
      [this, number, node = replica.node, generation = context_.generation](Result<rpc::SplitBucketReply> reply) {
        if (generation != context_.generation) return;
        if (!reply || !reply->status) {
          context_.executor.post_after(context_.options.retry_delay, [this, number, generation] {
            if (generation == context_.generation) divide_one(number);
          });
          return;
        }
        for (rpc::BucketReport& report : reply->reports) {
          reports_[report.bucket.raw()].push_back({node, report.info, std::move(report.replica_set), report.damaged});
        }
        if (--undivided_left_ == 0) std::exchange(done_, {})(std::exchange(reports_, {}));
      });
}

std::vector<Undivided> find_undivided(const ReportCollector::Reports& reports) {
  std::map<std::uint64_t, BucketId> in_order;  // A bucket comes directly before the buckets that it contains.
  for (const auto& [raw, list] : reports) {
    if (!list.empty()) in_order.emplace(BucketId(raw).sort_key(), BucketId(raw));
  }
  std::vector<Undivided> found;
  // By node: the widest bucket found last. The buckets that this one contains on that node come after it.
  std::map<std::uint16_t, BucketId> widest;
  for (auto it = in_order.begin(); it != in_order.end(); ++it) {
    const auto next = std::next(it);
    if (next == in_order.end() || !it->second.contains(next->second)) continue;
    for (const ReplicaReport& report : reports.at(it->second.raw())) {
      const auto [last, is_first] = widest.emplace(report.node, it->second);
      if (!is_first && last->second.contains(it->second)) continue;
      last->second = it->second;
      found.push_back({report.node, it->second, report.set.epoch});
    }
  }
  return found;
}

}  // namespace fjord::distributor
