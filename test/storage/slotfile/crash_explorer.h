#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fjord/sim/recording_env.h"
#include "slotfile_world.h"

namespace fjord::slotfile_testing {

/// Puts a layer between an engine and its disk.
using EnvWrapper = std::function<std::unique_ptr<Env>(Env&)>;

struct ExploreOptions {
  SlotfileOptions engine;
  /// The engine may have dropped remove entries older than this.
  std::uint64_t forget_before_us = 0;
  bool process_ends = true;
  bool power_losses = true;
  /// One in `sample` images of power losses is opened; the choice depends only on the image's content.
  std::uint64_t sample = 1;
  /// For one in `sample_second` opened images, all crashes while it is opened and used further are explored too; 0:
  /// none.
  std::uint64_t sample_second = 0;
  EnvWrapper wrap = nullptr;  ///< Null: no layer.
};

struct Explored {
  std::uint64_t workloads = 0;
  std::uint64_t crash_points = 0;
  std::uint64_t images = 0;  ///< Images that were opened and compared, each twice.
  std::uint64_t second_crashes = 0;
  std::uint64_t reported_losses = 0;  ///< Power losses after which the engine reports the missing data as lost.
  std::string failure;                ///< Description of the first wrong image; empty if there is none.
};

/// Runs `steps` and then checks every state that a crash during the last `explored` of them could have left. For each
/// state it opens the engine, compares the content with what the finished steps and the running one explain, writes
/// more, opens it once more and compares again. Adds to `total`.
void explore(const std::vector<Step>& steps, std::size_t explored, const ExploreOptions& options, Explored& total);

}  // namespace fjord::slotfile_testing
