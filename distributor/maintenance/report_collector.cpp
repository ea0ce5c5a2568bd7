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
  std::vector<std::uint16_t> nodes;  // An answer may come at once.
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
    // It has not got the state yet, or it is dying and a new state is about to come.
    context_.executor.post_after(context_.options.retry_delay, [this, node, generation = context_.generation] {
      if (generation == context_.generation && questions_.contains(node)) ask_node(node);
    });
    return;
  }
  for (rpc::BucketReport& report : reply->reports) {
    reports_[report.bucket.raw()].push_back({node, report.info, std::move(report.replica_set), report.damaged});
  }
  questions_.erase(node);
  if (questions_.empty()) std::exchange(done_, {})(std::exchange(reports_, {}));
}

}  // namespace fjord::distributor
