#include "fjord/balancer/trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace fjord::balancer {
namespace {

constexpr std::uint64_t kEventRound = 60;

/// Scales the numbers so that they add up to `sum`.
void scale_to(std::span<double> numbers, double sum) {
  const double now = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  for (double& number : numbers) number *= sum / now;
}

/// Draws loads of buckets from a lognormal distribution, as loads of independent users are distributed.
std::vector<double> lognormal(std::uint32_t buckets, double sigma, double sum, Random& random) {
  std::vector<double> loads(buckets);
  for (double& load : loads) load = std::exp(sigma * draw_normal(random));
  scale_to(loads, sum);
  return loads;
}

std::vector<double> zipf_weights(std::size_t count, double exponent) {
  std::vector<double> weights(count);
  for (std::size_t i = 0; i < count; ++i) weights[i] = std::pow(static_cast<double>(i + 1), -exponent);
  scale_to(weights, 1.0);
  return weights;
}

template <typename T>
void shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

/// Base class of the traces. Its own load of a bucket does not change over time; derived classes change it.
class SteadyTrace : public Trace {
 public:
  explicit SteadyTrace(const TraceOptions& options)
      : options_(options), random_(options.seed), base_(lognormal(options.buckets, 0.8, options.operations, random_)) {}

  void fill(std::uint64_t, std::span<double> operations) override {
    std::copy(base_.begin(), base_.end(), operations.begin());
  }

 protected:
  TraceOptions options_;
  Random random_;
  std::vector<double> base_;
};

class ZipfTrace final : public SteadyTrace {
 public:
  explicit ZipfTrace(const TraceOptions& options) : SteadyTrace(options) {
    base_ = zipf_weights(options.buckets, 0.9);
    shuffle(base_, random_);
    scale_to(base_, options.operations);
  }
  unsigned redundancy() const override { return 2; }
};

/// Puts 30 % of the load on hot buckets. Each stays hot for 60 rounds; its load rises in the first 10 and falls in the
/// last 10. There are 200 hot buckets for each 20 nodes, with the same weights, so that the load of the hottest one, in
/// relation to that of a node, is the same in clusters of any size.
class MovingHotspotTrace final : public SteadyTrace {
 public:
  explicit MovingHotspotTrace(const TraceOptions& options) : SteadyTrace(options) {
    const std::vector<double> weights = zipf_weights(200, 0.9);
    for (std::size_t part = 0; part < std::max<std::size_t>(1, options.nodes / 20); ++part) {
      weights_.insert(weights_.end(), weights.begin(), weights.end());
    }
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      hot_.push_back({static_cast<std::uint32_t>(random_.below(options.buckets)), random_.below(life_)});
    }
  }

  void fill(std::uint64_t round, std::span<double> operations) override {
    for (std::size_t i = 0; i < base_.size(); ++i) operations[i] = base_[i] * (1.0 - kHotPart);
    std::vector<double> loads(hot_.size());
    for (std::size_t i = 0; i < hot_.size(); ++i) {
      const std::uint64_t age = (round + hot_[i].phase) % life_;
      if (age == 0 && round > 0) hot_[i].bucket = static_cast<std::uint32_t>(random_.below(operations.size()));
      const auto ramp = static_cast<double>(std::min({age, life_ - age, ramp_})) / static_cast<double>(ramp_);
      loads[i] = weights_[i] * ramp;
    }
    scale_to(loads, kHotPart * options_.operations);
    for (std::size_t i = 0; i < hot_.size(); ++i) operations[hot_[i].bucket] += loads[i];
  }

 private:
  static constexpr double kHotPart = 0.3;
  const std::uint64_t life_ = static_cast<std::uint64_t>(60.0 / options_.round);
  const std::uint64_t ramp_ = static_cast<std::uint64_t>(10.0 / options_.round);
  struct Hot {
    std::uint32_t bucket;
    std::uint64_t phase;
  };
  std::vector<double> weights_;
  std::vector<Hot> hot_;
};

/// From the event on, one bucket at a time suddenly has 80 % of a node's load; another bucket after every 60 rounds.
class FlashTrace final : public SteadyTrace {
 public:
  using SteadyTrace::SteadyTrace;
  unsigned redundancy() const override { return 2; }
  std::uint64_t event_round() const override { return kEventRound; }

  void fill(std::uint64_t round, std::span<double> operations) override {
    SteadyTrace::fill(round, operations);
    if (round < kEventRound) return;
    if (round % kEventRound == 0) bucket_ = random_.below(operations.size());
    const double extra = 0.8 / static_cast<double>(options_.nodes);
    for (double& load : operations) load *= 1.0 - extra;
    operations[bucket_] += extra * options_.operations;
  }

 private:
  std::uint64_t bucket_ = 0;
};

/// Each half of the buckets is busy while the other is not, like users of two continents.
class DiurnalTrace final : public SteadyTrace {
 public:
  explicit DiurnalTrace(const TraceOptions& options) : SteadyTrace(options) {
    for (std::uint32_t i = 0; i < options.buckets; ++i) phase_.push_back(random_.chance(0.5) ? 1.0 : -1.0);
  }
  void fill(std::uint64_t round, std::span<double> operations) override {
    const double wave = 0.6 * std::sin(2.0 * std::numbers::pi * static_cast<double>(round) / 144.0);
    for (std::size_t i = 0; i < base_.size(); ++i) operations[i] = base_[i] * (1.0 + phase_[i] * wave);
    scale_to(operations, options_.operations);
  }

 private:
  std::vector<double> phase_;
};

/// What users ask for takes two rounds to come by again: each bucket is busy in every other round.
class AlternatingTrace final : public SteadyTrace {
 public:
  explicit AlternatingTrace(const TraceOptions& options)
      : SteadyTrace(options), other_(lognormal(options.buckets, 0.8, options.operations, random_)) {}
  void fill(std::uint64_t round, std::span<double> operations) override {
    const std::vector<double>& now = round % 2 == 0 ? base_ : other_;
    std::copy(now.begin(), now.end(), operations.begin());
  }

 private:
  std::vector<double> other_;
};

/// At the event a third of the buckets changes its load.
class StepTrace final : public SteadyTrace {
 public:
  using SteadyTrace::SteadyTrace;
  std::uint64_t event_round() const override { return kEventRound; }
  void fill(std::uint64_t round, std::span<double> operations) override {
    if (round == kEventRound) {
      const std::vector<double> other = lognormal(options_.buckets, 1.6, options_.operations, random_);
      for (std::size_t i = 0; i < base_.size() / 3; ++i) base_[i] = other[i];
      scale_to(base_, options_.operations);
    }
    SteadyTrace::fill(round, operations);
  }
};

class NodeAddTrace final : public SteadyTrace {
 public:
  using SteadyTrace::SteadyTrace;
  std::uint64_t event_round() const override { return kEventRound; }
  void change_nodes(std::uint64_t round, std::vector<BalanceNode>& nodes) override {
    if (round == kEventRound) nodes.push_back({.group = static_cast<std::uint32_t>(nodes.size())});
  }
};

class NodeLossTrace final : public SteadyTrace {
 public:
  using SteadyTrace::SteadyTrace;
  unsigned redundancy() const override { return 2; }
  std::uint64_t event_round() const override { return kEventRound; }
  void change_nodes(std::uint64_t round, std::vector<BalanceNode>& nodes) override {
    if (round == kEventRound) nodes[nodes.size() / 2].usable = false;
  }
};

/// Queries of 200 topics, each of which finds its candidates in 50 buckets. The frequencies of topics change gradually.
class TopicsTrace final : public SteadyTrace {
 public:
  explicit TopicsTrace(const TraceOptions& options) : SteadyTrace(options), topics_(kTopics) {
    const std::vector<double> weights = zipf_weights(kTopics, 0.8);
    for (std::size_t i = 0; i < kTopics; ++i) {
      topics_[i].frequency = weights[i];
      const std::uint64_t first = random_.below(options.buckets);
      for (std::size_t k = 0; k < kBuckets; ++k) {
        // Half of the buckets of a topic lie side by side, like the groups of one advertiser.
        const std::uint64_t bucket = k % 2 == 0 ? first + k : random_.below(options.buckets);
        topics_[i].matches.emplace_back(static_cast<std::uint32_t>(bucket % options.buckets),
                                        1.0 + 9.0 * random_.uniform());
      }
    }
  }

  void fill(std::uint64_t, std::span<double> operations) override {
    for (Topic& topic : topics_) topic.frequency *= std::exp(0.02 * draw_normal(random_));
    std::fill(operations.begin(), operations.end(), 0.0);
    for (const Topic& topic : topics_) {
      for (const auto& [bucket, matches] : topic.matches) operations[bucket] += topic.frequency * matches;
    }
    scale_to(operations, kTopicPart * options_.operations);
    for (std::size_t i = 0; i < operations.size(); ++i) operations[i] += (1.0 - kTopicPart) * base_[i];
  }
  std::vector<Topic> topics() const override { return topics_; }

 private:
  static constexpr std::size_t kTopics = 200;
  static constexpr std::size_t kBuckets = 50;
  static constexpr double kTopicPart = 0.5;
  std::vector<Topic> topics_;
};

constexpr std::array<std::string_view, 9> kNames{"zipf", "moving-hotspot", "flash",     "diurnal", "alternating",
                                                 "step", "node-add",       "node-loss", "topics"};

}  // namespace

void Trace::change_nodes(std::uint64_t, std::vector<BalanceNode>&) {}

std::span<const std::string_view> trace_names() { return kNames; }

std::unique_ptr<Trace> make_trace(std::string_view name, const TraceOptions& options) {
  if (name == "zipf") return std::make_unique<ZipfTrace>(options);
  if (name == "moving-hotspot") return std::make_unique<MovingHotspotTrace>(options);
  if (name == "flash") return std::make_unique<FlashTrace>(options);
  if (name == "diurnal") return std::make_unique<DiurnalTrace>(options);
  if (name == "alternating") return std::make_unique<AlternatingTrace>(options);
  if (name == "step") return std::make_unique<StepTrace>(options);
  if (name == "node-add") return std::make_unique<NodeAddTrace>(options);
  if (name == "node-loss") return std::make_unique<NodeLossTrace>(options);
  if (name == "topics") return std::make_unique<TopicsTrace>(options);
  return nullptr;
}

double draw_normal(Random& random) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random.uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * random.uniform());
}

double draw_poisson(Random& random, double mean) {
  if (mean > 30.0) return std::max(0.0, std::round(mean + std::sqrt(mean) * draw_normal(random)));
  const double limit = std::exp(-mean);
  double product = random.uniform();
  double count = 0.0;
  while (product > limit) {
    product *= random.uniform();
    count += 1.0;
  }
  return count;
}

}  // namespace fjord::balancer
