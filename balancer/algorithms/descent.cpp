// The default algorithm: moves load, one move at a time, from the hottest node to the coolest one.

#include <algorithm>
#include <cmath>
#include <set>

#include "algorithms/all.h"
#include "forecast.h"
#include "planner.h"

namespace fjord::balancer {
namespace {

constexpr double kGoal = 1.025;       // A step ends when the expected imbalance is below this.
constexpr double kGainMin = 0.01;     // Least decrease of the imbalance that is worth a step.
constexpr double kRounding = 1e-9;    // Relative error that rounding may cause in a sum of loads.
constexpr double kBytesFloor = 1e-4;  // Share of all bytes that is added to the bytes of each move, which are its cost.
/// Maximum number of slices with uneven read shares. Each of them is a row of the placement (SimulationResult::rows).
constexpr std::size_t kReadRowsMax = 1024;
constexpr double kRowsCrowded = 0.75;        // From this part of its rows in use on the table of overrides is emptied.
constexpr double kHomeBytesPart = 0.5;       // Part of a step's bytes that a full table gets for that.
constexpr std::size_t kSlicesPerNode = 400;  // While nodes have more slices on average, cold adjacent ones are merged.

class Descent final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "descent"; }
  std::string_view summary() const override {
    return "read shares first, then the move that takes most load off the hottest node for its bytes; forecasts loads";
  }

  /// Balances by bytes, because no load is known yet.
  Plan initialise(const BalanceModel& model, Random& random) const override {
    return bin_packing().initialise(model, random);
  }

  Plan step(const BalanceModel& model, Memory& memory, Random&) const override {
    Step step(forecast(model, memory), memory);
    Plan plan = step.run();
    remember_moves(plan, model.round, memory);
    return plan;
  }

 private:
  /// One step of the algorithm. Slices that the step splits off have no memory yet, so they do not move in this step.
  class Step {
   public:
    Step(const BalanceModel& expected, const Memory& memory)
        : planner_(expected), memory_(memory), bytes_floor_(kBytesFloor * static_cast<double>(expected.bytes())) {
      for (const Slice& slice : expected.slices) uneven_ += has_uneven_reads(slice) ? 1 : 0;
    }

    Plan run() {
      leave_gone_nodes(planner_);
      place_missing(planner_, [&](Planner::Index index) { return coolest_for(planner_, index); });
      if (planner_.imbalance() < kGoal + kGainMin) return planner_.take_plan();
      while (planner_.imbalance() > kGoal && shift_reads(planner_.hottest())) continue;
      while (planner_.imbalance() > kGoal && (move_one(planner_.hottest()) || swap_two(planner_.hottest()))) continue;
      send_home();
      split_hot();
      merge_cold();
      return planner_.take_plan();
    }

   private:
    void move(Planner::Index index, std::uint16_t from, std::uint16_t to, MoveReason reason) {
      planner_.move(index, from, to, reason);
      touched_.insert(index);
    }

    bool may_go(Planner::Index index) const {
      return index < memory_.slices.size() && !is_cooling_down(memory_.slices[index], planner_.model().round);
    }

    /// Moves reads of one slice of `hot` to another holder of the slice. Returns false if no such move is worth it.
    bool shift_reads(std::uint16_t hot) {
      Planner::Index best = 0;
      std::uint16_t target = hot;
      double most = 0.005 * planner_.mean();  // Shifting less load than this is not worth a row of the placement.
      for (const Planner::Index index : planner_.slices_of(hot)) {
        const Slice& slice = planner_.slice(index);
        if (slice.holders.size() < 2 || slice.in_transfer) continue;
        if (!has_uneven_reads(slice) && (uneven_ >= kReadRowsMax || planner_.rows_left() < slice.range.size()))
          continue;
        const double readable = slice.reads * slice.holders.find(hot)->read_share;
        for (const Holder& holder : slice.holders) {
          const double amount = std::min(readable, level_between(hot, holder.node));
          if (amount <= most) continue;
          most = amount;
          best = index;
          target = holder.node;
        }
      }
      if (target == hot) return false;
      uneven_ += has_uneven_reads(planner_.slice(best)) ? 0 : 1;
      touched_.insert(best);
      planner_.shift_reads(best, hot, target, most / planner_.slice(best).reads);
      return true;
    }

    /// Returns the smaller of two loads: the load whose move from `hot` to `cool` makes both equally loaded, and the
    /// load whose move brings `hot` down to the mean.
    double level_between(std::uint16_t hot, std::uint16_t cool) const {
      const double above_mean = (planner_.load(hot) - planner_.mean()) * planner_.model().nodes[hot].capacity;
      return std::min(equal_between(hot, cool), above_mean);
    }

    /// Returns the load whose move from `hot` to `cool` makes both equally loaded.
    double equal_between(std::uint16_t hot, std::uint16_t cool) const {
      const double a = planner_.model().nodes[hot].capacity;
      const double b = planner_.model().nodes[cool].capacity;
      return (planner_.load(hot) - planner_.load(cool)) / (1.0 / a + 1.0 / b);
    }

    /// Moves one replica off `hot`. Returns false if no move lowers the greater of the two nodes' loads.
    bool move_one(std::uint16_t hot) {
      for (const auto& [load, cool] : planner_.by_load()) {
        if (load >= planner_.mean()) return false;
        if (const auto index = best_move(hot, cool)) {
          move(*index, hot, cool, MoveReason::Hot);
          return true;
        }
      }
      return false;
    }

    /// While the table of overrides is more than kRowsCrowded full, moves cold replicas home, where they need no row.
    /// The fuller the table, the more bytes go for it. Without this the rows of buckets that were hot once would fill
    /// the table, and hot ones could not move any more.
    void send_home() {
      const BalanceModel& model = planner_.model();
      const double full = static_cast<double>(planner_.rows()) / static_cast<double>(model.rows_max);
      if (model.homes == nullptr || full < kRowsCrowded) return;
      const double part = kHomeBytesPart * std::min(1.0, (full - kRowsCrowded) / (1.0 - kRowsCrowded));
      double bytes_left = part * static_cast<double>(model.step_bytes_max);
      for (const Way& way : ways_home()) {
        const Slice& slice = planner_.slice(way.index);
        if (static_cast<double>(slice.bytes) > bytes_left) break;
        if (touched_.contains(way.index) || !planner_.may_move(way.index, way.node, way.home)) continue;
        const double load = way.load / model.nodes[way.home].capacity;
        if (planner_.load(way.home) + load > planner_.mean()) continue;
        bytes_left -= static_cast<double>(slice.bytes);
        move(way.index, way.node, way.home, MoveReason::Home);
      }
    }

    /// A move of a replica that frees rows.
    struct Way {
      double load;
      Planner::Index index;
      std::uint16_t node;
      std::uint16_t home;
    };

    /// Returns all of them that the cool-down allows, the coldest replica first.
    std::vector<Way> ways_home() const {
      std::vector<Way> ways;
      for (Planner::Index index = 0; index < planner_.index_end(); ++index) {
        if (!planner_.is_alive(index) || !may_go(index)) continue;
        const Slice& slice = planner_.slice(index);
        for (const Holder& holder : slice.holders) {
          for (const std::uint16_t home : (*planner_.model().homes)[slice.range.begin]) {
            if (planner_.rows_added(index, holder.node, home) >= 0) continue;
            if (has_just_left(memory_.slices[index], home, planner_.model().round)) continue;
            ways.push_back({slice.load_at(holder), index, holder.node, home});
          }
        }
      }
      std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.load < b.load; });
      return ways;
    }

    std::optional<Planner::Index> best_move(std::uint16_t hot, std::uint16_t cool) const {
      const double a = planner_.model().nodes[hot].capacity;
      const double b = planner_.model().nodes[cool].capacity;
      const double difference = planner_.load(hot) - planner_.load(cool);
      std::optional<Planner::Index> best;
      double highest = 0.0;
      for (const Planner::Index index : planner_.slices_of(hot)) {
        const Slice& slice = planner_.slice(index);
        const double load = slice.load_at(*slice.holders.find(hot));
        // The move lowers the sum of both nodes' squared loads, each weighted by the node's capacity, by twice this.
        const double gain = load * (difference - load * (1.0 / a + 1.0 / b) / 2.0);
        // A gain within the rounding error is no gain: slices without bytes would otherwise move back and forth for
        // ever.
        if (gain <= kRounding * load * difference) continue;
        const double score = gain / (static_cast<double>(slice.bytes) + bytes_floor_);
        if (score <= highest || !may_go(index) || !planner_.may_move(index, hot, cool)) continue;
        if (memory_.slices[index].moved_round != 0 && memory_.slices[index].moved_from == cool) continue;
        highest = score;
        best = index;
      }
      return best;
    }

    /// Swaps a slice of `hot` for a less loaded slice of the coolest node. Returns false if no swap makes the loads of
    /// the two nodes clearly more equal.
    bool swap_two(std::uint16_t hot) {
      const std::uint16_t cool = planner_.coolest();
      const double wanted = equal_between(hot, cool);
      std::optional<std::pair<Planner::Index, Planner::Index>> best;
      // Smallest distance so far between a swap's load and the load that makes both nodes equal.
      double closest = wanted;
      for (const Planner::Index out : planner_.slices_of(hot)) {
        if (!may_go(out) || !planner_.may_move(out, hot, cool)) continue;
        const double out_load = planner_.slice(out).load_at(*planner_.slice(out).holders.find(hot));
        if (out_load < wanted) continue;
        for (const Planner::Index in : planner_.slices_of(cool)) {
          const double in_load = planner_.slice(in).load_at(*planner_.slice(in).holders.find(cool));
          const double distance = std::abs(out_load - in_load - wanted);
          if (distance >= closest || !may_go(in) || !planner_.may_move(in, cool, hot)) continue;
          if (planner_.slice(out).bytes + planner_.slice(in).bytes > planner_.budget()) continue;
          closest = distance;
          best = {out, in};
        }
      }
      if (!best || closest > 0.9 * wanted) return false;
      move(best->first, hot, cool, MoveReason::Hot);
      move(best->second, cool, hot, MoveReason::Swap);
      return true;
    }

    /// Splits large slices of nodes that are still too hot: those with more than half of the load that the node should
    /// lose.
    void split_hot() {
      for (std::uint16_t node = 0; node < planner_.model().nodes.size(); ++node) {
        const double excess = planner_.load(node) - planner_.mean();
        if (!planner_.model().nodes[node].usable || excess <= (kGoal - 1.0) * planner_.mean()) continue;
        const std::vector<Planner::Index> held = planner_.slices_of(node);
        for (const Planner::Index index : held) {
          const Slice& slice = planner_.slice(index);
          if (slice.in_transfer || slice.load_at(*slice.holders.find(node)) <= excess / 2.0) continue;
          if (const auto at = cut_of(planner_, index)) planner_.split(index, *at, MoveReason::TooHotToMove);
        }
      }
    }

    void merge_cold() {
      std::size_t wanted = kSlicesPerNode * planner_.model().nodes.size();
      const double most =
          planner_.mean() * static_cast<double>(planner_.model().nodes.size()) / static_cast<double>(wanted) / 2.0;
      std::optional<Planner::Index> index = 0;
      while (index && planner_.count() > wanted) {
        const std::optional<Planner::Index> next = planner_.next(*index);
        if (!next) break;
        const Slice& a = planner_.slice(*index);
        const Slice& b = planner_.slice(*next);
        const bool fits = a.holders == b.holders && !a.in_transfer && !b.in_transfer && a.load() + b.load() < most;
        if (fits && may_go(*index) && may_go(*next)) {
          planner_.merge_with_next(*index);
        } else {
          index = next;
        }
      }
    }

    Planner planner_;
    const Memory& memory_;
    double bytes_floor_;
    std::size_t uneven_ = 0;
    std::set<Planner::Index> touched_;  ///< Slices of which this step has moved a replica or reads.
  };
};

}  // namespace

const BalancingAlgorithm& descent() {
  static const Descent algorithm;
  return algorithm;
}

}  // namespace fjord::balancer
