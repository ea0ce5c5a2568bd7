#include "health_page.h"

#include <fmt/format.h>

#include "fjord/cluster/limits.h"

namespace fjord {
namespace {

// Values of storage::SpaceStage.
constexpr std::uint32_t kWarns = 1;
constexpr std::uint32_t kRefusesPuts = 3;

/// Longest accepted silence; longer than a change of the leading fleet controller takes.
constexpr Duration kSilenceMax = seconds(30);

class Page {
 public:
  Page(const std::string& name, std::uint64_t state_version, std::uint64_t config_version)
      : page_{true, "up", name, state_version, config_version, {}} {}

  /// Notes that the node does not perform its role completely. The first word becomes the status.
  void unhealthy(const char* word, std::string reason) {
    if (page_.healthy) page_.status = word;
    page_.healthy = false;
    page_.reasons.push_back(std::move(reason));
  }
  void check_number(std::uint64_t buckets) {
    if (buckets <= kBucketsPerNodeWarn) return;
    degraded(
        fmt::format("it has {} buckets, and repairs are slow with more than {}: add nodes, or lower "
                    "cluster.distribution_bits",
                    buckets, kBucketsPerNodeMax));
  }
  void degraded(std::string reason) {
    if (page_.reasons.empty()) page_.status = "degraded";
    page_.reasons.push_back(std::move(reason));
  }
  /// Returns false if the node takes no part in the cluster.
  bool check_part(const std::string& misnamed, const std::string& state) {
    if (!misnamed.empty()) {
      unhealthy("misnamed", misnamed);
    } else if (state.empty()) {
      unhealthy("initializing", "no cluster state from the fleet controller yet");
    } else if (state == "down" || state == "maintenance") {
      unhealthy("down", "the cluster state says that this node is " + state);
    }
    return page_.healthy;
  }
  Health take() { return std::move(page_); }

 private:
  Health page_;
};

}  // namespace

Health health_page(const std::string& name, const storage::StorageNodeHealth& node) {
  Page page(name, node.state_version, node.config_version);
  if (node.is_failed) {
    page.unhealthy("failed", node.fault);
    return page.take();
  }
  if (node.is_stopping) page.unhealthy("stopping", "the process ends");
  if (node.is_starting) page.unhealthy("initializing", "opens its files");
  if (!page.check_part(node.misnamed, node.state)) return page.take();
  if (!node.fault.empty()) page.unhealthy("failing", node.fault);
  if (node.space_stage >= kRefusesPuts) {
    page.unhealthy("no_space", "puts are refused: " + node.space);
  } else if (node.space_stage >= kWarns) {
    page.degraded("space: " + node.space);
  }
  if (node.damaged_buckets != 0)
    page.degraded(fmt::format("{} buckets here have lost something", node.damaged_buckets));
  page.check_number(node.buckets);
  return page.take();
}

Health health_page(const std::string& name, const distributor::DistributorHealth& node) {
  Page page(name, node.state_version, node.config_version);
  if (node.is_stopping) page.unhealthy("stopping", "the process ends");
  if (!page.check_part(node.misnamed, node.state)) return page.take();
  if (!node.cluster_down.empty()) page.unhealthy("cluster_down", node.cluster_down);
  if (node.unplaced != 0) {
    page.unhealthy("nothing_placed", fmt::format("{} buckets have no storage node that they belong on", node.unplaced));
  } else if (node.buckets != 0 && node.unavailable == node.buckets) {
    page.unhealthy("nothing_served", fmt::format("none of its {} buckets can be served", node.buckets));
  } else if (node.unavailable != 0) {
    page.degraded(fmt::format("{} of its {} buckets cannot be served", node.unavailable, node.buckets));
  }
  if (node.too_few_replicas != 0) {
    page.degraded(fmt::format("{} of its {} buckets have too few replicas: fewer current ones than cluster.redundancy",
                              node.too_few_replicas, node.buckets));
  }
  if (node.failing != 0) {
    page.degraded(fmt::format("the merges of {} buckets fail again and again, last {}", node.failing, node.failure));
  }
  page.check_number(node.buckets);
  if (node.since_poll > kSilenceMax) {
    page.degraded(fmt::format("no fleet controller has asked for {} s", node.since_poll.count() / 1'000'000));
  }
  return page.take();
}

Health health_page(const std::string& name, const fleetcontroller::FleetControllerHealth& node) {
  Page page(name, 0, 0);
  if (node.phase == "stranded") {
    page.unhealthy("no_records", node.trouble);
  } else if (!node.trouble.empty()) {
    page.degraded(node.trouble);
  }
  return page.take();
}

}  // namespace fjord
