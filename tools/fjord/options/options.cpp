#include "options/options.h"

#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fjord::cli {

std::vector<std::string> shown_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  if (!option.get_lnames().empty()) names.push_back("--" + option.get_lnames().front());
  return names;
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  if (is_positional) return CLI::Formatter::make_option_name(option, true);
  return fmt::format("{}", fmt::join(shown_names(*option), ","));
}

CLI::App* command(CLI::App& parent, const std::string& name, const std::string& what, const std::string& example) {
  CLI::App* made = parent.add_subcommand(name, what);
  made->footer("\nExample:\n  " + example + "\n" + kExitCodes);
  return made;
}

CLI::Validator whole_number(std::uint64_t min, std::uint64_t max) {
  const auto check = [min, max](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (is_number && value >= min && value <= max) return {};
    const bool has_max = max != std::numeric_limits<std::uint64_t>::max();
    const std::string to = has_max ? fmt::format(" to {}", max) : std::string();
    return fmt::format("\"{}\": expected a whole number from {}{}", text, min, to);
  };
  return CLI::Validator(check, "");
}

namespace {

/// Parses "1.5", "500ms", "1.5s", "2m", "1h" or "3d" to seconds. Returns a negative number for another text.
double parse_seconds(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  const std::string unit(end, text.data() + text.size());
  const double each = unit.empty() || unit == "s" ? 1
                      : unit == "ms"              ? 0.001
                      : unit == "m"               ? 60
                      : unit == "h"               ? 3600
                      : unit == "d"               ? 86'400
                                                  : -1;
  return each < 0 ? -1 : number * each;
}

}  // namespace

CLI::Validator duration(double min, double max) {
  const auto check = [min, max](std::string& text) -> std::string {
    const double seconds = parse_seconds(text);
    if (!(seconds >= min && seconds <= max)) {
      return fmt::format("\"{}\": expected a duration of {} to {} seconds, such as 1.5, 500ms, 2m or 1h", text, min,
                         max);
    }
    text = fmt::format("{}", seconds);
    return {};
  };
  return CLI::Validator(check, "");
}

CLI::Validator yaml_as_json() {
  const auto replace = [](std::string& text) {
    if (text == "yaml") {
      print_json_as_yaml();
      text = "json";
    }
    return std::string();
  };
  return CLI::Validator(replace, "");
}

void add_output(CLI::App& app, std::string& output) {
  app.add_option("-o,--output", output, "text, json or yaml (default: text)")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->transform(yaml_as_json())
      ->type_name("FORMAT");
}

void add_common(CLI::App& app, Common& common) {
  app.add_option("--cluster", common.cluster,
                 "Distributors, host:port,... (default: $FJORD_CLUSTER or 127.0.0.1:19100)")
      ->type_name("ADDRESSES");
  app.add_option("--timeout", common.timeout_s, "How long one operation may take, retries included (default: 30s)")
      ->transform(duration(0.001, 86'400))
      ->type_name("DURATION");
  add_output(app, common.output);
}

void add_progress(CLI::App& app, std::string& progress) {
  app.add_option("--progress", progress, kProgressHelp)
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
}

}  // namespace fjord::cli
