#pragma once

#include <deque>
#include <string>

namespace fjord::tuner {

struct ChangeWatchOptions {
  double worse_share = 0.05;  ///< So much below what it was counts as worse.
  int worse_periods = 3;      ///< So many periods in a row.
  int watched_periods = 12;   ///< After that a change has proved itself.
  int baseline_periods = 8;   ///< Of the periods before; their median is what it was.
};

/// Watches the objective after a change and says when to take the change back. Pure.
///
/// Threading: confined to its owner.
class ChangeWatch {
 public:
  enum class Verdict {
    Idle,      ///< No change is watched.
    Watching,  ///< Not decided.
    Keep,      ///< Proved itself; said once.
    RollBack,  ///< Worse for long enough; said once.
  };

  explicit ChangeWatch(const ChangeWatchOptions& options = {}) : options_(options) {}

  /// A change was made between the last period and the next. A change that is being watched is taken for proved.
  /// Without a period before there is nothing to compare with, and nothing is watched.
  void changed(std::string id);
  /// The objective of a period that has ended: larger is better.
  Verdict observe(double objective);

  /// Of the change being watched, or of the last one.
  const std::string& id() const { return id_; }
  /// What the objective was before the change; 0 if nothing was observed before.
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
