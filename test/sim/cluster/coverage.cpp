#include "fjord/sim/coverage.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace fjord::sim {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames = {
    "storage-crash",
    "distributor-crash",
    "controller-crash",
    "power-loss",
    "wipe",
    "pause",
    "drop",
    "duplicate",
    "delay",
    "partition",
    "one-way",
    "bridge",
    "swizzle",
    "cut-together",
    "clock-skew",
    "clock-jump",
    "slow-disk",
    "disk-full",
    "corruption",
    "store-cut",
    "node-add",
    "node-remove",
    "maintenance",
    "capacity",
    "redundancy",
    "bits",
    "limits",
    "maintenance-long",
    "cluster-down",
    "retention",
    "full-node",
    "balance",
    "damage-restart",
    "silence",
    "lost-files",
    "group-maintenance",
    "full-return",
    "controlled-stop",
    "scrub-step",
    "many-buckets",
    "wrong-clock",
};

/// The kinds that wait for a mend.
constexpr FaultKind kOnlyByName[] = {FaultKind::DamageRestart,    FaultKind::Silence,     FaultKind::LostFiles,
                                     FaultKind::GroupMaintenance, FaultKind::FullReturn,  FaultKind::ControlledStop,
                                     FaultKind::ScrubStep,        FaultKind::ManyBuckets, FaultKind::WrongClock};

std::string column(unsigned invariant) {
  if (invariant < theorem(1)) return fmt::format("I{}", invariant);
  return invariant < claim(1) ? fmt::format("T5.{}", invariant - theorem(0))
                              : fmt::format("I25.{}", invariant - claim(0));
}

}  // namespace

std::string_view to_string(FaultKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

Result<FaultKind> fault_kind_from_string(std::string_view name) {
  for (const FaultKind kind : all_fault_kinds()) {
    if (to_string(kind) == name) return kind;
  }
  return Status(StatusCode::InvalidArgument, fmt::format("there is no fault '{}'", name));
}

std::set<FaultKind> all_fault_kinds() {
  std::set<FaultKind> kinds;
  for (unsigned i = 0; i < kFaultKinds; ++i) kinds.insert(static_cast<FaultKind>(i));
  return kinds;
}

bool is_change_of_membership(FaultKind kind) {
  return kind >= FaultKind::NodeAdd && kind <= FaultKind::Balance && kind != FaultKind::FullNode;
}

bool is_drawn_by_default(FaultKind kind) {
  return std::find(std::begin(kOnlyByName), std::end(kOnlyByName), kind) == std::end(kOnlyByName);
}

void Coverage::add(const Coverage& other) {
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    for (std::size_t i = 0; i <= kInvariants; ++i) cells_[kind][i] += other.cells_[kind][i];
  }
}

std::string Coverage::to_table() const { return to_text(false); }
std::string Coverage::to_tsv() const { return to_text(true); }

std::string Coverage::to_text(bool tabs) const {
  std::string text = tabs ? "fault" : fmt::format("{:18}", "fault");
  for (unsigned i = 1; i <= kInvariants; ++i) text += tabs ? "\t" + column(i) : fmt::format("{:>7}", column(i));
  text += '\n';
  for (const FaultKind kind : all_fault_kinds()) {
    text += tabs ? std::string(to_string(kind)) : fmt::format("{:18}", to_string(kind));
    for (unsigned i = 1; i <= kInvariants; ++i)
      text += tabs ? fmt::format("\t{}", of(kind, i)) : fmt::format("{:>7}", of(kind, i));
    text += '\n';
  }
  return text;
}

}  // namespace fjord::sim
