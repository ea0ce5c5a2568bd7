#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fjord/sim/recording_env.h"
#include "slotfile_world.h"

namespace fjord::slotfile_testing {

/// Puts something between an engine and its disk.
using EnvWrapper = std::function<std::unique_ptr<Env>(Env&)>;

struct ExploreOptions {
  SlotfileOptions engine;
  /// Removed entries older than this may have been forgotten.
  std::uint64_t forget_before_us = 0;
  bool process_ends = true;
  bool power_losses = true;
  /// Of the images of losses of power one in so many is opened; which ones depends on their content alone.
  std::uint64_t sample = 1;
  /// For one in so many of the images that are opened, all crashes while it is opened and goes on; 0: none.
  std::uint64_t sample_second = 0;
  EnvWrapper wrap = nullptr;  ///< Null: nothing in between.
};

struct Explored {
  std::uint64_t workloads = 0;
  std::uint64_t crash_points = 0;
  std::uint64_t images = 0;  ///< Opened and compared, each twice.
  std::uint64_t second_crashes = 0;
  std::uint64_t reported_losses = 0;  ///< After a loss of power: what is missing is said to be.
  std::string failure;                ///< Of the first image that is wrong; empty if there is none.
};

/// Runs `steps` and then checks every state that a crash during the last `explored` of them could have left: opens it,
/// compares what is there with what the steps that had returned and the one that was running explain, goes on writing,
/// opens it once more and compares again. Adds to `total`.
void explore(const std::vector<Step>& steps, std::size_t explored, const ExploreOptions& options, Explored& total);

}  // namespace fjord::slotfile_testing
