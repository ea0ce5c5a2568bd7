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

std::int64_t badness(const rpc::NodeLatency& one) { return std::max(one.read_us, one.write_us); }

bool is_very_slow(const rpc::NodeLatency& one) {
  const bool is_silent = badness(one) == 0;
  return is_silent || badness(one) >= SlowNodes::kVerySlow.count();
}

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
      if (of_node.worst == nullptr || badness(latency) > badness(*of_node.worst)) of_node.worst = &latency;
    }
  }
  std::vector<Change> changes;
  for (auto& [node, episode] : episodes_) {
    if (episode.is_marked) episode.marked += now - episode.last_update;
    episode.last_update = now;
    episode.is_marked = now - episode.last_slow <= kClearAfter;
  }
  for (const auto& [node, of_node] : votes) {
    if (2 * of_node.slow <= of_node.all) continue;
    const auto [place, is_new] = episodes_.try_emplace(node);
    Episode& episode = place->second;
    if (is_new) episode.since = now;
    episode.last_slow = now;
    episode.last_update = now;
    episode.is_marked = true;
    if (episode.is_reported) continue;
    episode.reason = reason_of(of_node);
    episode.is_reported = is_very_slow(*of_node.worst) || episode.marked >= kReportAfter;
    if (episode.is_reported) changes.push_back({node, true, episode.reason});
  }
  std::erase_if(episodes_, [&](const auto& entry) {
    const auto& [node, episode] = entry;
    if (now - episode.last_slow <= kQuiet) return false;
    const double seconds_slow = static_cast<double>((episode.last_slow - episode.since).count()) / 1e6;
    if (episode.is_reported) {
      changes.push_back({node, false, fmt::format("as fast as the others again, after {:.1f} s", seconds_slow)});
    }
    return true;
  });
  return changes;
}

std::vector<std::uint16_t> SlowNodes::nodes() const {
  std::vector<std::uint16_t> nodes;
  for (const auto& [node, episode] : episodes_) {
    if (episode.is_marked) nodes.push_back(node);
  }
  return nodes;
}

std::string SlowNodes::reason(std::uint16_t node) const {
  const auto episode = episodes_.find(node);
  return episode == episodes_.end() || !episode->second.is_reported ? std::string() : episode->second.reason;
}

}  // namespace fjord::fleetcontroller
