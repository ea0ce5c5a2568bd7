#include "fault.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fjord/common/check.h"

namespace fjord::sim {
namespace {

bool is_one_of(FaultKind kind, std::initializer_list<FaultKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// Nodes lose something that they had acknowledged.
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
        clients_(names("client", plan.clients)) {
    bool loses = false;
    for (const FaultKind kind : plan.kinds) {
      if (loses_data(kind, shape) && shape.redundancy == 1) continue;
      loses = loses || loses_data(kind, shape);
      kinds_.push_back(kind);
    }
    mortal_ = storage_;
    shuffle(mortal_, random_);
    // Nodes that do not lose anything may all be away, which costs nothing but time.
    if (loses) mortal_.resize(shape.redundancy - 1);
    gentle_ = loses;
    sync_ = shape.sync && !loses;
    storage_is_isolated_ = random_.chance(0.5);
    if (!plan_.known_limits && storage_is_isolated_) std::erase(kinds_, FaultKind::DistributorCrash);
    if (!plan_.known_limits) std::erase(kinds_, FaultKind::CutTogether);
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

  /// Who may be stopped or cut off: storage nodes or distributors or the controller, and not several roles in one run
  /// unless the limits that are known may show.
  std::vector<std::string> isolable() {
    // A controller that is cut off calls every node down, and then a wiped node's peers count as away, too.
    if (!gentle_ && random_.chance(0.1)) return {"fleetcontroller.0"};
    std::vector<std::string> some = storage_is_isolated_ ? mortal_ : distributors_;
    if (plan_.known_limits) {
      some = mortal_;
      some.insert(some.end(), distributors_.begin(), distributors_.end());
      if (!gentle_) some.emplace_back("fleetcontroller.0");
    }
    shuffle(some, random_);
    return some;
  }
  std::vector<std::string> some_isolable() {
    std::vector<std::string> some = isolable();
    some.resize(1 + random_.below((some.size() + 1) / 2));
    // Clients on that side, too: they may not notice anything.
    for (const std::string& client : clients_) {
      if (plan_.known_limits && random_.chance(0.4)) some.push_back(client);
    }
    return some;
  }

  void draw_details(Fault& fault) {
    fault.length = between(500, 8000);
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
        fault.nodes = {"fleetcontroller.0"};
        fault.length = between(10, 5000);
        break;
      case FaultKind::PowerLoss:
        fault.nodes = {random_.chance(0.1) ? std::string("fleetcontroller.0") : one_of(mortal_)};
        // What was synced is there even if the whole room was dark.
        if (sync_ && random_.chance(0.5)) fault.nodes = storage_;
        fault.length = between(50, 5000);
        break;
      case FaultKind::Wipe:
        fault.nodes = {one_of(mortal_)};
        fault.length = between(50, 4000);
        break;
      case FaultKind::Pause:
        fault.nodes = {isolable().front()};
        fault.length = Duration(static_cast<std::int64_t>(100'000 * std::pow(600.0, random_.uniform())));
        break;
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
        // Who only reads does not notice. Long enough for the others to go on without them.
        fault.others = {clients_.back()};
        fault.length = between(6000, 15'000);
        fault.at /= 2;
        break;
      case FaultKind::ClockSkew:
      case FaultKind::ClockJump:
        draw_clock(fault);
        break;
      case FaultKind::SlowDisk:
        fault.nodes = {one_of(mortal_)};
        fault.amount = between(1, 20).count();
        break;
      case FaultKind::DiskFull:
        fault.nodes = {one_of(storage_)};
        fault.amount = static_cast<std::int64_t>(random_.below(40'000));
        break;
      case FaultKind::Corruption:
        fault.nodes = {mortal_.front()};
        fault.amount = 1 + static_cast<std::int64_t>(random_.below(4));
        break;
    }
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
    machines.emplace_back("fleetcontroller.0");
    if (plan_.known_limits) machines.insert(machines.end(), distributors_.begin(), distributors_.end());
    fault.nodes = {one_of(machines)};
    const Duration off = random_.chance(0.5) ? between(1, kHourMs) : between(1, 10'000);
    fault.amount = random_.chance(0.5) ? off.count() : -off.count();
    if (fault.kind == FaultKind::ClockJump) fault.length = plan_.span;
  }

  const FaultPlan& plan_;
  Random& random_;
  std::vector<std::string> storage_;
  std::vector<std::string> distributors_;
  std::vector<std::string> clients_;
  std::vector<FaultKind> kinds_;
  std::vector<std::string> mortal_;  ///< Storage nodes that may be away.
  bool sync_ = false;                ///< And nothing else loses what nodes hold.
  bool gentle_ = false;              ///< The others must not look as if they were.
  bool storage_is_isolated_ = false;
};

}  // namespace

std::string describe(const Fault& fault) {
  std::string text = fmt::format("#{} {}", fault.number, to_string(fault.kind));
  if (!fault.nodes.empty()) text += fmt::format(" of {}", fmt::join(fault.nodes, " "));
  if (!fault.others.empty()) text += fmt::format(" (both reach {})", fmt::join(fault.others, " "));
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
    : cluster_(cluster), faults_(std::move(faults)), exposure_(exposure), active_(faults_.size()) {}

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
}

void FaultInjector::note_at_end(unsigned invariant) {
  for (const FaultKind kind : exercised_kinds_) coverage_.add(kind, invariant);
}

/// Whether something waits for one of the nodes that are about to be hit.
bool FaultInjector::is_under_way(const Fault& fault) const {
  return std::any_of(fault.nodes.begin(), fault.nodes.end(), [&](const std::string& name) {
    return cluster_.alive(name) && cluster_.network().calls_pending(name) > 0;
  });
}

void FaultInjector::begin(std::size_t index) {
  const Fault& fault = faults_[index];
  Active& active = active_[index];
  active.begun = true;
  active.before = exposure_.counts();
  cluster_.scheduler().trace("fault " + describe(fault));
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
    case FaultKind::SlowDisk:
      cluster_.slow_disk(fault.nodes.front(), Duration(fault.amount), &active.hits);
      break;
    case FaultKind::DiskFull:
      cluster_.limit_disk(fault.nodes.front(), static_cast<std::uint64_t>(fault.amount));
      active.hits = cluster_.refused_for_space(fault.nodes.front());
      break;
    case FaultKind::Corruption: {
      const auto node =
          static_cast<unsigned>(std::stoul(fault.nodes.front().substr(fault.nodes.front().find('.') + 1)));
      for (std::int64_t i = 0; i < fault.amount; ++i) active.hits += cluster_.flip_bit_of_storage(node) ? 1 : 0;
      break;
    }
  }
  cluster_.scheduler().outside().post_after(fault.length, [this, index] { end(index); });
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

/// Cuts the nodes off one by one in the first half, and lets them come back in another order in the second.
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
    default:
      break;
  }
  cluster_.scheduler().trace("end of fault " + describe(fault) + ", hits " + std::to_string(active.hits));
  count(fault, active);
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
