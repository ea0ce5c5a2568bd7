#include "yaml_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace fjord::tuner {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 9> kUnits = {{{"TiB", 1099511627776.0},
                                         {"GiB", 1073741824.0},
                                         {"MiB", 1048576.0},
                                         {"KiB", 1024.0},
                                         {"TB", 1e12},
                                         {"GB", 1e9},
                                         {"MB", 1e6},
                                         {"kB", 1e3},
                                         {"B", 1}}};

}  // namespace

Status yaml_error(const std::string& file, const YAML::Node& node, std::string_view what, std::string_view problem) {
  const YAML::Mark mark = node.Mark();
  return Status(StatusCode::InvalidArgument,
                fmt::format("{}:{}: {}: {}", file, mark.is_null() ? 1 : mark.line + 1, what, problem));
}

Result<YAML::Node> load_yaml_map(std::string_view text, const std::string& file) {
  YAML::Node root;
  try {
    root = YAML::Load(std::string(text));
  } catch (const YAML::ParserException& error) {
    return Status(StatusCode::InvalidArgument, fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
  if (!root.IsMap()) return yaml_error(file, root, "the file", "expected lines such as `documents: 1000000`");
  return root;
}

Result<double> number_of(std::string_view text, bool bytes) {
  double factor = 1;
  std::string_view digits = text;
  if (bytes) {
    for (const Unit& unit : kUnits) {
      if (!text.ends_with(unit.name)) continue;
      digits = text.substr(0, text.size() - unit.name.size());
      while (digits.ends_with(' ')) digits.remove_suffix(1);
      factor = unit.factor;
      break;
    }
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty() || !std::isfinite(value)) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("\"{}\" is not a number{}", text, bytes ? " of bytes such as 800 or 16MiB" : ""));
  }
  return value * factor;
}

}  // namespace fjord::tuner
