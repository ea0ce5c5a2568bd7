#include "fjord/sim/pipeline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include "fjord/common/hash.h"
#include "fjord/common/random.h"

namespace fjord::sim {
namespace {

double exponential(Random& random, double mean) { return -mean * std::log(1.0 - random.uniform()); }

/// Runs actions in the order of their times; actions of one time in the order in which they were added.
class Events {
 public:
  void at(double time, std::function<void()> action) { queue_.push({time, next_++, std::move(action)}); }
  double now() const { return now_; }
  void run() {
    while (!queue_.empty()) {
      const Event event = queue_.top();
      queue_.pop();
      now_ = event.time;
      event.action();
    }
  }

 private:
  struct Event {
    double time = 0.0;
    std::uint64_t number = 0;
    std::function<void()> action;
    bool operator<(const Event& other) const { return std::tie(other.time, other.number) < std::tie(time, number); }
  };
  std::priority_queue<Event> queue_;
  std::uint64_t next_ = 0;
  double now_ = 0.0;
};

/// Messages that arrive late, in the order in which they were sent.
class Link {
 public:
  Link(Events& events, Random random, double delay_max)
      : events_(events), random_(random), mean_(delay_max * std::pow(100.0, random_.uniform() - 1.0)) {}
  void send(std::function<void()> deliver) {
    last_ = std::max(last_, events_.now() + exponential(random_, mean_));
    events_.at(last_, std::move(deliver));
  }

 private:
  Events& events_;
  Random random_;
  double mean_;
  double last_ = 0.0;
};

class World {
 public:
  explicit World(const PipelineOptions& options)
      : options_(options), draws_(mix64(options.seed, 0x706970)), to_mapper_(link()), contents_(options.slaves) {
    for (std::uint32_t slice = 0; slice < options.slices; ++slice) {
      owners_.push_back(static_cast<std::uint32_t>(draws_.below(options.slaves)));
    }
    for (std::uint32_t item = 0; item < options.items; item += 2) {
      database_[item] = 1;
      contents_[owners_[item % options.slices]][item] = 1;
    }
    known_ = database_;
    versions_ = 1;
    for (std::uint32_t slave = 0; slave < options.slaves; ++slave) {
      to_router_.push_back(link());
      quantums_.push_back(link());
      to_slave_.push_back(link());
      routers_.emplace_back(
          DataRouter::Options{options.order, options.moved, slave, options.slices}, owners_, database_,
          [this, slave](std::uint32_t item, std::uint64_t version, std::uint64_t clock) {
            to_slave_[slave].send([this, slave, item, version, clock] { store(slave, item, version, clock); });
          });
    }
  }

  PipelineResult run() {
    draw_changes();
    draw_rounds();
    events_.run();
    compare();
    return result_;
  }

 private:
  Link link() { return {events_, draws_.fork(), options_.delay_max}; }

  void draw_changes() {
    double time = 0.0;
    for (std::uint64_t clock = 1; clock <= options_.changes; ++clock) {
      time += exponential(draws_, 1.0);
      const auto item = static_cast<std::uint32_t>(draws_.below(options_.items));
      const bool removes = draws_.chance(0.5);
      events_.at(time, [this, clock, item, removes] { change(clock, item, removes); });
    }
    end_ = time;
  }

  void change(std::uint64_t clock, std::uint32_t item, bool removes) {
    // Only an item that exists is removed.
    const DataChange change{clock, item, removes && database_.contains(item) ? 0 : ++versions_};
    if (change.version == 0) {
      database_.erase(item);
      ++result_.removals;
    } else {
      database_[item] = change.version;
    }
    changed_at_.push_back(events_.now());
    to_mapper_.send([this, change] { learn(change); });
    for (std::uint32_t i = 0; i < options_.slaves; ++i)
      to_router_[i].send([this, i, change] { routers_[i].take(change); });
  }

  /// Lets the mapper receive a change. After the last change the mapper sends a last quantum, so that no change waits
  /// for one.
  void learn(const DataChange& change) {
    clock_ = change.clock;
    if (change.version == 0) {
      known_.erase(change.item);
    } else {
      known_[change.item] = change.version;
    }
    if (clock_ == options_.changes) send_quantum({clock_, {}});
  }

  void draw_rounds() {
    for (double time = exponential(draws_, options_.round); time < end_; time += exponential(draws_, options_.round)) {
      const auto slice = static_cast<std::uint32_t>(draws_.below(options_.slices));
      const auto step = static_cast<std::uint32_t>(draws_.below(options_.slaves));
      events_.at(time, [this, slice, step] { balance(slice, step); });
    }
  }

  /// Makes one iteration of a balancing algorithm that moves one random slice, or none.
  void balance(std::uint32_t slice, std::uint32_t step) {
    Quantum quantum{clock_, {}};
    if (step != 0) {
      SliceMove move{slice, owners_[slice], (owners_[slice] + step) % options_.slaves, {}};
      for (const auto& [item, version] : known_) {
        if (item % options_.slices == slice) move.items.push_back(item);
      }
      owners_[slice] = move.to;
      quantum.moves.push_back(std::move(move));
      ++result_.moves;
    }
    send_quantum(quantum);
  }

  void send_quantum(const Quantum& quantum) {
    for (std::uint32_t i = 0; i < options_.slaves; ++i)
      quantums_[i].send([this, i, quantum] { routers_[i].take(quantum); });
  }

  void store(std::uint32_t slave, std::uint32_t item, std::uint64_t version, std::uint64_t clock) {
    if (version == 0) {
      contents_[slave].erase(item);
    } else {
      contents_[slave][item] = version;
    }
    if (clock == 0) return;
    ++result_.passed_on;
    result_.waited += events_.now() - changed_at_[clock - 1];
  }

  void compare() {
    for (std::uint32_t item = 0; item < options_.items; ++item) {
      const auto wanted = database_.find(item);
      for (std::uint32_t slave = 0; slave < options_.slaves; ++slave) {
        const auto found = contents_[slave].find(item);
        const bool is_there = found != contents_[slave].end();
        if (wanted == database_.end()) {
          result_.removals_lost += is_there ? 1 : 0;
        } else if (owners_[item % options_.slices] != slave) {
          result_.left_behind += is_there ? 1 : 0;
        } else if (!is_there) {
          ++result_.missing;
        } else {
          result_.outdated += found->second != wanted->second ? 1 : 0;
        }
      }
    }
    for (const DataRouter& router : routers_) result_.never_processed += router.waiting();
  }

  PipelineOptions options_;
  Random draws_;
  Events events_;
  Link to_mapper_;
  std::vector<Link> to_router_;
  std::vector<Link> quantums_;
  std::vector<Link> to_slave_;
  std::vector<DataRouter> routers_;
  std::vector<std::map<std::uint32_t, std::uint64_t>> contents_;  ///< By slave: version of each item.

  // --- The database

  std::map<std::uint32_t, std::uint64_t> database_;
  std::uint64_t versions_ = 0;
  std::vector<double> changed_at_;
  double end_ = 0.0;

  // --- The mapper

  std::map<std::uint32_t, std::uint64_t> known_;
  std::vector<std::uint32_t> owners_;
  std::uint64_t clock_ = 0;

  PipelineResult result_;
};

}  // namespace

PipelineResult run_pipeline(const PipelineOptions& options) { return World(options).run(); }

}  // namespace fjord::sim
