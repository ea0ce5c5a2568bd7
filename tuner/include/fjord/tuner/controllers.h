#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "fjord/common/status.h"
#include "fjord/tuner/guard_rails.h"

/// Controllers of single settings: metrics in, a value out, at the end of each period. They hold no clock, no thread
/// and no connection; who drives them decides how long a period is and sets what they say.
///
/// Threading of all: confined to the owner.
namespace fjord::tuner {

enum class ControlMode {
  Off,     ///< Says nothing.
  Advise,  ///< Says what it would do; the value stays.
  On,
};

/// What a controller says at the end of a period.
struct Decision {
  bool is_change = false;
  bool is_applied = false;  ///< The controller's value is the new one; false in mode Advise.
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
  std::string reason;
};

/// Who turns what: two loops never turn the same knob.
class Actuators {
 public:
  /// Errors: AlreadyExists that names the owner.
  Status claim(std::string_view knob, std::string_view owner);
  void release(std::string_view knob) { owners_.erase(std::string(knob)); }

 private:
  std::map<std::string, std::string> owners_;
};

struct YieldOptions {
  double target_s = 0.02;  ///< p99 of the foreground.
  std::int64_t floor = 1;
  std::int64_t ceiling = 100;
  std::int64_t start = 25;
  std::int64_t unit = 1;    ///< Added in a period in which the foreground is well.
  double dead_band = 0.10;  ///< Within so much of the target nothing is done.
  /// After so many periods in which the foreground was well it tries again what was too much before.
  int retry_periods = 30;
};

/// Gives background work as much as the foreground's p99 leaves: adds a unit in each good period and halves on a
/// breach, up to three times if p99 is a multiple of its target. After a slight breach it comes back quickly to just
/// below what was too much, and stays there. For the bandwidth of jobs and merges, and for the number of visitors.
class YieldController {
 public:
  YieldController(const YieldOptions& options, ControlMode mode);

  /// `p99_s` of the period; `wants_more`: somebody would use more than the present value. No p99 (nothing was asked of
  /// the foreground) counts as well.
  Decision step(std::optional<double> p99_s, bool wants_more);
  std::int64_t value() const { return value_; }
  void set_mode(ControlMode mode) { mode_ = mode; }
  /// What it said was done.
  void took(std::int64_t value) { value_ = value; }
  /// Somebody else has set the value, and knows why: what was too much before says nothing now.
  void adopt(std::int64_t value);
  /// The value has proved to be too much, for another reason than p99.
  void note_too_much(std::int64_t value) { too_much_ = value; }

 private:
  std::int64_t after_breach(double ratio);
  std::int64_t grown();

  YieldOptions options_;
  ControlMode mode_;
  std::int64_t value_;
  std::optional<std::int64_t> too_much_;
  int good_periods_ = 0;
  bool has_just_halved_ = false;
};

struct EntriesOptions {
  std::uint64_t quorum = 2;  ///< So many nodes must have met their limit before the setting is lowered.
  /// Share of a put's time in the search for its entry above which it counts as bound by the CPU.
  double cpu_share_min = 0.5;
  std::int64_t floor = 256;
};

/// The maximum of entries in a slotfile, as seed 5.3.3 has it: without limit at first; each node that finds a put bound
/// by the CPU reports how many entries the slotfile had, and the setting becomes the largest that `quorum` nodes are
/// content with no more. A slow node alone does not decide for all.
class EntriesController {
 public:
  static constexpr std::int64_t kUnlimited = 1 << 24;

  EntriesController(const EntriesOptions& options, ControlMode mode) : options_(options), mode_(mode) {}

  /// What a node saw of a put: the entries of its slotfile, and the share of its time that searching took.
  Decision report(std::uint64_t node, std::int64_t entries, double cpu_share);
  /// The node does not count any more.
  void forget(std::uint64_t node) { reports_.erase(node); }
  /// Set by whoever drives it.
  void took(std::int64_t value) { value_ = value; }
  void set_quorum(std::uint64_t quorum) { options_.quorum = quorum; }
  void set_floor(std::int64_t floor) { options_.floor = floor; }
  /// Forgets what nodes reported: after slow ones were replaced, or with another threshold.
  Decision reset();
  Decision reset(double cpu_share_min);
  std::int64_t value() const { return value_; }

 private:
  Decision decide(std::string reason);

  EntriesOptions options_;
  ControlMode mode_;
  std::int64_t value_ = kUnlimited;
  std::map<std::uint64_t, std::int64_t> reports_;  ///< The least of each node.
};

struct SplitLimitOptions {
  double buckets_per_node = 300;
  double fill = 0.7;
  std::int64_t floor = 4LL << 20;
  std::int64_t ceiling = 1LL << 30;
  int agreeing_periods = 3;  ///< So often in a row the same has to be wanted.
};

struct ClusterSize {
  double bytes = 0;  ///< Of all documents, once.
  double nodes = 1;
  double redundancy = 1;
};

/// distributor.bucket_bytes_max, so that each node has some hundred buckets. A structural knob: nothing is done that
/// the guard rails do not allow.
class SplitLimitController {
 public:
  SplitLimitController(const SplitLimitOptions& options, ControlMode mode, std::int64_t value, GuardRails& rails)
      : options_(options), mode_(mode), value_(value), rails_(rails) {}

  Decision step(const ClusterSize& size, const ClusterCondition& condition);
  std::int64_t value() const { return value_; }
  /// Set by whoever drives it, or by somebody else.
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
  double budget_bytes = 1 << 30;  ///< Of indexes and page cache together.
  double least_share = 0.05;      ///< Of the budget, for either.
  double most_share = 0.6;        ///< For indexes.
  double step_share = 1.0 / 16;
  double dead_band = 1.5;  ///< Misses of one kind have to cost so much more than those of the other.
  int pause_periods = 5;   ///< After a change, until its effect is seen.
};

struct CacheMisses {
  double index_miss_s = 0;     ///< Time that loading indexes took in the period.
  double document_miss_s = 0;  ///< Time that reading documents from the medium took.
  double index_bytes = 0;      ///< What all indexes would take.
};

/// storage.index_bytes_max: moves memory between indexes and the page cache to where misses cost more.
class CacheController {
 public:
  CacheController(const CacheOptions& options, ControlMode mode, std::int64_t value)
      : options_(options), mode_(mode), value_(value) {}

  Decision step(const CacheMisses& misses);
  void set_budget(double bytes) { options_.budget_bytes = bytes; }
  std::int64_t value() const { return value_; }
  /// Set by whoever drives it, or by somebody else.
  void took(std::int64_t value);

 private:
  CacheOptions options_;
  ControlMode mode_;
  std::int64_t value_;
  int pause_ = 0;
  int direction_ = 0;      ///< Of the last change.
  double step_scale_ = 1;  ///< Halved when it turns.
};

}  // namespace fjord::tuner
