#pragma once

#include <stop_token>
#include <string>

#include "fjord/library/tuning.h"
#include "tuning_changes.h"

/// Calls that the parts of the tuner share.
namespace fjord {

/// Returns after a period, or at a stop request.
void wait_for_period(Duration period, const std::stop_token& stop);

/// Makes a change if the configuration still has the version `seen`. `tag` is written into the history before the name
/// of the user. Errors: Busy if the configuration has been changed since; those of Admin::set().
Result<AppliedTuning> apply_if_unchanged(ClientCore& core, const SettingTexts& values, const std::string& id,
                                         const std::string& tag, const std::string& reason, std::uint64_t seen);

}  // namespace fjord
