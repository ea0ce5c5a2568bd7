#pragma once

#include <functional>
#include <string>

#include "fjord/common/status.h"
#include "fjord/tuner/hardware_profile.h"

namespace fjord::cli {

struct CalibrateOptions {
  std::string directory;  ///< On the disk that is to be measured; a file of `file_bytes` is made in it and removed.
  double seconds = 20;    ///< For all measurements together, about.
  std::uint64_t file_bytes = std::uint64_t{512} << 20;
};

/// Measures this machine and puts what is plausible into `profile`, which holds what was known before. `tell` hears a
/// line for each constant. The network between machines is not measured. Errors: IoError, NoSpace, if the folder cannot
/// be written to.
Status calibrate(const CalibrateOptions& options, tuner::HardwareProfile& profile,
                 const std::function<void(const std::string&)>& tell);

}  // namespace fjord::cli
