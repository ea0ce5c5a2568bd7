#include "live_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace fjord::fleetcontroller {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kGiB = 1024 * kMiB;
constexpr std::int64_t kTiB = 1024 * kGiB;
constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::string_view kController = "fleet controller";
constexpr std::string_view kDistributor = "distributors";
constexpr std::string_view kStorage = "storage nodes";

using enum SettingType;

constexpr SettingDeclaration kSettings[] = {
    {"cluster.distribution_bits", Integer, "8", 1, 32, "", kController,
     "The cluster has 2 to the power of this many parts that are placed. More take effect when no bucket has fewer "
     "bits."},
    {"cluster.redundancy", Integer, "2", 1, 16, "", kController,
     "Copies of each document, on different storage nodes."},
    {"controller.crash_period", Duration, "600s", 1000, 24 * kHourMs, "", kController,
     "Crashes of a node are counted over this time."},
    {"controller.crashes_max", Integer, "10", 0, 1'000'000, "", kController,
     "A node that crashed more often within controller.crash_period stays down until it is stable."},
    {"controller.distributors_up_ratio_min", Ratio, "0", 0, 100, "", kController,
     "With a lower share of the distributors available the cluster is down: operations are refused with the reason."},
    {"controller.down_after", Duration, "1800ms", 50, kHourMs, "", kController,
     "A node that has not answered for so long counts as down. Has to be longer than controller.lease, and than the "
     "interval at which the fleet controller polls."},
    {"controller.group_up_ratio_min", Ratio, "0", 0, 100, "", kController,
     "A group with a lower share of its storage nodes available is taken down as a whole; 0: never. Nodes that retire "
     "or "
     "are in maintenance count as available."},
    {"controller.groups_out_max", Integer, "1", 1, 1000, "", kController,
     "So many groups below the root may have nodes away at once for an operator's stop or maintenance to be safe; "
     "without groups each node counts as one. Every bucket has to keep a replica besides."},
    {"controller.lease", Duration, "1500ms", 10, kHourMs, "", kController,
     "A distributor that was polled within this time may read from one replica without asking the others. Has to be "
     "shorter than controller.down_after, and is never more than 5/6 of it."},
    {"controller.maintenance_max", Duration, "1h", 0, 365 * 24 * kHourMs, "", kController,
     "A storage node that an operator has put in maintenance for longer counts as down: what it holds is copied to "
     "others. 0ms: it never does."},
    {"controller.pending_max", Duration, "20s", 100, kHourMs, "", kController,
     "How long a node that answers, and is to be taken down, may delay a new state by not acknowledging it."},
    {"controller.refused_after", Duration, "400ms", 0, kHourMs, "", kController,
     "A node whose machine has refused connections for so long, because its process has ended, counts as down before "
     "controller.down_after is over; 0ms: it does not."},
    {"controller.stable_period", Duration, "60s", 0, 24 * kHourMs, "", kController,
     "A node that has answered for so long without a break is stable: its crashes are forgotten."},
    {"controller.storage_up_ratio_min", Ratio, "0", 0, 100, "", kController,
     "With a lower share of the storage nodes available the cluster is down: operations are refused with the reason, "
     "and "
     "data is not moved."},
    {"controller.transition_time", Duration, "0s", 0, 24 * kHourMs, "", kController,
     "A storage node that fell silent or stops is in maintenance for so long before it is down: nothing is copied."},
    {"distributor.bucket_bytes_max", Bytes, "64MiB", 1, kTiB, "", kDistributor,
     "A bucket with more bytes of documents is split in two."},
    {"distributor.bucket_entries_max", Integer, "200000", 1, 1 << 30, "", kDistributor,
     "A bucket with more documents and removes is split in two."},
    {"distributor.depth_max", Integer, "32", 1, 32, "", kDistributor,
     "Documents with more collections and structs within one another are refused."},
    {"distributor.document_bytes_max", Bytes, "64MiB", 1, kGiB, "", kDistributor, "Larger documents are refused."},
    {"distributor.document_bytes_warn", Bytes, "8MiB", 0, kGiB, "", kDistributor,
     "Larger documents are counted and reported; 0: never."},
    {"distributor.fields_max", Integer, "1000000", 1, kGiB, "", kDistributor,
     "Documents with more fields set are refused."},
    {"distributor.id_bytes_max", Bytes, "64KiB", 1, 64 * kKiB, "", kDistributor,
     "Documents with longer ids are refused."},
    {"distributor.merges_max", Integer, "8", 1, 1024, "", kDistributor, "Merges at once, over all its buckets."},
    {"distributor.pending_bytes_max", Bytes, "256MiB", 1, kTiB, "", kDistributor,
     "Bytes of operations under way; more are refused with BUSY, those of low priority before."},
    {"distributor.pending_operations_max", Integer, "16384", 1, 1 << 30, "", kDistributor,
     "Operations under way; more are refused with BUSY, those of low priority before."},
    {"distributor.reads_when_cluster_down", Boolean, "true", 0, 1, "", kDistributor,
     "While the cluster is down (controller.storage_up_ratio_min, controller.distributors_up_ratio_min) writes are "
     "refused; false: reads and visits are, too."},
    {"documents.bucket_tokens_max", Integer, "100000", 0, 1 << 30, "", kDistributor,
     "A bucket that keeps more idempotency tokens drops the oldest before documents.token_retention is over, but none "
     "of the last minute; 0: any number."},
    {"documents.remove_retention", Duration, "336h", 0, 10 * 365 * 24 * kHourMs, "", kDistributor,
     "How long it is remembered that a document was removed: a subscriber that was away for longer makes its copy "
     "anew. "
     "A storage node may be away for any time. 0s: for good."},
    {"documents.token_retention", Duration, "24h", 0, 10 * 365 * 24 * kHourMs, "", kDistributor,
     "How long an operation is recognised by its idempotency token: one that is repeated later is done again. 0s: for "
     "good."},
    {"maintenance.bytes_per_s", Bytes, "128MiB", kKiB, kTiB, "", kStorage,
     "What a storage node moves for merges each second at most, sent and received together. While users wait longer "
     "than "
     "without it, it is less."},
    {"maintenance.bytes_per_s_min", Bytes, "4MiB", kKiB, kTiB, "", kStorage,
     "And at least, if there is so much to move, however long users wait."},
    {"maintenance.gc_interval", Duration, "1h", 100, 365 * 24 * kHourMs, "", kDistributor,
     "How often each bucket is searched for documents that the keep_while of their type does not want to keep."},
    {"maintenance.moves_bytes_per_s", Bytes, "16MiB", kKiB, kTiB, "", kStorage,
     "And of data that only changes its place (a node was added, retires, or has another capacity), while 20 or more "
     "operations a second come that somebody waits for. Copies that are missing or differ are made as fast as "
     "maintenance.bytes_per_s allows."},
    {"maintenance.paused", Boolean, "false", 0, 1, "", kDistributor,
     "Nothing is moved, split, joined or collected. Replicas that are missing or differ are still repaired."},
    {"mapreduce.foreground_p99_target_ms", Integer, "0", 0, 60'000, "", kDistributor,
     "Jobs run fewer tasks while 99 % of the operations that somebody waits for take more milliseconds than this; 0: "
     "they "
     "do not look at it."},
    {"mapreduce.results_retention", Duration, "168h", 0, 3650 * 24 * kHourMs, "", kDistributor,
     "Results of a job are removed so long after its end, whether they are documents or kept beside its record; 0: "
     "never."},
    {"storage.dead_percent_max", Ratio, "0.3", 1, 99, "", kStorage,
     "Share of a slotfile that may be replaced or removed before it is written anew."},
    {"storage.entries_max", Integer, "8192", 4, 1 << 24, "", kStorage,
     "Entries of a slotfile beyond which all of its bucket are split."},
    {"storage.file_bytes_max", Bytes, "16MiB", 4 * kKiB, 2 * kGiB, "", kStorage,
     "Bytes of a slotfile beyond which all of its bucket are split."},
    {"storage.foreground_cpu_percent", Integer, "25", 0, 100, "", kStorage,
     "Processors of the machine, in percent and rounded up, that visitors and jobs keep off while 20 or more "
     "operations "
     "a second come that somebody waits for; they have at least one. 0: none."},
    {"storage.held_bytes_max", Bytes, "64MiB", 1, kTiB, "", kStorage,
     "Memory for writes that are in the journal and not yet in slotfiles."},
    {"storage.index_bytes_max", Bytes, "1GiB", 1, kTiB, "", kStorage, "Memory for the indexes of slotfiles."},
    {"storage.journal_bytes_max", Bytes, "256MiB", 1, kTiB, "", kStorage,
     "Journal that is replayed after a crash at most."},
    {"storage.scrub_bytes_per_second", Bytes, "4MiB", 0, kTiB, "", kStorage,
     "How fast everything that is stored is read and verified; 0: not at all."},
    {"storage.slotfiles_max", Integer, "64", 1, 64, "", kStorage,
     "Slotfiles of a bucket; the next power of two below counts."},
    {"storage.space_reserve_bytes", Bytes, "256MiB", 0, kTiB, "", kStorage,
     "With less free nothing is written but removes, with less than twice this puts are refused."},
    {"storage.visitors_max", Integer, "", 1, 1024, "", kStorage,
     "Threads of a storage node for visitors that somebody waits for, and as many for those in the background; about "
     "as many visitors of each run at once, others wait. Without a value 2.5 for each processor."},
    {"storage.visitors_queued_max", Integer, "256", 1, 65'536, "", kStorage,
     "Visitors that wait on a storage node; more are refused with BUSY, those in the background from half of it on."},
};

struct UnitName {
  std::string_view name;
  std::int64_t factor;
};
constexpr std::array<UnitName, 5> kByteUnits = {{{"TiB", kTiB}, {"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}, {"B", 1}}};
constexpr std::array<UnitName, 4> kTimeUnits = {{{"h", kHourMs}, {"min", 60'000}, {"s", 1000}, {"ms", 1}}};

Result<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return Status(StatusCode::InvalidArgument, "");
  return value;
}

/// Parses a number with a unit, such as "64MiB"; only 0 may have none.
template <std::size_t N>
Result<std::int64_t> with_unit(std::string_view text, const std::array<UnitName, N>& units) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  std::string_view unit = text.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  FJORD_TRY_ASSIGN(const std::int64_t number, integer(text.substr(0, digits)));
  if (unit.empty() && number == 0) return std::int64_t{0};
  for (const UnitName& known : units) {
    if (unit != known.name) continue;
    if (number > std::int64_t{1} << 62 || number > (std::int64_t{1} << 62) / known.factor) break;
    return number * known.factor;
  }
  return Status(StatusCode::InvalidArgument, "");
}

template <std::size_t N>
std::string unit_text(std::int64_t value, const std::array<UnitName, N>& units) {
  for (const UnitName& unit : units) {
    if (value % unit.factor == 0 && (value != 0 || unit.factor == 1)) {
      return fmt::format("{}{}", value / unit.factor, unit.name);
    }
  }
  return std::to_string(value);
}

Result<std::int64_t> ratio(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const double percent = std::round(value * 100);
  const bool fits = error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 1;
  if (!fits || std::abs(percent - value * 100) > 1e-9) return Status(StatusCode::InvalidArgument, "");
  return static_cast<std::int64_t>(percent);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<std::int64_t> parse_value(const SettingDeclaration& setting, std::string_view text) {
  switch (setting.type) {
    case Integer:
      return integer(text);
    case Bytes:
      return with_unit(text, kByteUnits);
    case Duration:
      return with_unit(text, kTimeUnits);
    case Ratio:
      return ratio(text);
    case Boolean:
      if (text == "true") return std::int64_t{1};
      if (text == "false") return std::int64_t{0};
      break;
    case Choice: {
      const auto choices = split(setting.choices, '|');
      const auto found = std::find(choices.begin(), choices.end(), text);
      if (found != choices.end()) return found - choices.begin();
      break;
    }
  }
  return Status(StatusCode::InvalidArgument, "");
}

std::string expected(const SettingDeclaration& setting) {
  if (setting.type == Boolean) return "true or false";
  if (setting.type == Choice) return fmt::format("one of {}", setting.choices);
  static constexpr std::string_view kNames[] = {"an integer", "bytes such as 64MiB", "a duration such as 1500ms",
                                                "a ratio with two digits at most"};
  return fmt::format("{} from {} to {}", kNames[static_cast<std::size_t>(setting.type)],
                     setting_text(setting, setting.min), setting_text(setting, setting.max));
}

Result<const SettingDeclaration*> known(std::string_view name) {
  if (const SettingDeclaration* setting = find_setting(name)) return setting;
  return Status(StatusCode::InvalidArgument,
                fmt::format("there is no setting \"{}\"; `fjord config list` shows all", name));
}

}  // namespace

std::span<const SettingDeclaration> settings() { return kSettings; }

const SettingDeclaration* find_setting(std::string_view name) {
  const auto found = std::find_if(std::begin(kSettings), std::end(kSettings),
                                  [&](const SettingDeclaration& setting) { return setting.name == name; });
  return found == std::end(kSettings) ? nullptr : &*found;
}

Result<std::int64_t> parse_setting(const SettingDeclaration& setting, std::string_view text) {
  const Result<std::int64_t> value = parse_value(setting, text);
  if (value && *value >= setting.min && *value <= setting.max) return value;
  return Status(StatusCode::InvalidArgument,
                fmt::format("{}: \"{}\" is not {}", setting.name, text, expected(setting)));
}

std::string setting_text(const SettingDeclaration& setting, std::int64_t value) {
  switch (setting.type) {
    case Bytes:
      return unit_text(value, kByteUnits);
    case Duration:
      return unit_text(value, kTimeUnits);
    case Ratio:
      return fmt::format("{:g}", static_cast<double>(value) / 100);
    case Boolean:
      return value == 0 ? "false" : "true";
    case Choice: {
      const auto choices = split(setting.choices, '|');
      return std::string(choices[static_cast<std::size_t>(value) % choices.size()]);
    }
    case Integer:
      break;
  }
  return std::to_string(value);
}

Result<SettingValues> change_settings(const SettingValues& values, const rpc::ChangeConfig& request) {
  SettingValues changed = values;
  for (const std::string& name : request.unset) {
    FJORD_TRY(known(name).status());
    changed.erase(name);
  }
  for (const std::string& assignment : request.set) {
    const std::size_t at = assignment.find('=');
    if (at == std::string::npos) {
      return Status(StatusCode::InvalidArgument, fmt::format("\"{}\": expected NAME=VALUE", assignment));
    }
    FJORD_TRY_ASSIGN(const SettingDeclaration* setting, known(std::string_view(assignment).substr(0, at)));
    FJORD_TRY_ASSIGN(const std::int64_t value, parse_setting(*setting, std::string_view(assignment).substr(at + 1)));
    changed[std::string(setting->name)] = std::to_string(value);
  }
  return changed;
}

std::vector<std::string> differences(const SettingValues& before, const SettingValues& after) {
  std::vector<std::string> lines;
  for (const SettingDeclaration& setting : kSettings) {
    const auto text = [&](const SettingValues& values) -> std::string {
      const auto found = values.find(std::string(setting.name));
      if (found == values.end()) return "default";
      const Result<std::int64_t> value = integer(found->second);
      return value ? setting_text(setting, *value) : found->second;
    };
    if (text(before) != text(after))
      lines.push_back(fmt::format("{}: {} -> {}", setting.name, text(before), text(after)));
  }
  return lines;
}

std::int64_t value_or(const SettingValues& values, std::string_view name, std::int64_t otherwise) {
  const auto found = values.find(std::string(name));
  if (found == values.end()) return otherwise;
  const Result<std::int64_t> value = integer(found->second);
  return value ? *value : otherwise;
}

std::int64_t value_or_default(const SettingValues& values, std::string_view name) {
  const SettingDeclaration& setting = *find_setting(name);
  return value_or(values, name, parse_setting(setting, setting.default_text).value());
}

std::vector<std::string> as_list(const SettingValues& values) {
  std::vector<std::string> list;
  for (const auto& [name, value] : values) list.push_back(fmt::format("{}={}", name, value));
  return list;
}

std::string settings_page() {
  std::string page = "| setting | default | bounds | used by | meaning |\n|---|---|---|---|---|\n";
  for (const SettingDeclaration& setting : kSettings) {
    const std::string otherwise = setting.default_text.empty() ? "see there" : std::string(setting.default_text);
    const std::string bounds = setting.type == Boolean ? "true, false"
                                                       : fmt::format("{} to {}", setting_text(setting, setting.min),
                                                                     setting_text(setting, setting.max));
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", setting.name, otherwise, bounds, setting.used_by,
                        setting.meaning);
  }
  return page;
}

}  // namespace fjord::fleetcontroller
