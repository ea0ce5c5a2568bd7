#pragma once

#include <functional>
#include <string>

#include "fjord/common/status.h"
#include "fjord/tuner/hardware_profile.h"

namespace fjord::cli {

struct CalibrateOptions {
  std::string directory;  ///< A folder on the measured disk; holds a temporary file of `file_bytes`.
  double seconds = 20;    ///< Approximate time of all measurements together.
  std::uint64_t file_bytes = std::uint64_t{512} << 20;
};

/// Measures this machine and updates `profile` with the plausible results; its other values stay. Calls `tell` with one
/// line for each constant. Does not measure the network between machines. Errors: IoError, NoSpace if the folder is not
/// writable.
Status calibrate(const CalibrateOptions& options, tuner::HardwareProfile& profile,
                 const std::function<void(const std::string&)>& tell);

}  // namespace fjord::cli
