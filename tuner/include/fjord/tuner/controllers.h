#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "fjord/common/control.h"
#include "fjord/common/status.h"
#include "fjord/tuner/guard_rails.h"

/// Controllers of single settings: each takes metrics at the end of a period and returns a value. They hold no clock,
/// no thread and no connection; the caller chooses the length of a period and applies the values.
///
/// Threading of all: confined to the owner.
namespace fjord::tuner {

/// Registers which controller owns which knob, so that two controllers never change the same one.
class Actuators {
 public:
  /// Claims a knob for `owner`. Errors: AlreadyExists with the name of the present owner.
  Status claim(std::string_view knob, std::string_view owner);
  void release(std::string_view knob) { owners_.erase(std::string(knob)); }

 private:
  std::map<std::string, std::string> owners_;
};

struct EntriesOptions {
  std::uint64_t quorum = 2;  ///< Number of nodes that must have met their limit before the setting is lowered.
  /// A put is bound by the CPU if the search for its entry takes at least this share of its time.
  double cpu_share_min = 0.5;
  std::int64_t floor = 256;
};

/// The maximum number of entries in a slotfile [VDS 2007, 5.3.3]. It starts without a limit. Each node that finds a put
/// bound by the CPU reports the number of entries of its slotfile. The setting becomes the `quorum`-th smallest report,
/// so a single slow node does not decide for all.
class EntriesController {
 public:
  static constexpr std::int64_t kUnlimited = 1 << 24;

  EntriesController(const EntriesOptions& options, ControlMode mode) : options_(options), mode_(mode) {}

  /// Takes a node's observation of a put: the entries of its slotfile, and the share of its time that the search took.
  ControlDecision report(std::uint64_t node, std::int64_t entries, double cpu_share);
  /// Removes the node's report.
  void forget(std::uint64_t node) { reports_.erase(node); }
  /// Records that the caller has set the value.
  void took(std::int64_t value) { value_ = value; }
  void set_quorum(std::uint64_t quorum) { options_.quorum = quorum; }
  void set_floor(std::int64_t floor) { options_.floor = floor; }
  /// Forgets all reports, for example after slow nodes were replaced. With an argument, also sets another threshold.
  ControlDecision reset();
  ControlDecision reset(double cpu_share_min);
  std::int64_t value() const { return value_; }

 private:
  ControlDecision decide(std::string reason);

  EntriesOptions options_;
  ControlMode mode_;
  std::int64_t value_ = kUnlimited;
  std::map<std::uint64_t, std::int64_t> reports_;  ///< Smallest number of entries that each node reported.
};

struct SplitLimitOptions {
  double buckets_per_node = 300;
  double fill = 0.7;
  std::int64_t floor = 4LL << 20;
  std::int64_t ceiling = 1LL << 30;
  int agreeing_periods = 3;  ///< Consecutive periods in which the same value must be wanted.
};

struct ClusterSize {
  double bytes = 0;  ///< Bytes of all documents, counted once and not for each replica.
  double nodes = 1;
  double redundancy = 1;
};

/// Sets distributor.bucket_bytes_max such that each node has about `buckets_per_node` buckets. The knob is structural:
/// changes need the permission of the guard rails.
class SplitLimitController {
 public:
  SplitLimitController(const SplitLimitOptions& options, ControlMode mode, std::int64_t value, GuardRails& rails)
      : options_(options), mode_(mode), value_(value), rails_(rails) {}

  ControlDecision step(const ClusterSize& size, const ClusterCondition& condition);
  std::int64_t value() const { return value_; }
  /// Records the value that the caller or another party has set.
  void took(std::int64_t value) { value_ = value; }

 private:
  SplitLimitOptions options_;
  ControlMode mode_;
  std::int64_t value_;
  GuardRails& rails_;
  std::int64_t wanted_ = 0;
  int wanted_for_ = 0;
};

struct CacheOptions {
  double budget_bytes = 1 << 30;  ///< Memory of indexes and page cache together.
  double least_share = 0.05;      ///< Minimum share of the budget for indexes.
  double most_share = 0.6;        ///< Maximum share of the budget for indexes.
  double step_share = 1.0 / 16;
  /// Memory moves only if misses of one kind cost more than those of the other by this factor.
  double dead_band = 1.5;
  int pause_periods = 5;  ///< Periods without a change after each change, until its effect is visible.
};

struct CacheMisses {
  double index_miss_s = 0;     ///< Time spent on loading indexes in the period.
  double document_miss_s = 0;  ///< Time spent on reading documents from the medium.
  double index_bytes = 0;      ///< Memory of all indexes if all were loaded.
};

/// Sets storage.index_bytes_max: moves memory between indexes and the page cache to the kind whose misses cost more.
class CacheController {
 public:
  CacheController(const CacheOptions& options, ControlMode mode, std::int64_t value)
      : options_(options), mode_(mode), value_(value) {}

  ControlDecision step(const CacheMisses& misses);
  void set_budget(double bytes) { options_.budget_bytes = bytes; }
  std::int64_t value() const { return value_; }
  /// Records the value that the caller or another party has set.
  void took(std::int64_t value);

 private:
  CacheOptions options_;
  ControlMode mode_;
  std::int64_t value_;
  int pause_ = 0;
  int direction_ = 0;      ///< Direction of the last change: 1, -1 or 0 for none.
  double step_scale_ = 1;  ///< Halved when the direction turns, doubled again, up to 1, when it stays.
};

}  // namespace fjord::tuner
