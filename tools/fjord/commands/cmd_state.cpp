#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "output/json_text.h"
#include "output/time_text.h"

namespace fjord::cli {
namespace {

void add_change(JsonText& json, const HistoryEntry& change) {
  json.begin_object().key("version").number(change.version).key("term").number(change.term);
  json.key("unix_us").integer(change.unix_us).key("active_unix_us").integer(change.active_unix_us);
  json.key("what").text(change.what).key("why").text(change.why).key("who").text(change.who).end_object();
}

bool has_one_of(const HistoryEntry& change, const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return change.what.find(text) != std::string::npos || change.why.find(text) != std::string::npos ||
           change.who.find(text) != std::string::npos;
  });
}

/// Returns the newest entries that the options ask for, oldest first.
Result<std::vector<HistoryEntry>> wanted_history(Admin& admin, const StateArgs& args) {
  const bool is_filtered = !args.about.empty() || !args.except.empty();
  FJORD_TRY_ASSIGN(std::vector<HistoryEntry> entries, admin.history(is_filtered ? 0 : args.lines));
  if (!is_filtered) return entries;
  std::erase_if(entries, [&](const HistoryEntry& change) {
    return (!args.about.empty() && !has_one_of(change, args.about)) || has_one_of(change, args.except);
  });
  if (args.lines != 0 && entries.size() > args.lines) {
    entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(args.lines));
  }
  return entries;
}

}  // namespace

int run_state_log(const StateArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    const auto entries = wanted_history(admin, args);
    if (!entries) return report(entries.error());
    for (const HistoryEntry& change : *entries) {
      if (args.common.json()) {
        JsonText json;
        add_change(json, change);
        print_line(json.str());
      } else {
        print_line(fmt::format("{}  {:>6}  {}{}  [{}]", time_text(change.unix_us), change.version, change.what,
                               change.why.empty() ? "" : " -- " + change.why, change.who));
      }
    }
    return static_cast<int>(kOk);
  });
}

namespace {

void print_state(const ClusterStateInfo& state) {
  print_line("state         " + state.state);
  print_line("distribution  " + state.distribution);
  if (!state.pending_state.empty()) {
    print_line("pending       " + state.pending_state);
    if (state.pending_distribution != state.distribution) print_line("  with        " + state.pending_distribution);
    if (!state.waits_for.empty()) print_line("  " + state.waits_for);
  }
  print_line(fmt::format("leader        {}, term {}", state.leader, state.term));
  print_line(fmt::format("configuration version {}, schemas version {}", state.config_version, state.schema_version));
}

}  // namespace

int run_state_show(const StateArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    const auto state = admin.state();
    if (!state) return report(state.error());
    if (!args.common.json()) {
      print_state(*state);
      return static_cast<int>(kOk);
    }
    JsonText json;
    json.begin_object().key("state").text(state->state).key("distribution").text(state->distribution);
    json.key("term").number(state->term).key("leader").text(state->leader);
    json.key("pending_state").text(state->pending_state).key("pending_distribution").text(state->pending_distribution);
    json.key("waits_for").text(state->waits_for).key("config_version").number(state->config_version);
    json.key("schema_version").number(state->schema_version).end_object();
    print_line(json.str());
    return static_cast<int>(kOk);
  });
}

}  // namespace fjord::cli
