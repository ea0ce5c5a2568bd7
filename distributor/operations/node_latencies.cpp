#include "node_latencies.h"

#include <algorithm>

#include "fjord/common/log.h"

namespace fjord::distributor {
namespace {

constexpr std::size_t kKinds = 2;
/// Answers older than this are ignored.
constexpr Duration kWindow = milliseconds(1500);
/// Shortest time between two kept answers. It bounds the number of samples in the window.
constexpr Duration kSamplePause = milliseconds(10);
constexpr Duration kEvaluatePause = milliseconds(250);
/// With fewer answers a node has no measure.
constexpr std::size_t kSamplesMin = 3;

/// A node is slow above both limits: kSlowUs microseconds, and kSlowFactor times the latency of the other nodes.
constexpr std::int64_t kSlowUs = 10'000;
constexpr std::int64_t kSlowFactor = 8;
/// A suspect node recovers when its latency is below its limit divided by this.
constexpr std::int64_t kFastDivisor = 2;
constexpr Duration kSlowFor = milliseconds(500);
constexpr Duration kFastFor = seconds(5);
/// A suspect node without a measurement for this time is no longer suspect, as no operation has asked it.
constexpr Duration kForgetAfter = seconds(30);
constexpr Duration kProbePause = milliseconds(200);
constexpr std::ptrdiff_t kProbeCallsMax = 2;

std::int64_t quartile(std::vector<std::int64_t>& values, std::size_t of_four) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() * of_four / 4);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

NodeLatencies::NodeLatencies(MetricRegistry& metrics)
    : metrics_(metrics),
      suspects_(metrics.gauge("fjord_distributor_slow_storage_nodes",
                              "Storage nodes that this distributor finds much slower than the others")),
      probes_(metrics.counter("fjord_distributor_probe_reads_total",
                              "Reads sent to slow storage nodes to see whether they are well again")) {}

std::uint64_t NodeLatencies::sent(std::uint16_t node, Kind kind, std::size_t operations, MonotonicTime now) {
  const std::uint64_t number = next_call_++;
  Node& state = nodes_[node];
  state.calls.emplace(number, Call{kind, operations, now});
  state.operations += operations;
  return number;
}

void NodeLatencies::answered(std::uint16_t node, std::uint64_t number, bool is_answer, MonotonicTime now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  const auto call = found->second.calls.find(number);
  if (call == found->second.calls.end()) return;
  const Call ended = call->second;
  found->second.calls.erase(call);
  found->second.operations -= ended.operations;
  if (!is_answer) return;
  std::deque<Sample>& samples = found->second.samples[static_cast<std::size_t>(ended.kind)];
  if (!samples.empty() && now - samples.back().at < kSamplePause) return;
  samples.push_back({now, (now - ended.at).count()});
  found->second.last_measured = now;
}

void NodeLatencies::forget(std::uint16_t node) { nodes_.erase(node); }

bool NodeLatencies::is_avoided(std::uint16_t node) const {
  if (std::find(marked_.begin(), marked_.end(), node) != marked_.end()) return true;
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.suspect;
}

std::vector<std::uint16_t> NodeLatencies::without_slow(std::vector<std::uint16_t> nodes, MonotonicTime now) {
  evaluate(now);
  if (suspect_count_ == 0 && marked_.empty()) return nodes;
  const auto is_fast = [this](std::uint16_t node) { return !is_avoided(node); };
  if (std::any_of(nodes.begin(), nodes.end(), is_fast)) {
    std::erase_if(nodes, [&](std::uint16_t node) { return !is_fast(node); });
  }
  return nodes;
}

bool NodeLatencies::is_clogged(std::uint16_t node, std::size_t operations_max) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.operations > operations_max && is_avoided(node);
}

bool NodeLatencies::wants_probe(std::uint16_t node, MonotonicTime now) {
  if (!is_avoided(node)) return false;
  Node& state = nodes_[node];
  if (now - state.last_probe < kProbePause) return false;
  const auto reads = std::count_if(state.calls.begin(), state.calls.end(),
                                   [](const auto& call) { return call.second.kind == Kind::Read; });
  if (reads >= kProbeCallsMax) return false;
  state.last_probe = now;
  probes_.add();
  return true;
}

std::vector<rpc::NodeLatency> NodeLatencies::report(MonotonicTime now) {
  evaluate(now);
  std::vector<rpc::NodeLatency> all;
  for (const auto& [index, node] : nodes_) {
    if (!node.suspect && !node.typical_us[0] && !node.typical_us[1]) continue;
    all.push_back({index, node.typical_us[0].value_or(0), node.typical_us[1].value_or(0), node.peers_us[0],
                   node.peers_us[1], node.suspect});
  }
  return all;
}

std::optional<std::int64_t> NodeLatencies::typical_of(Node& node, Kind kind, MonotonicTime now) {
  std::deque<Sample>& samples = node.samples[static_cast<std::size_t>(kind)];
  while (!samples.empty() && now - samples.front().at > kWindow) samples.pop_front();
  std::vector<std::int64_t> values;
  for (const Sample& sample : samples) values.push_back(sample.us);
  for (const auto& [number, call] : node.calls) {
    const std::int64_t age = (now - call.at).count();
    if (call.kind == kind && age >= kSlowUs) values.push_back(age);
  }
  if (values.size() < kSamplesMin) return std::nullopt;
  // The third quartile: a node that stalls half of the time counts as slow, one that stalls rarely does not.
  return quartile(values, 3);
}

std::int64_t NodeLatencies::peers_of(std::uint16_t index, Kind kind) const {
  std::vector<std::int64_t> others;
  for (const auto& [other, node] : nodes_) {
    const auto& known = node.typical_us[static_cast<std::size_t>(kind)];
    if (other != index && known) others.push_back(*known);
  }
  return others.empty() ? 0 : quartile(others, 2);
}

void NodeLatencies::evaluate(MonotonicTime now) {
  if (now - evaluated_at_ < kEvaluatePause) return;
  evaluated_at_ = now;
  for (auto& [index, node] : nodes_) {
    for (std::size_t k = 0; k < kKinds; ++k) node.typical_us[k] = typical_of(node, static_cast<Kind>(k), now);
  }
  suspect_count_ = 0;
  for (auto& [index, node] : nodes_) {
    judge(index, node, now);
    suspect_count_ += node.suspect ? 1 : 0;
  }
  suspects_.set(static_cast<double>(suspect_count_));
}

void NodeLatencies::judge(std::uint16_t index, Node& node, MonotonicTime now) {
  bool is_slow = false;
  bool is_fast = true;
  bool is_known = false;
  for (std::size_t k = 0; k < kKinds; ++k) {
    node.peers_us[k] = peers_of(index, static_cast<Kind>(k));
    const auto& own = node.typical_us[k];
    if (node.gauges[k] == nullptr) {
      node.gauges[k] = &metrics_.gauge(
          "fjord_distributor_storage_latency_seconds",
          "What three of four answers of the last moments took at most, of batches that read and that write",
          {{"node", std::to_string(index)}, {"kind", k == 0 ? "read" : "write"}});
    }
    node.gauges[k]->set(static_cast<double>(own.value_or(0)) / 1e6);
    if (!own) continue;
    is_known = true;
    // Without other nodes to compare with, no node becomes suspect; a suspect one is compared with the absolute limit.
    const std::int64_t limit = std::max(kSlowUs, kSlowFactor * node.peers_us[k]);
    is_slow = is_slow || (*own > limit && node.peers_us[k] > 0);
    is_fast = is_fast && *own < limit / kFastDivisor;
  }
  if (!node.suspect) {
    if (!is_slow) {
      node.slow_since.reset();
      return;
    }
    if (!node.slow_since) node.slow_since = now;
    if (now - *node.slow_since < kSlowFor) return;
    node.suspect = true;
    node.fast_since.reset();
    log::warning("distributor", "storage.{} is slow: reads {} us (others {} us), writes {} us (others {} us)", index,
                 node.typical_us[0].value_or(0), node.peers_us[0], node.typical_us[1].value_or(0), node.peers_us[1]);
    return;
  }
  const bool is_forgotten = !is_known && now - node.last_measured > kForgetAfter;
  if (!is_forgotten && (!is_fast || !is_known)) {
    // A time without answers is no recovery, but does not interrupt one that has begun.
    if (is_known) node.fast_since.reset();
    return;
  }
  if (!node.fast_since) node.fast_since = now;
  if (!is_forgotten && now - *node.fast_since < kFastFor) return;
  node.suspect = false;
  node.slow_since.reset();
  log::info("distributor", "storage.{} is no longer slow", index);
}

}  // namespace fjord::distributor
