#pragma once

#include <deque>
#include <string>

namespace fjord::tuner {

struct ChangeWatchOptions {
  double worse_share = 0.05;  ///< A period is worse if its objective is this share below the baseline.
  int worse_periods = 3;      ///< Consecutive worse periods after which the verdict is RollBack.
  int watched_periods = 12;   ///< Periods after which a change has proved itself.
  int baseline_periods = 8;   ///< Number of periods before the change whose median is the baseline.
};

/// Compares the objective after a change with the one before it and decides whether the change is taken back. Pure.
///
/// Threading: confined to its owner.
class ChangeWatch {
 public:
  enum class Verdict {
    Idle,      ///< No change is watched.
    Watching,  ///< The watched change is neither kept nor taken back yet.
    Keep,      ///< The change has proved itself; returned once.
    RollBack,  ///< The objective was worse for long enough; returned once.
  };

  explicit ChangeWatch(const ChangeWatchOptions& options = {}) : options_(options) {}

  /// Starts to watch a change that was made between the last period and the next. A change being watched until then
  /// counts as proved. If no period was observed before, there is no baseline and nothing is watched.
  void changed(std::string id);
  /// Takes the objective of an ended period: larger is better.
  Verdict observe(double objective);

  /// Identifier of the change being watched, or of the last one.
  const std::string& id() const { return id_; }
  /// The objective before the change; 0 if no period was observed before.
  double baseline() const { return baseline_; }

 private:
  ChangeWatchOptions options_;
  std::deque<double> before_;
  std::string id_;
  bool is_watching_ = false;
  double baseline_ = 0;
  int periods_ = 0;
  int worse_ = 0;
};

}  // namespace fjord::tuner
