#include "options/options.h"

#include <charconv>
#include <fmt/format.h>

namespace fjord::cli {

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

void add_output(CLI::App& app, std::string& output) {
  app.add_option("-o,--output", output, "text or json (default: text)")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT");
}

void add_common(CLI::App& app, Common& common) {
  app.add_option("--cluster", common.cluster,
                 "Distributors, host:port,... (default: $FJORD_CLUSTER or 127.0.0.1:19100)")
      ->type_name("ADDRESSES");
  app.add_option("--timeout", common.timeout_s, "Seconds that one operation may take, retries included (default: 30)")
      ->check(CLI::Range(0.001, 86'400.0))
      ->type_name("SECONDS");
  add_output(app, common.output);
}

void add_progress(CLI::App& app, std::string& progress) {
  app.add_option("--progress", progress, "auto (on a terminal, after 2 s), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
}

}  // namespace fjord::cli
