#pragma once

#include <map>
#include <string>
#include <vector>

#include "fjord/rpc/job_messages.h"

namespace fjord {

inline std::vector<rpc::Parameter> parameters_of(const std::map<std::string, std::string>& values) {
  std::vector<rpc::Parameter> parameters;
  for (const auto& [name, value] : values) parameters.push_back({name, value});
  return parameters;
}

inline std::map<std::string, std::string> map_of(const std::vector<rpc::Parameter>& parameters) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : parameters) values[name] = value;
  return values;
}

}  // namespace fjord
