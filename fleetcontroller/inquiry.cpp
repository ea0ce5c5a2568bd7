#include "inquiry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

#include "bucket_sizes.h"
#include "fjord/cluster/cluster_state.h"

namespace fjord::fleetcontroller {
namespace {

struct Findings {
  Inquiry inquiry;
  std::function<void(std::vector<std::string>)> done;
  std::vector<std::string> reasons = {};
  std::size_t missing = 1;

  void answered(std::string reason) {
    if (!reason.empty()) reasons.push_back(std::move(reason));
    if (--missing == 0) done(std::move(reasons));
  }
};

std::string why_not_this_process(const Inquiry& inquiry, const Result<rpc::PollReply>& reply) {
  if (!reply) {
    return fmt::format("no answer from {} ({}): start the process with --node {} first", inquiry.address,
                       reply.error().to_string(), inquiry.name);
  }
  if (!reply->node.empty() && reply->node != inquiry.name) {
    return fmt::format("the process at {} was started as {}, and the cluster would call it {}: start it with --node {}",
                       inquiry.address, reply->node, inquiry.name, inquiry.name);
  }
  if (!reply->status) {
    return fmt::format("the process at {} is not well: {}", inquiry.address, reply->status.to_string());
  }
  if (reply->state_version > inquiry.state_version) {
    return fmt::format(
        "the process at {} has heard of cluster state {}, and this cluster is in state {}: it belongs to "
        "another one",
        inquiry.address, reply->state_version, inquiry.state_version);
  }
  return {};
}

std::string why_not_without(const Inquiry& inquiry, const std::string& distributor,
                            const Result<rpc::CheckWithoutReply>& reply) {
  const Status& status = reply ? reply->status : reply.error();
  if (status.code() == StatusCode::NotImplemented) return {};
  if (!status) return fmt::format("{} does not say what it could serve then: {}", distributor, status.to_string());
  if (reply->unavailable == 0) return {};
  std::vector<std::string> names;
  for (const std::uint16_t node : inquiry.stopped) names.push_back(NodeId::storage(node).to_string());
  return fmt::format("{}: {} of {} buckets could not be served without {}: {}", distributor, reply->unavailable,
                     reply->buckets, fmt::join(names, ", "), fmt::join(reply->reasons, "; "));
}

}  // namespace

void ask_nodes(const Inquiry& inquiry, rpc::Transport& transport, Executor& executor,
               std::function<void(std::vector<std::string>)> done) {
  auto findings = std::make_shared<Findings>(Findings{inquiry, std::move(done)});
  if (!inquiry.address.empty()) {
    ++findings->missing;
    rpc::Poll question;
    question.node = inquiry.name;
    rpc::call(transport, inquiry.address, std::move(question), inquiry.poll_timeout, executor,
              [findings](Result<rpc::PollReply> reply) {
                findings->answered(why_not_this_process(findings->inquiry, reply));
              });
  }
  if (!inquiry.stopped.empty()) {
    for (const auto& [name, address] : inquiry.distributors) {
      ++findings->missing;
      rpc::CheckWithout question;
      question.state_version = inquiry.state_version;
      question.nodes = inquiry.stopped;
      rpc::call(transport, address, std::move(question), inquiry.check_timeout, executor,
                [findings, name = name](Result<rpc::CheckWithoutReply> reply) {
                  findings->answered(why_not_without(findings->inquiry, name, reply));
                });
    }
  }
  findings->answered({});
}

void ask_bucket_sizes(const SizeInquiry& inquiry, rpc::Transport& transport, Executor& executor,
                      std::function<void(Result<std::vector<std::uint64_t>>)> done) {
  if (inquiry.bits > BucketSizes::kBitsMax) {
    return done(Status(StatusCode::InvalidArgument,
                       fmt::format("with more than {} distribution bits single buckets are too small to matter",
                                   BucketSizes::kBitsMax)));
  }
  struct Sum {
    BucketSizes sizes;
    std::function<void(Result<std::vector<std::uint64_t>>)> done;
    std::size_t missing = 1;
    Status failure = Status::ok();

    void answered() {
      if (--missing > 0) return;
      failure ? done(sizes.bytes()) : done(failure);
    }
  };
  auto sum = std::make_shared<Sum>(Sum{BucketSizes(inquiry.bits), std::move(done)});
  for (const auto& [name, address] : inquiry.storage) {
    ++sum->missing;
    rpc::GetBucketInfo question;
    question.state_version = inquiry.state_version;
    question.of_all_owners = true;
    rpc::call(transport, address, std::move(question), inquiry.timeout, executor,
              [sum, name = name](Result<rpc::GetBucketInfoReply> reply) {
                const Status status = reply ? reply->status : reply.error();
                if (status) {
                  sum->sizes.add(reply->reports);
                } else {
                  sum->failure =
                      Status(StatusCode::Unavailable,
                             name + " does not report the sizes of its buckets: " + status.to_string(), {.node = name});
                }
                sum->answered();
              });
  }
  sum->answered();
}

}  // namespace fjord::fleetcontroller
