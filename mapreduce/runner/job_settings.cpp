#include "job_settings.h"

#include <charconv>
#include <fmt/core.h>
#include <map>
#include <optional>

#include "fjord/common/byte_units.h"

namespace fjord::mapreduce {
namespace {

constexpr std::uint64_t kDeadLettersLimit = 10'000;
constexpr std::uint64_t kVisitorsLimit = 1024;
constexpr std::uint64_t kWeightLimit = 1000;
constexpr std::int64_t kBytesLimit = 1'000'000'000'000'000;

/// `limit`: the permitted values, if they are a range.
Status wrong(const rpc::Parameter& setting, std::string_view what, std::string limit = {}) {
  return Status(StatusCode::InvalidArgument, fmt::format("{}={}: {}", setting.name, setting.value, what),
                {.limit = std::move(limit), .setting = setting.name});
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Status take_bytes(const rpc::Parameter& setting, std::uint64_t& into) {
  std::string_view text = setting.value;
  if (text.ends_with("/s")) text.remove_suffix(2);
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes > kBytesLimit) return wrong(setting, "it is a number of bytes, as 64MiB, 10MB or 1500");
  into = static_cast<std::uint64_t>(*bytes);
  return Status::ok();
}

Result<rpc::Priority> priority_of(const rpc::Parameter& setting) {
  if (setting.value == "background") return rpc::Priority::Background;
  if (setting.value == "normal") return rpc::Priority::Normal;
  return wrong(setting, "it is normal or background");
}

Status take_number(const rpc::Parameter& setting, std::uint64_t max, std::uint64_t& into) {
  const auto number = whole_number(setting.value);
  if (!number || *number > max)
    return wrong(setting, fmt::format("it is a whole number up to {}", max), fmt::format("0 to {}", max));
  into = *number;
  return Status::ok();
}

}  // namespace

Result<JobSettings> JobSettings::parse(const std::vector<rpc::Parameter>& settings) {
  JobSettings parsed;
  for (const rpc::Parameter& setting : settings) {
    std::uint64_t number = 0;
    if (setting.name == "throttle") {
      FJORD_TRY(take_bytes(setting, parsed.throttle));
    } else if (setting.name == "throttle_by") {
      if (setting.value != "sent" && setting.value != "delay") return wrong(setting, "it is sent or delay");
      parsed.throttle_by = setting.value == "sent" ? ThrottleBy::Sent : ThrottleBy::Delay;
    } else if (setting.name == "dead_letters_max") {
      FJORD_TRY(take_number(setting, kDeadLettersLimit, parsed.dead_letters_max));
    } else if (setting.name == "memory_max") {
      FJORD_TRY(take_bytes(setting, parsed.memory_max));
    } else if (setting.name == "disk_max") {
      FJORD_TRY(take_bytes(setting, parsed.disk_max));
    } else if (setting.name == "sent_max") {
      FJORD_TRY(take_bytes(setting, parsed.sent_max));
    } else if (setting.name == "cpu_max") {
      FJORD_TRY(take_number(setting, 1'000'000'000, parsed.cpu_max));
    } else if (setting.name == "visitors_per_node") {
      FJORD_TRY(take_number(setting, kVisitorsLimit, number));
      parsed.visitors_per_node = static_cast<std::uint32_t>(number);
    } else if (setting.name == "weight") {
      FJORD_TRY(take_number(setting, kWeightLimit, number));
      if (number == 0) {
        const std::string range = fmt::format("1 to {}", kWeightLimit);
        return wrong(setting, "it is a whole number from " + range, range);
      }
      parsed.weight = static_cast<std::uint32_t>(number);
    } else if (setting.name == "priority") {
      FJORD_TRY_ASSIGN(parsed.priority, priority_of(setting));
    } else {
      return wrong(setting,
                   "there is no such setting; there are: throttle, throttle_by, dead_letters_max, memory_max, "
                   "disk_max, sent_max, cpu_max, visitors_per_node, weight, priority");
    }
  }
  return parsed;
}

std::vector<rpc::Parameter> merge_settings(const std::vector<rpc::Parameter>& settings,
                                           const std::vector<rpc::Parameter>& changes) {
  std::map<std::string, std::string> all;
  for (const auto* list : {&settings, &changes}) {
    for (const rpc::Parameter& setting : *list) all[setting.name] = setting.value;
  }
  std::vector<rpc::Parameter> merged;
  for (const auto& [name, value] : all) merged.push_back({name, value});
  return merged;
}

}  // namespace fjord::mapreduce
