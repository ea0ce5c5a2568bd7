#include "fjord/balancer/simulator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace fjord::balancer {
namespace {

constexpr double kBalanced = 1.15;
constexpr std::size_t kSlicesPerNode = 400;  // Number of slices for each node at the start.

/// A replica that is being copied from one node to another. The source serves its load until the copy is done.
struct Transfer {
  BucketRange range;
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint64_t bytes = 0;
  std::uint64_t until = 0;
};

class Simulation {
 public:
  Simulation(const BalancingAlgorithm* algorithm, Trace& trace, const SimulationOptions& options, const Clock& clock)
      : algorithm_(algorithm),
        trace_(trace),
        options_(options),
        clock_(clock),
        random_(options.trace.seed ^ 0x5eed),
        model_(empty_model(options.trace, trace.redundancy())),
        expected_(options.trace.buckets) {}

  SimulationResult run() {
    place_first();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) one_round(round);
    summarise();
    return std::move(result_);
  }

 private:
  void place_first() {
    const BalancingAlgorithm* const first = algorithm_ == nullptr ? find_algorithm("consistent-3") : algorithm_;
    Random random = random_.fork();
    // At this point the model has no loads yet, so the algorithm places by other criteria.
    for (const Move& move : first->initialise(model_, random).moves) {
      const Status status = apply(move, model_);
      if (!status) check_failed(__FILE__, __LINE__, "the first placement can be carried out", status.to_string());
    }
    model_.step_bytes_max = static_cast<std::uint64_t>(options_.step_bytes_part * static_cast<double>(model_.bytes()));
    for (const Slice& slice : model_.slices) {
      NodeList nodes;
      for (const Holder& holder : slice.holders) nodes.push_back(holder.node);
      homes_->insert(homes_->end(), slice.range.size(), nodes);
    }
    model_.homes = homes_;
    model_.rows_max = options_.rows_max;
  }

  void one_round(std::uint64_t round) {
    model_.round = round + 1;  // Rounds begin with 1, because 0 means "never" in a Memory.
    trace_.fill(round, expected_);
    trace_.change_nodes(round, model_.nodes);
    std::erase_if(transfers_, [&](const Transfer& transfer) { return transfer.until <= round; });
    measure();
    RoundFigures figures{.round = round, .imbalance = imbalance(model_, served_loads())};
    if (algorithm_ != nullptr) decide(round, figures);
    count_topics(round);
    result_.rounds.push_back(figures);
  }

  /// Draws how many reads and writes each slice gets in this round.
  void measure() {
    std::vector<HotBucket> all;
    for (Slice& slice : model_.slices) {
      slice.in_transfer = false;
      double sum = 0.0;
      for (std::uint32_t bucket = slice.range.begin; bucket < slice.range.end; ++bucket) sum += expected_[bucket];
      const double counted = draw_poisson(random_, sum);
      slice.reads = counted * trace_.read_part();
      slice.writes = counted - slice.reads;
      if (slice.range.size() == 1) continue;
      for (std::uint32_t bucket = slice.range.begin; bucket < slice.range.end; ++bucket)
        all.push_back({bucket, expected_[bucket]});
    }
    for (const Transfer& transfer : transfers_) slice_at(transfer.range.begin).in_transfer = true;
    model_.topics = trace_.topics();
    // Reports the hottest of all buckets whose slices have several buckets: on average 20 for each node.
    const std::size_t wanted = std::min(all.size(), 20 * model_.nodes.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted), all.end(),
                      [](const HotBucket& a, const HotBucket& b) { return a.load > b.load; });
    all.resize(wanted);
    std::sort(all.begin(), all.end(), [](const HotBucket& a, const HotBucket& b) { return a.bucket < b.bucket; });
    model_.hot = std::move(all);
  }

  Slice& slice_at(std::uint32_t bucket) {
    const auto it = std::upper_bound(model_.slices.begin(), model_.slices.end(), bucket,
                                     [](std::uint32_t at, const Slice& slice) { return at < slice.range.end; });
    return *it;
  }

  /// Returns the work of each node over its capacity. A replica that is being copied is still served by its source.
  std::vector<double> served_loads() {
    std::vector<double> loads = node_loads(model_);
    const double cost = options_.copy_cost * options_.trace.operations / static_cast<double>(model_.bytes());
    for (const Transfer& transfer : transfers_) {
      const Slice& slice = slice_at(transfer.range.begin);
      const double part = asked_of(transfer.range) / asked_of(slice.range);
      const double load = part * slice.load_at(*slice.holders.find(transfer.to));
      const double copying = cost * static_cast<double>(transfer.bytes) / static_cast<double>(options_.move_rounds);
      add(loads, transfer.to, copying);
      if (!model_.nodes[transfer.from].usable) continue;
      add(loads, transfer.to, -load);
      add(loads, transfer.from, load + copying);
    }
    return loads;
  }

  double asked_of(const BucketRange& range) const {
    return std::accumulate(expected_.begin() + range.begin, expected_.begin() + range.end, 1e-9);
  }

  void add(std::vector<double>& loads, std::uint16_t node, double load) const {
    loads[node] += load / model_.nodes[node].capacity;
  }

  void decide(std::uint64_t round, RoundFigures& figures) {
    Random random = random_.fork();
    const MonotonicTime start = clock_.now();
    const Plan plan = algorithm_->step(model_, memory_, random);
    result_.planning_max = std::max(result_.planning_max, clock_.now() - start);
    const Status status = check(plan, model_);
    if (!status) check_failed(__FILE__, __LINE__, algorithm_->name().data(), status.to_string());
    const std::vector<Slice> before = model_.slices;
    carry_out(plan);
    begin_transfers(before, round, figures);
  }

  /// Begins the transfers from the placement `before` to the present one. Compares only these two: a replica that the
  /// step moved over an intermediate node is not copied there.
  void begin_transfers(const std::vector<Slice>& before, std::uint64_t round, RoundFigures& figures) {
    const auto all = static_cast<double>(model_.bytes());
    std::size_t old = 0;
    for (const Slice& slice : model_.slices) {
      while (before[old].range.end <= slice.range.begin) ++old;
      for (std::size_t i = old; i < before.size() && before[i].range.begin < slice.range.end; ++i) {
        const BucketRange shared{std::max(before[i].range.begin, slice.range.begin),
                                 std::min(before[i].range.end, slice.range.end)};
        const double part = static_cast<double>(shared.size()) / before[i].range.size();
        const auto bytes = static_cast<std::uint64_t>(part * static_cast<double>(before[i].bytes));
        for (const auto& [from, to] : replaced(before[i].holders, slice.holders)) {
          ++figures.moves;
          if (model_.nodes[from].usable) figures.bytes_part += static_cast<double>(bytes) / all;
          transfers_.push_back({shared, from, to, bytes, round + options_.move_rounds});
        }
      }
    }
  }

  /// Returns pairs (holder that left, holder that replaces it).
  static std::vector<std::pair<std::uint16_t, std::uint16_t>> replaced(const Holders& before, const Holders& after) {
    std::vector<std::pair<std::uint16_t, std::uint16_t>> pairs;
    auto gone = before.begin();
    for (const Holder& holder : after) {
      if (before.find(holder.node) != nullptr) continue;
      while (gone != before.end() && after.find(gone->node) != nullptr) ++gone;
      if (gone == before.end()) break;
      pairs.emplace_back(gone++->node, holder.node);
    }
    return pairs;
  }

  void carry_out(const Plan& plan) {
    for (const Move& move : plan.moves) {
      const Status status = apply(move, model_);
      if (!status) check_failed(__FILE__, __LINE__, "the plan can be carried out", status.to_string());
      const bool is_move = move.kind == MoveKind::Place && move.from != move.to;
      if (is_move && !model_.nodes[move.from].usable) take_new_home(move);
    }
  }

  /// The cluster itself finds another place for what was on a node that is gone: its new node is its home.
  void take_new_home(const Move& move) {
    for (std::uint32_t bucket = move.range.begin; bucket < move.range.end; ++bucket) {
      NodeList home{move.to};
      for (const std::uint16_t node : (*homes_)[bucket]) {
        if (node != move.from) home.push_back(node);
      }
      if (home.size() == (*homes_)[bucket].size()) (*homes_)[bucket] = home;
    }
  }

  void count_topics(std::uint64_t round) {
    if (model_.topics.empty() || round < options_.warm_up) return;
    double cost = 0.0;
    double even = 0.0;
    std::vector<double> matches(model_.nodes.size());
    for (const Topic& topic : model_.topics) {
      std::fill(matches.begin(), matches.end(), 0.0);
      double sum = 0.0;
      for (const auto& [bucket, count] : topic.matches) {
        matches[slice_at(bucket).holders[0].node] += count;
        sum += count;
      }
      cost += topic.frequency * *std::max_element(matches.begin(), matches.end());
      even += topic.frequency * sum / static_cast<double>(matches.size());
    }
    topic_costs_.push_back(cost / even);
  }

  void summarise() {
    std::vector<double> counted;
    for (const RoundFigures& round : result_.rounds) {
      result_.bytes_part_max = std::max(result_.bytes_part_max, round.bytes_part);
      if (round.round < options_.warm_up) continue;
      counted.push_back(round.imbalance);
      result_.moves_per_round += static_cast<double>(round.moves);
      result_.bytes_part_mean += round.bytes_part;
    }
    FJORD_CHECK(!counted.empty());
    const auto count = static_cast<double>(counted.size());
    result_.moves_per_round /= count;
    result_.bytes_part_mean /= count;
    result_.mean = std::accumulate(counted.begin(), counted.end(), 0.0) / count;
    std::sort(counted.begin(), counted.end());
    result_.p50 = counted[counted.size() / 2];
    result_.p95 = counted[counted.size() * 95 / 100];
    result_.max = counted.back();
    for (const RoundFigures& round : result_.rounds) {
      if (round.round < trace_.event_round() || round.imbalance >= kBalanced) continue;
      result_.rounds_to_balance = round.round - trace_.event_round();
      break;
    }
    for (const Slice& slice : model_.slices) result_.rows += rows_of(model_, slice);
    result_.slices = model_.slices.size();
    if (!topic_costs_.empty()) {
      result_.topic_cost =
          std::accumulate(topic_costs_.begin(), topic_costs_.end(), 0.0) / static_cast<double>(topic_costs_.size());
    }
  }

  const BalancingAlgorithm* algorithm_;
  Trace& trace_;
  const SimulationOptions& options_;
  const Clock& clock_;
  Random random_;
  BalanceModel model_;
  Memory memory_;
  std::vector<double> expected_;
  // First holders of each bucket; another node in place of one that is gone. The model refers to it.
  std::shared_ptr<std::vector<NodeList>> homes_ = std::make_shared<std::vector<NodeList>>();
  std::vector<Transfer> transfers_;
  std::vector<double> topic_costs_;
  SimulationResult result_;
};

}  // namespace

BalanceModel empty_model(const TraceOptions& options, unsigned redundancy) {
  BalanceModel model;
  model.redundancy = redundancy;
  for (std::uint32_t node = 0; node < options.nodes; ++node) model.nodes.push_back({.group = node});
  Random random(options.seed ^ 0xb17e5);
  const std::uint32_t step = std::max(1u, options.buckets / static_cast<std::uint32_t>(kSlicesPerNode * options.nodes));
  for (std::uint32_t bucket = 0; bucket < options.buckets; ++bucket) {
    if (bucket % step == 0) {
      model.slices.emplace_back();
      model.slices.back().range.begin = bucket;
    }
    model.slices.back().range.end = bucket + 1;
    model.slices.back().bytes += static_cast<std::uint64_t>(1e6 * std::exp(0.5 * draw_normal(random)));
  }
  return model;
}

SimulationResult simulate(const BalancingAlgorithm* algorithm, Trace& trace, const SimulationOptions& options,
                          const Clock& clock) {
  FJORD_CHECK(options.rounds > trace.event_round());
  return Simulation(algorithm, trace, options, clock).run();
}

}  // namespace fjord::balancer
