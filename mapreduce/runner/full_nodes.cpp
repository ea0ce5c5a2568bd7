#include "full_nodes.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace fjord::mapreduce {
namespace {

constexpr Duration kAnswerTimeout = seconds(1);
/// GetBucketInfoReply::space_stage from which a node takes no writes of clients.
constexpr std::uint16_t kRefusesPuts = 4;

/// The question to all storage nodes: the answers received so far, and the callback.
struct Question {
  FullNodes found;
  std::size_t waiting = 0;
  UniqueFunction<void(FullNodes)> done;

  void answered() {
    if (--waiting == 0) done(std::move(found));
  }
};

/// Asks a full node for all of its buckets.
void ask_for_buckets(rpc::Transport& transport, const rpc::Address& address, std::uint64_t state_version,
                     Executor& executor, const std::shared_ptr<Question>& question) {
  rpc::GetBucketInfo request;
  request.state_version = state_version;
  request.of_all_owners = true;
  rpc::call(transport, address, std::move(request), kAnswerTimeout, executor,
            [question](const Result<rpc::GetBucketInfoReply>& reply) {
              if (reply) {
                for (const rpc::BucketReport& report : reply->reports) question->found.add_bucket(report.bucket);
              }
              question->answered();
            });
}

}  // namespace

bool FullNodes::refuse(const rpc::ClusterSnapshot& snapshot, std::uint64_t location) const {
  const NodeList ideal = snapshot.ideal_nodes(BucketId(snapshot.distribution_bits(), location));
  const bool belongs = std::any_of(ideal.begin(), ideal.end(), [&](auto node) { return nodes_.contains(node); });
  return belongs || std::any_of(bits_.begin(), bits_.end(),
                                [&](unsigned bits) { return buckets_.contains(BucketId(bits, location)); });
}

std::string FullNodes::describe() const {
  std::string text;
  for (const auto& [node, reason] : nodes_) {
    text += (text.empty() ? "" : "; ") + ("storage." + std::to_string(node)) + " takes no puts: " + reason;
  }
  return text;
}

void ask_for_full_nodes(rpc::Transport& transport, const rpc::ClusterSnapshot& snapshot, Executor& executor,
                        FullNodes known, UniqueFunction<void(FullNodes)> done) {
  auto question = std::make_shared<Question>();
  question->found = std::move(known);
  question->done = std::move(done);
  const std::vector<rpc::Address>& addresses = snapshot.info().storage_addresses;
  std::vector<std::uint16_t> nodes;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (snapshot.storage_serves(static_cast<std::uint16_t>(i))) nodes.push_back(static_cast<std::uint16_t>(i));
  }
  question->waiting = nodes.size() + 1;
  for (const std::uint16_t node : nodes) {
    rpc::GetBucketInfo request;
    request.state_version = snapshot.state_version();
    rpc::call(transport, addresses[node], std::move(request), kAnswerTimeout, executor,
              [&transport, &executor, question, node, address = addresses[node],
               version = snapshot.state_version()](const Result<rpc::GetBucketInfoReply>& reply) {
                if (reply && reply->space_stage >= kRefusesPuts) question->found.add(node, reply->space_reason);
                if (!question->found.nodes().contains(node)) return question->answered();
                ask_for_buckets(transport, address, version, executor, question);
              });
  }
  executor.post([question] { question->answered(); });
}

}  // namespace fjord::mapreduce
