#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "plugin_process.h"

namespace fjord::plugins {

/// Processes left by finished tasks, for later tasks of the same job: starting one costs more than mapping some
/// thousand documents. They live as long as any started task of the job. Threading: any thread.
class IdleProcesses {
 public:
  struct Process {
    std::unique_ptr<PluginProcess> process;  ///< Null: no process is idle.
    bool needs_body = true;
  };

  Process take() {
    const std::lock_guard lock(mutex_);
    if (processes_.empty()) return {};
    Process last = std::move(processes_.back());
    processes_.pop_back();
    return last;
  }
  void give(Process process) {
    const std::lock_guard lock(mutex_);
    processes_.push_back(std::move(process));
  }

 private:
  std::mutex mutex_;
  std::vector<Process> processes_ FJORD_GUARDED_BY(mutex_);
};

/// Idle processes by the arguments that their processes were made with. Threading: any thread.
class IdleProcessesByJob {
 public:
  std::shared_ptr<IdleProcesses> of(const std::string& made_with) {
    const std::lock_guard lock(mutex_);
    std::erase_if(jobs_, [](const auto& job) { return job.second.expired(); });
    std::weak_ptr<IdleProcesses>& known = jobs_[made_with];
    std::shared_ptr<IdleProcesses> idle = known.lock();
    if (idle == nullptr) known = idle = std::make_shared<IdleProcesses>();
    return idle;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<IdleProcesses>> jobs_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord::plugins
