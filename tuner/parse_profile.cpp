#include <fmt/format.h>

#include "fjord/tuner/hardware_profile.h"
#include "yaml_values.h"

namespace fjord::tuner {
namespace {

Result<Origin> origin_of(const std::string& text) {
  for (const Origin origin : {Origin::Default, Origin::Workload, Origin::Measured, Origin::LastValid}) {
    if (text == to_string(origin)) return origin;
  }
  return Status(StatusCode::InvalidArgument,
                fmt::format("\"{}\" is not one of default, workload, measured, last_valid", text));
}

Result<double> field(const std::string& file, const YAML::Node& map, const std::string& name, const char* key) {
  const YAML::Node node = map[key];
  if (!node || !node.IsScalar()) return yaml_error(file, map, name, fmt::format("`{}` is missing", key));
  const Result<double> value = number_of(node.Scalar(), false);
  if (!value) return yaml_error(file, node, name + "." + key, value.error().message());
  return value;
}

Result<ConstantValue> read_constant(const std::string& file, const std::string& name, const YAML::Node& map,
                                    const ConstantDeclaration& declared) {
  if (!map.IsMap()) return yaml_error(file, map, name, "expected {value: ..., origin: ..., confidence: ...}");
  ConstantValue read;
  FJORD_TRY_ASSIGN(read.value, field(file, map, name, "value"));
  FJORD_TRY_ASSIGN(read.confidence, field(file, map, name, "confidence"));
  if (!(read.value >= declared.plausible_min && read.value <= declared.plausible_max)) {
    return yaml_error(file, map["value"], name,
                      fmt::format("{:g} is not plausible, which is {:g} to {:g} {}", read.value, declared.plausible_min,
                                  declared.plausible_max, declared.unit));
  }
  if (!(read.confidence >= 0 && read.confidence <= 1)) {
    return yaml_error(file, map["confidence"], name + ".confidence", "expected a number from 0 to 1");
  }
  const YAML::Node origin = map["origin"];
  if (!origin || !origin.IsScalar()) return yaml_error(file, map, name, "`origin` is missing");
  const Result<Origin> known = origin_of(origin.Scalar());
  if (!known) return yaml_error(file, origin, name + ".origin", known.error().message());
  read.origin = *known;
  return read;
}

}  // namespace

Result<HardwareProfile> parse_profile(std::string_view text, const std::string& file) {
  FJORD_TRY_ASSIGN(const YAML::Node root, load_yaml_map(text, file));
  const YAML::Node version = root["version"];
  if (!version || !version.IsScalar() || version.Scalar() != "1") {
    return yaml_error(file, version ? version : root, "version",
                      "expected 1: this is not a profile of `fjord tune calibrate`");
  }
  const YAML::Node constants = root["constants"];
  if (!constants || !constants.IsMap()) return yaml_error(file, root, "constants", "expected a map");
  HardwareProfile profile;
  for (const auto& entry : constants) {
    const std::string name = entry.first.Scalar();
    const ConstantDeclaration* known = nullptr;
    for (const ConstantDeclaration& one : constant_declarations()) {
      if (one.name == name) known = &one;
    }
    if (known == nullptr) return yaml_error(file, entry.first, name, "unknown constant");
    FJORD_TRY_ASSIGN(const ConstantValue value, read_constant(file, name, entry.second, *known));
    profile.set(known->id, value);
  }
  return profile;
}

}  // namespace fjord::tuner
