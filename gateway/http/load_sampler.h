#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/thread_annotations.h"
#include "http/load_figures.h"

namespace fjord::gateway {

/// What is known of the load of the cluster.
struct Load {
  std::optional<LoadFigures> latest;                    ///< Absent until the metrics were read twice.
  std::vector<LoadPoint> points;                        ///< The last ten minutes, oldest first.
  std::map<std::string, std::optional<double>> growth;  ///< Bytes a second by node; absent: not known yet.
  Duration growth_span{0};
};

/// What the last look at a process has shown.
struct SeenProcess {
  bool answers = false;  ///< The metrics of the process could be read.
  bool leads = false;    ///< The process is the leading fleet controller.
};

/// Reads the metrics of the nodes every two seconds, whether clients ask or not: who looks because something has
/// happened sees what was before.
///
/// Threading: any thread; reads on a thread of its own, so that latest() never waits for a node.
class LoadSampler {
 public:
  /// `clock` says how old a reading is; waits are always in real time. `pace`: the time from the end of a reading to
  /// the next one.
  explicit LoadSampler(std::vector<MetricsAddress> addresses,
                       std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>(),
                       Duration pace = seconds(2));
  ~LoadSampler() { end(); }

  Load latest();
  /// Returns what is known of each process, by name. If that is older than a few seconds, it waits up to `patience` for
  /// a new look.
  std::map<std::string, SeenProcess> processes(Duration patience);
  void end();

 private:
  void run();
  void take(LoadReading reading);
  bool is_recent() const FJORD_REQUIRES(mutex_);

  const std::vector<MetricsAddress> addresses_;
  const std::shared_ptr<const Clock> clock_;
  const Duration pace_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ FJORD_GUARDED_BY(mutex_) = false;
  bool is_awaited_ FJORD_GUARDED_BY(mutex_) = false;  ///< processes() waits for a reading.
  std::optional<LoadReading> last_ FJORD_GUARDED_BY(mutex_);
  std::optional<LoadFigures> latest_ FJORD_GUARDED_BY(mutex_);
  std::deque<LoadPoint> points_ FJORD_GUARDED_BY(mutex_);
  std::map<std::string, Trend> space_ FJORD_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace fjord::gateway
