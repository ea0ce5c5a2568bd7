#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "fjord/rpc/messages.h"

namespace fjord::cli {

/// Checks names of the form NAME or NAME=VALUE. Errors: NotFound if the cluster has no setting of that name.
inline Status check_setting_names(const std::vector<rpc::Setting>& settings, const std::vector<std::string>& names) {
  for (const std::string& text : names) {
    const std::string name = text.substr(0, text.find('='));
    const bool is_there = std::any_of(settings.begin(), settings.end(),
                                      [&](const rpc::Setting& setting) { return setting.name == name; });
    if (is_there) continue;
    return Status(StatusCode::NotFound, fmt::format("there is no setting \"{}\"; `fjord config list` shows all", name));
  }
  return Status::ok();
}

}  // namespace fjord::cli
