#include "fault.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fjord/common/check.h"
#include "fjord/fleetcontroller/memory_state_store.h"

namespace fjord::sim {
namespace {

/// Longest delay of a message, with the spikes that a fault adds.
constexpr Duration kLongestDelay = seconds(7);
constexpr const char* kReads[] = {"balancer.reads=affinity", "balancer.reads=least-loaded", "balancer.reads=random"};

bool is_one_of(FaultKind kind, std::initializer_list<FaultKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// True if this fault makes nodes lose acknowledged data.
bool loses_data(FaultKind kind, const SimClusterOptions& shape) {
  return is_one_of(kind, {FaultKind::Wipe, FaultKind::Corruption}) || (kind == FaultKind::PowerLoss && !shape.sync);
}

std::vector<std::string> names(const std::string& role, unsigned count) {
  std::vector<std::string> result;
  for (unsigned i = 0; i < count; ++i) result.push_back(role + "." + std::to_string(i));
  return result;
}

void shuffle(std::vector<std::string>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

/// Draws faults one after the other.
class Drawer {
 public:
  Drawer(const FaultPlan& plan, const SimClusterOptions& shape, Random& random)
      : plan_(plan),
        random_(random),
        storage_(names("storage", shape.storage_nodes)),
        distributors_(names("distributor", shape.distributors)),
        controllers_(names("fleetcontroller", shape.controllers)),
        clients_(names("client", plan.clients)) {
    bool loses = false;
    for (const FaultKind kind : plan.kinds) {
      if (loses_data(kind, shape) && shape.redundancy == 1) continue;
      loses = loses || loses_data(kind, shape);
      kinds_.push_back(kind);
    }
    mortal_ = storage_;
    shuffle(mortal_, random_);
    // If no fault loses data, all nodes may be down at once: that costs time, but no data.
    if (loses) mortal_.resize(shape.redundancy - 1);
    gentle_ = loses;
    racks_ = racks_of(shape);
    redundancy_ = shape.redundancy;
    bits_ = shape.bits;
    while ((1U << bits_min_) < shape.stripes) ++bits_min_;
    sync_ = shape.sync && !loses;
  }

  std::vector<Fault> draw() {
    std::vector<Fault> faults;
    if (kinds_.empty()) return faults;
    for (unsigned i = 0; i < plan_.faults; ++i) {
      Fault fault;
      fault.number = i;
      fault.kind = kinds_[random_.below(kinds_.size())];
      fault.at = Duration(random_.below(static_cast<std::uint64_t>(plan_.span.count())));
      draw_details(fault);
      faults.push_back(std::move(fault));
    }
    std::sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) { return a.at < b.at; });
    for (unsigned i = 0; i < faults.size(); ++i) faults[i].number = i;
    return faults;
  }

 private:
  Duration between(std::int64_t low_ms, std::int64_t high_ms) {
    return milliseconds(low_ms) + Duration(random_.below(static_cast<std::uint64_t>((high_ms - low_ms) * 1000)));
  }
  const std::string& one_of(const std::vector<std::string>& names) { return names[random_.below(names.size())]; }

  /// Returns the processes that may be stopped or cut off.
  std::vector<std::string> isolable() {
    // Only if no fault loses data: without a controller every node counts as down, also the peers of a wiped node.
    if (!gentle_ && random_.chance(0.1)) return {one_of(controllers_)};
    std::vector<std::string> some = mortal_;
    some.insert(some.end(), distributors_.begin(), distributors_.end());
    if (!gentle_) some.push_back(one_of(controllers_));
    shuffle(some, random_);
    return some;
  }
  std::vector<std::string> some_isolable() {
    std::vector<std::string> some = isolable();
    some.resize(1 + random_.below((some.size() + 1) / 2));
    // Adds some clients to this side of the cut; they may not notice it.
    for (const std::string& client : clients_) {
      if (random_.chance(0.4)) some.push_back(client);
    }
    return some;
  }

  void draw_details(Fault& fault) {
    fault.length = between(500, 8000);
    switch (fault.kind) {
      case FaultKind::StorageCrash:
      case FaultKind::DistributorCrash:
      case FaultKind::ControllerCrash:
      case FaultKind::PowerLoss:
      case FaultKind::Wipe:
      case FaultKind::Pause:
        draw_stop(fault);
        break;
      case FaultKind::Drop:
      case FaultKind::Duplicate:
      case FaultKind::Delay:
      case FaultKind::Partition:
      case FaultKind::OneWay:
      case FaultKind::Bridge:
      case FaultKind::Swizzle:
      case FaultKind::CutTogether:
        draw_network(fault);
        break;
      case FaultKind::ClockSkew:
      case FaultKind::ClockJump:
        draw_clock(fault);
        break;
      case FaultKind::SlowDisk:
      case FaultKind::DiskFull:
      case FaultKind::FullNode:
      case FaultKind::Corruption:
      case FaultKind::StoreCut:
        draw_disk(fault);
        break;
      default:
        draw_membership(fault);
        break;
    }
  }

  /// Draws the fault of processes that end or stand still.
  void draw_stop(Fault& fault) {
    switch (fault.kind) {
      case FaultKind::StorageCrash:
        fault.nodes = {one_of(mortal_)};
        fault.length = between(50, 6000);
        break;
      case FaultKind::DistributorCrash:
        fault.nodes = {one_of(distributors_)};
        fault.length = between(50, 6000);
        break;
      case FaultKind::ControllerCrash:
        fault.nodes = {random_.chance(0.6) ? std::string("leader") : one_of(controllers_)};
        fault.length = between(10, 5000);
        break;
      case FaultKind::PowerLoss:
        fault.nodes = {random_.chance(0.1) ? one_of(controllers_) : one_of(mortal_)};
        // Synced data survives even if all storage nodes lose power.
        if (sync_ && random_.chance(0.5)) fault.nodes = storage_;
        fault.length = between(50, 5000);
        break;
      case FaultKind::Wipe:
        fault.nodes = {one_of(mortal_)};
        fault.length = between(50, 4000);
        break;
      case FaultKind::Pause:
        fault.nodes = {random_.chance(0.5) ? one_of(distributors_) : isolable().front()};
        fault.length = Duration(static_cast<std::int64_t>(100'000 * std::pow(600.0, random_.uniform())));
        break;
      default:
        break;
    }
  }

  void draw_network(Fault& fault) {
    switch (fault.kind) {
      case FaultKind::Drop:
        fault.rate = random_.uniform() * (gentle_ ? 0.05 : 0.4);
        break;
      case FaultKind::Duplicate:
        fault.rate = random_.uniform() * 0.5;
        break;
      case FaultKind::Delay:
        fault.rate = random_.uniform() * 0.3;
        fault.amount = between(1, gentle_ ? 500 : 3000).count();
        break;
      case FaultKind::Partition:
      case FaultKind::OneWay:
        fault.nodes = some_isolable();
        break;
      case FaultKind::Bridge:
        draw_bridge(fault);
        break;
      case FaultKind::Swizzle:
        fault.nodes = isolable();
        fault.length = between(2000, 10'000);
        break;
      case FaultKind::CutTogether:
        fault.nodes = {one_of(mortal_), one_of(distributors_)};
        // The last client only reads and does not notice the cut. The cut lasts long enough for the other processes to
        // go on without the two.
        fault.others = {clients_.back()};
        fault.length = between(6000, 15'000);
        fault.at /= 2;
        break;
      default:
        break;
    }
  }

  /// Draws the fault of a node's disk, or of the store that controllers share.
  void draw_disk(Fault& fault) {
    switch (fault.kind) {
      case FaultKind::SlowDisk:
        fault.nodes = {one_of(mortal_)};
        fault.amount = between(1, 20).count();
        break;
      case FaultKind::DiskFull:
        fault.nodes = {one_of(storage_)};
        fault.amount = static_cast<std::int64_t>(random_.below(40'000));
        break;
      case FaultKind::FullNode:
        // Fills the disk to a level between the warning of operators and the one at which only removes are accepted.
        fault.nodes = {one_of(storage_)};
        fault.amount = 84 + static_cast<std::int64_t>(random_.below(17));
        fault.at /= 3;
        fault.length = between(6000, 30'000);
        break;
      case FaultKind::Corruption:
        fault.nodes = {mortal_.front()};
        fault.amount = 1 + static_cast<std::int64_t>(random_.below(4));
        break;
      case FaultKind::StoreCut:
        fault.nodes = {random_.chance(0.7) ? std::string("leader") : one_of(controllers_)};
        break;
      default:
        break;
    }
  }

  void draw_membership(Fault& fault) {
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random_.below(n)); };
    fault.length = between(2000, 10'000);
    switch (fault.kind) {
      case FaultKind::NodeAdd:
        fault.nodes = {random_.chance(0.15) ? "distributor" : "storage"};
        if (racks_ > 0) fault.others = {fmt::format("rack_{}", below(racks_))};
        break;
      case FaultKind::NodeRemove:
        fault.nodes = {one_of(storage_)};
        fault.amount = random_.chance(0.3) ? 1 : 0;  // 1: the order to remove the node is taken back.
        break;
      case FaultKind::Maintenance:
        fault.nodes = {one_of(mortal_)};
        break;
      case FaultKind::MaintenanceLong:
        fault.nodes = {one_of(mortal_)};
        fault.at /= 3;
        fault.length = between(8000, 40'000);
        break;
      case FaultKind::ClusterDown:
        fault.nodes = {one_of(mortal_)};
        if (mortal_.size() > 1 && random_.chance(0.5)) fault.nodes = {mortal_[0], mortal_[1]};
        fault.amount = 40 + below(61);
        break;
      case FaultKind::Capacity:
        fault.nodes = {one_of(storage_)};
        fault.amount = 25 << below(5);
        break;
      case FaultKind::Redundancy: {
        // If the run may lose data, the redundancy never falls below that of its start.
        const std::int64_t least = gentle_ ? redundancy_ : 1;
        const std::int64_t most = racks_ > 0 ? racks_ : std::min<std::int64_t>(4, std::ssize(storage_));
        fault.amount = least + below(static_cast<std::uint64_t>(std::max<std::int64_t>(most - least, 0) + 1));
        break;
      }
      case FaultKind::Bits:
        fault.amount = std::max<std::int64_t>(bits_min_, bits_ - 2 + below(5));
        break;
      case FaultKind::Limits:
        fault.amount = random_.chance(0.25) ? 0 : 2 + below(30);
        break;
      case FaultKind::Balance:
        fault.amount = 300 + below(1200);
        fault.length = between(3000, 15'000);
        break;
      default:
        break;
    }
  }

  static unsigned racks_of(const SimClusterOptions& shape) {
    unsigned racks = 0;
    while (shape.distribution.find(fmt::format("(rack_{} ", racks)) != std::string::npos) ++racks;
    return racks;
  }

  void draw_bridge(Fault& fault) {
    fault.nodes = some_isolable();
    std::vector<std::string> rest;
    for (const auto* role : {&storage_, &distributors_}) {
      for (const std::string& name : *role) {
        if (std::find(fault.nodes.begin(), fault.nodes.end(), name) == fault.nodes.end()) rest.push_back(name);
      }
    }
    if (!rest.empty()) fault.others = {one_of(rest)};
  }

  void draw_clock(Fault& fault) {
    static constexpr std::int64_t kHourMs = 3'600'000;
    std::vector<std::string> machines = storage_;
    machines.insert(machines.end(), controllers_.begin(), controllers_.end());
    machines.insert(machines.end(), distributors_.begin(), distributors_.end());
    fault.nodes = {one_of(machines)};
    const Duration off = random_.chance(0.5) ? between(1, kHourMs) : between(1, 10'000);
    fault.amount = random_.chance(0.5) ? off.count() : -off.count();
    if (fault.kind == FaultKind::ClockJump) fault.length = plan_.span;
  }

  const FaultPlan& plan_;
  Random& random_;
  std::vector<std::string> storage_;
  std::vector<std::string> distributors_;
  std::vector<std::string> controllers_;
  std::vector<std::string> clients_;
  std::vector<FaultKind> kinds_;
  std::vector<std::string> mortal_;  ///< Storage nodes that may be down at some time.
  bool sync_ = false;                ///< Writes are synced, and no other fault loses data.
  bool gentle_ = false;              ///< Some fault loses data, so the other nodes must not appear to be down.
  unsigned racks_ = 0;
  unsigned redundancy_ = 1;
  unsigned bits_ = 1;
  unsigned bits_min_ = 1;  ///< The fewest distribution bits that the stripes of storage nodes need.
};

}  // namespace

std::string describe(const Fault& fault) {
  std::string text = fmt::format("#{} {}", fault.number, to_string(fault.kind));
  if (!fault.nodes.empty()) text += fmt::format(" of {}", fmt::join(fault.nodes, " "));
  if (!fault.others.empty()) text += fmt::format(" (both reach {})", fmt::join(fault.others, " "));
  if (is_drill(fault.kind)) return text;
  text += fmt::format(" from {:.3f} s for {:.3f} s", static_cast<double>(fault.at.count()) / 1e6,
                      static_cast<double>(fault.length.count()) / 1e6);
  if (fault.rate > 0) text += fmt::format(", {:.1f} %", 100 * fault.rate);
  if (fault.amount != 0) text += fmt::format(", {}", fault.amount);
  return text;
}

std::vector<Fault> draw_faults(const FaultPlan& plan, const SimClusterOptions& shape, Random& random) {
  return Drawer(plan, shape, random).draw();
}

FaultInjector::FaultInjector(SimCluster& cluster, std::vector<Fault> faults, const Exposure& exposure)
    : cluster_(cluster), faults_(std::move(faults)), exposure_(exposure), active_(faults_.size()), operator_(cluster) {}

void FaultInjector::start() {
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    cluster_.scheduler().outside().post_after(faults_[i].at, [this, i] {
      if (!stopped_) begin(i);
    });
  }
}

void FaultInjector::stop() {
  stopped_ = true;
  for (std::size_t i = 0; i < faults_.size(); ++i) end(i);
  cluster_.restart_everything();
  is_late_possible_ = std::any_of(faults_.begin(), faults_.end(), [](const Fault& fault) {
    return is_one_of(fault.kind, {FaultKind::Maintenance, FaultKind::MaintenanceLong, FaultKind::NodeRemove});
  });
  if (!is_late_possible_) return;
  cluster_.scheduler().outside().post_after(kLongestDelay, [this] {
    is_late_possible_ = false;
    for (const std::string& name : std::exchange(brought_back_, {})) bring_back(name);
  });
}

void FaultInjector::note_at_end(unsigned invariant) {
  for (const FaultKind kind : exercised_kinds_) coverage_.add(kind, invariant);
}

/// True if a call is pending at one of the nodes that the fault is about to hit.
bool FaultInjector::is_under_way(const Fault& fault) const {
  return std::any_of(fault.nodes.begin(), fault.nodes.end(), [&](const std::string& name) {
    return cluster_.alive(name) && cluster_.network().calls_pending(name) > 0;
  });
}

void FaultInjector::begin(std::size_t index) {
  Fault& fault = faults_[index];
  Active& active = active_[index];
  active.begun = true;
  for (std::string& name : fault.nodes) {
    if (name == "leader") name = cluster_.leader();
  }
  active.before = exposure_.counts();
  cluster_.scheduler().trace("fault " + describe(fault));
  apply(index);
  cluster_.scheduler().outside().post_after(fault.length, [this, index] { end(index); });
}

void FaultInjector::apply(std::size_t index) {
  const Fault& fault = faults_[index];
  Active& active = active_[index];
  switch (fault.kind) {
    case FaultKind::StorageCrash:
    case FaultKind::DistributorCrash:
    case FaultKind::ControllerCrash:
    case FaultKind::PowerLoss:
    case FaultKind::Wipe:
    case FaultKind::Pause:
      stop_nodes(fault, active);
      break;
    case FaultKind::Drop:
    case FaultKind::Duplicate:
    case FaultKind::Delay:
      disturb(fault, active);
      break;
    case FaultKind::Partition:
    case FaultKind::OneWay:
    case FaultKind::Bridge:
    case FaultKind::CutTogether:
      cut(fault, active);
      break;
    case FaultKind::Swizzle:
      clog_one_by_one(index);
      break;
    case FaultKind::ClockSkew:
    case FaultKind::ClockJump:
      cluster_.set_clock_skew(fault.nodes.front(), Duration(fault.amount));
      active.hits = cluster_.alive(fault.nodes.front()) ? 1 : 0;
      break;
    case FaultKind::WrongClock:  // It is wrong since before the start.
      active.hits = 1;
      break;
    case FaultKind::SlowDisk:
      cluster_.slow_disk(fault.nodes.front(), Duration(fault.amount), &active.hits);
      break;
    case FaultKind::DiskFull:
      cluster_.limit_disk(fault.nodes.front(), static_cast<std::uint64_t>(fault.amount));
      active.hits = cluster_.refused_for_space(fault.nodes.front());
      break;
    case FaultKind::FullNode:
      cluster_.shrink_disk(fault.nodes.front(), static_cast<unsigned>(fault.amount));
      active.hits = is_under_way(fault) ? 1 : 0;
      break;
    case FaultKind::Corruption:
      damage(fault, active);
      break;
    case FaultKind::StoreCut:
      cluster_.controller_records().disconnect(fault.nodes.front() + ":1");
      active.hits = cluster_.alive(fault.nodes.front()) ? 1 : 0;
      break;
    default:
      change_membership(index);
      break;
  }
}

void FaultInjector::damage(const Fault& fault, Active& active) {
  const std::string& name = fault.nodes.front();
  const auto node = static_cast<unsigned>(std::stoul(name.substr(name.find('.') + 1)));
  for (std::int64_t i = 0; i < fault.amount; ++i) active.hits += cluster_.damage_storage(node) ? 1 : 0;
}

void FaultInjector::stop_nodes(const Fault& fault, Active& active) {
  active.hits = is_under_way(fault) ? 1 : 0;
  for (const std::string& name : fault.nodes) {
    if (fault.kind == FaultKind::Pause) {
      cluster_.pause(name);
    } else if (fault.kind == FaultKind::Wipe) {
      cluster_.wipe(name);
    } else if (fault.kind == FaultKind::PowerLoss) {
      cluster_.lose_power(name);
    } else {
      cluster_.crash(name);
    }
  }
}

void FaultInjector::disturb(const Fault& fault, Active& active) {
  LinkFault link;
  if (fault.kind == FaultKind::Drop) link.lose = fault.rate;
  if (fault.kind == FaultKind::Duplicate) link.duplicate = fault.rate;
  if (fault.kind == FaultKind::Delay) link.delay = fault.rate;
  link.delay_max = Duration(fault.amount);
  active.disturbances.push_back(cluster_.network().disturb(std::move(link)));
}

void FaultInjector::cut(const Fault& fault, Active& active) {
  const std::set<std::string> side(fault.nodes.begin(), fault.nodes.end());
  const std::set<std::string> both(fault.others.begin(), fault.others.end());
  const bool one_way = fault.kind == FaultKind::OneWay;
  const bool outwards = fault.number % 2 == 0;
  LinkFault link;
  link.cut = true;
  link.applies = [side, both, one_way, outwards](const std::string& from, const std::string& to) {
    if (both.contains(from) || both.contains(to)) return false;
    const bool from_side = side.contains(from);
    if (from_side == side.contains(to)) return false;
    return !one_way || from_side == outwards;
  };
  active.disturbances.push_back(cluster_.network().disturb(std::move(link)));
}

/// Cuts the nodes off one by one in the first half of the fault, and reconnects them in another order in the second
/// half.
void FaultInjector::clog_one_by_one(std::size_t index) {
  const Fault& fault = faults_[index];
  const auto count = static_cast<std::int64_t>(fault.nodes.size());
  const Duration step = fault.length / (2 * count + 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = (i * 7 + fault.number) % count;
    const Duration heals_after = step * (count - i + place);
    cluster_.scheduler().outside().post_after(step * i, [this, index, i, heals_after] {
      Active& active = active_[index];
      if (active.ended) return;
      LinkFault link;
      link.cut = true;
      link.applies = [name = faults_[index].nodes[static_cast<std::size_t>(i)]](
                         const std::string& from, const std::string& to) { return from == name || to == name; };
      const std::uint64_t number = cluster_.network().disturb(std::move(link));
      active.disturbances.push_back(number);
      cluster_.scheduler().outside().post_after(
          heals_after, [this, index, number] { active_[index].hits += cluster_.network().end_disturbance(number); });
    });
  }
}

void FaultInjector::end(std::size_t index) {
  const Fault& fault = faults_[index];
  Active& active = active_[index];
  if (!active.begun || active.ended) return;
  active.ended = true;
  for (const std::uint64_t number : active.disturbances) active.hits += cluster_.network().end_disturbance(number);
  switch (fault.kind) {
    case FaultKind::StorageCrash:
    case FaultKind::DistributorCrash:
    case FaultKind::ControllerCrash:
    case FaultKind::PowerLoss:
    case FaultKind::Wipe:
      for (const std::string& name : fault.nodes) cluster_.restart(name);
      break;
    case FaultKind::Pause:
      cluster_.resume(fault.nodes.front());
      break;
    case FaultKind::ClockSkew:
    case FaultKind::ClockJump:
      cluster_.set_clock_skew(fault.nodes.front(), Duration(0));
      break;
    case FaultKind::SlowDisk:
      cluster_.slow_disk(fault.nodes.front(), Duration(0), nullptr);
      break;
    case FaultKind::DiskFull:
      active.hits = cluster_.refused_for_space(fault.nodes.front()) - active.hits;
      cluster_.free_disk(fault.nodes.front());
      break;
    case FaultKind::FullNode:
      cluster_.free_disk(fault.nodes.front());
      break;
    case FaultKind::StoreCut:
      if (cluster_.alive(fault.nodes.front())) cluster_.controller_records().connect(fault.nodes.front() + ":1");
      break;
    default:
      end_membership(index);
      break;
  }
  cluster_.scheduler().trace("end of fault " + describe(fault) + ", hits " + std::to_string(active.hits));
  count(fault, active);
}

// --- Changes of membership -------------------------------------------------------------------------------------------

void FaultInjector::change_membership(std::size_t index) {
  const Fault& fault = faults_[index];
  switch (fault.kind) {
    case FaultKind::NodeAdd:
      add_node(index);
      break;
    case FaultKind::NodeRemove:
      remove_node(index);
      break;
    case FaultKind::Maintenance:
    case FaultKind::MaintenanceLong:
      maintain(index);
      break;
    case FaultKind::ClusterDown:
      change_setting(index,
                     fmt::format("controller.storage_up_ratio_min={:.2f}", static_cast<double>(fault.amount) / 100));
      for (const std::string& name : fault.nodes) cluster_.crash(name);
      break;
    case FaultKind::Capacity: {
      rpc::ChangeNodes request;
      request.action = rpc::NodeAction::Capacity;
      request.nodes = fault.nodes;
      request.capacity = fmt::format("{}", static_cast<double>(fault.amount) / 100);
      operator_.change_nodes(std::move(request), [this, index](const rpc::ChangeNodesReply& reply) {
        active_[index].hits += reply.status && reply.refusals.empty() ? 1 : 0;
      });
      break;
    }
    case FaultKind::Redundancy:
      change_setting(index, fmt::format("cluster.redundancy={}", fault.amount));
      break;
    case FaultKind::Bits:
      change_setting(index, fmt::format("cluster.distribution_bits={}", fault.amount));
      break;
    case FaultKind::Retention:
      change_setting(index, fmt::format("{}={}ms", fault.nodes.front(), fault.amount));
      break;
    case FaultKind::Balance:
      // The load is counted in operations, because an execution takes no simulated time.
      for (const char* setting : {"balancer.load=operations", "balancer.operations_min=1", "balancer.bytes_part=1"}) {
        operator_.change_config(setting, {});
      }
      operator_.change_config(fmt::format("balancer.round={}ms", fault.amount), {});
      operator_.change_config(kReads[fault.number % std::size(kReads)], {});
      change_setting(index, "balancer.mode=on");
      break;
    case FaultKind::Limits:
      change_setting(index, fault.amount == 0 ? std::string("maintenance.paused=true")
                                              : fmt::format("distributor.bucket_entries_max={}", fault.amount));
      break;
    default:
      break;
  }
}

void FaultInjector::change_setting(std::size_t index, const std::string& setting) {
  operator_.change_config(setting, [this, index](const rpc::ChangeConfigReply& reply) {
    active_[index].hits += reply.status && !reply.changes.empty() ? 1 : 0;
  });
}

void FaultInjector::add_node(std::size_t index) {
  const Fault& fault = faults_[index];
  const bool is_storage = fault.nodes.front() == "storage";
  const std::string name = is_storage ? cluster_.add_storage_node() : cluster_.add_distributor();
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Add;
  request.nodes = fault.nodes;
  request.address = name + ":1";
  request.force = true;  // The address is not tried first, because the network may lose that request.
  if (is_storage && !fault.others.empty()) request.group = fault.others.front();
  operator_.change_nodes(std::move(request), [this, index, name](const rpc::ChangeNodesReply& reply) {
    // AlreadyExists: the answer to an earlier attempt was lost.
    FJORD_CHECK_MSG(reply.status || reply.status.code() == StatusCode::AlreadyExists, reply.status.to_string());
    FJORD_CHECK(!reply.status || reply.nodes == std::vector<std::string>{name});
    ++active_[index].hits;
  });
}

void FaultInjector::remove_node(std::size_t index) {
  const std::string name = faults_[index].nodes.front();
  if (!operated_.insert(name).second) return;
  operator_.change_nodes(rpc::NodeAction::Retire, name, [this, index, name](const rpc::ChangeNodesReply& reply) {
    Active& active = active_[index];
    active.accepted = reply.status && reply.refusals.empty();
    active.hits += active.accepted ? 1 : 0;
    if (!active.accepted) {
      bring_back(name);
    } else if (faults_[index].amount == 0) {
      brought_back_.erase(name);
      try_to_remove(name);
    } else if (active.ended) {
      end_membership(index);
    }
  });
}

/// Repeats the request, which is refused until the node is empty.
void FaultInjector::try_to_remove(const std::string& name) {
  cluster_.scheduler().outside().post_after(milliseconds(400), [this, name] {
    operator_.change_nodes(rpc::NodeAction::Remove, name, [this, name](const rpc::ChangeNodesReply& reply) {
      // NotFound: the answer to an earlier attempt was lost.
      const bool is_gone = reply.status ? reply.refusals.empty() : reply.status.code() == StatusCode::NotFound;
      if (!is_gone) return try_to_remove(name);
      cluster_.retire(name);
      operated_.erase(name);
    });
  });
}

void FaultInjector::maintain(std::size_t index) {
  const std::string name = faults_[index].nodes.front();
  if (!operated_.insert(name).second) return;
  operator_.change_nodes(rpc::NodeAction::Maintenance, name, [this, index, name](const rpc::ChangeNodesReply& reply) {
    Active& active = active_[index];
    active.accepted = reply.status && reply.refusals.empty();
    active.hits += active.accepted ? 1 : 0;
    if (!active.accepted) {
      bring_back(name);
    } else if (active.ended) {
      end_membership(index);
    } else {
      cluster_.crash(name);
    }
  });
}

void FaultInjector::end_membership(std::size_t index) {
  const Fault& fault = faults_[index];
  if (fault.kind == FaultKind::Limits) {
    operator_.change_config(fault.amount == 0 ? "maintenance.paused" : "distributor.bucket_entries_max", {});
  }
  if (fault.kind == FaultKind::Balance) operator_.change_config("balancer.mode=off", {});
  if (fault.kind == FaultKind::ClusterDown) {
    operator_.change_config("controller.storage_up_ratio_min", {});
    for (const std::string& name : fault.nodes) cluster_.restart(name);
  }
  if (fault.kind == FaultKind::Retention) operator_.change_config(fault.nodes.front(), {});
  if (!active_[index].accepted) return;
  const std::string& name = fault.nodes.front();
  const bool is_maintenance = is_one_of(fault.kind, {FaultKind::Maintenance, FaultKind::MaintenanceLong});
  if (is_maintenance) cluster_.restart(name);
  if (is_maintenance || (fault.kind == FaultKind::NodeRemove && fault.amount != 0)) {
    bring_back(name);
  }
}

/// Also called after a refusal: an earlier attempt may have been accepted and its answer lost.
void FaultInjector::bring_back(const std::string& name) {
  brought_back_.insert(name);
  operator_.change_nodes(rpc::NodeAction::Up, name,
                         [this, name](const rpc::ChangeNodesReply&) { operated_.erase(name); });
}

void FaultInjector::count(const Fault& fault, Active& active) {
  if (active.hits == 0) return;
  ++exercised_;
  exercised_kinds_.insert(fault.kind);
  for (unsigned i = 1; i <= kInvariants; ++i) {
    if (exposure_.counts()[i] > active.before[i]) coverage_.add(fault.kind, i);
  }
}

}  // namespace fjord::sim
