#include "yaml_values.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "fjord/common/byte_units.h"

namespace fjord::tuner {
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
  if (bytes) {
    FJORD_TRY_ASSIGN(const std::int64_t value, parse_bytes(text));
    return static_cast<double>(value);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return Status(StatusCode::InvalidArgument, fmt::format("\"{}\" is not a number", text));
  }
  return value;
}

}  // namespace fjord::tuner
