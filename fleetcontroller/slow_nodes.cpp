#include "slow_nodes.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord::fleetcontroller {
namespace {

constexpr Duration kClearAfter = seconds(3);

struct Votes {
  unsigned all = 0;
  unsigned slow = 0;
  const rpc::NodeLatency* worst = nullptr;
};

std::string milliseconds_text(std::int64_t us) { return fmt::format("{:.1f} ms", static_cast<double>(us) / 1000); }

std::string reason_of(const Votes& votes) {
  const rpc::NodeLatency& worst = *votes.worst;
  std::string text;
  const auto add = [&](const char* what, std::int64_t own, std::int64_t peers) {
    if (own == 0) return;
    text += fmt::format("{}{} take {}", text.empty() ? "" : ", ", what, milliseconds_text(own));
    if (peers > 0) text += " (others " + milliseconds_text(peers) + ")";
  };
  add("reads", worst.read_us, worst.peers_read_us);
  add("writes", worst.write_us, worst.peers_write_us);
  if (text.empty()) text = "it does not answer";
  return fmt::format("{}; {} of {} distributors", text, votes.slow, votes.all);
}

}  // namespace

std::vector<SlowNodes::Change> SlowNodes::update(const std::vector<Report>& reports, MonotonicTime now) {
  std::map<std::uint16_t, Votes> votes;
  for (const Report& report : reports) {
    for (const rpc::NodeLatency& latency : report.latencies) {
      Votes& of_node = votes[latency.node];
      ++of_node.all;
      if (!latency.suspect) continue;
      ++of_node.slow;
      const auto badness = [](const rpc::NodeLatency& one) { return std::max(one.read_us, one.write_us); };
      if (of_node.worst == nullptr || badness(latency) > badness(*of_node.worst)) of_node.worst = &latency;
    }
  }
  std::vector<Change> changes;
  for (const auto& [node, of_node] : votes) {
    if (2 * of_node.slow <= of_node.all) continue;
    auto [mark, is_new] = marks_.try_emplace(node);
    mark->second.last_slow = now;
    if (!is_new) continue;
    mark->second.since = now;
    mark->second.reason = reason_of(of_node);
    changes.push_back({node, true, mark->second.reason});
  }
  for (auto mark = marks_.begin(); mark != marks_.end();) {
    if (now - mark->second.last_slow <= kClearAfter) {
      ++mark;
      continue;
    }
    const double seconds_slow = static_cast<double>((now - mark->second.since).count()) / 1e6;
    changes.push_back({mark->first, false, fmt::format("as fast as the others again, after {:.1f} s", seconds_slow)});
    mark = marks_.erase(mark);
  }
  return changes;
}

std::vector<std::uint16_t> SlowNodes::nodes() const {
  std::vector<std::uint16_t> nodes;
  for (const auto& [node, mark] : marks_) nodes.push_back(node);
  return nodes;
}

std::string SlowNodes::reason(std::uint16_t node) const {
  const auto mark = marks_.find(node);
  return mark == marks_.end() ? std::string() : mark->second.reason;
}

}  // namespace fjord::fleetcontroller
