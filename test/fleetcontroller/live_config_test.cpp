#include "live_config.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "settings_in_force.h"
#include "support/project_files.h"

namespace fjord::fleetcontroller {

TEST_CASE("live config: every setting is declared well, by rising name, and its default is a value of it") {
  const auto all = settings();
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].name);
    if (i > 0) CHECK(all[i - 1].name < all[i].name);
    CHECK(all[i].min <= all[i].max);
    CHECK_FALSE(all[i].meaning.empty());
    CHECK_FALSE(all[i].used_by.empty());
    if (all[i].has_default()) {
      CHECK(all[i].min <= all[i].default_value);
      CHECK(all[i].default_value <= all[i].max);
    }
    CHECK((all[i].is_live || !all[i].file_key.empty()));
    for (std::int64_t value : {all[i].min, all[i].max}) {
      CHECK(parse_setting(all[i], setting_text(all[i], value)).value() == value);
    }
    const bool is_on_page = settings_page().find("| `" + std::string(all[i].name) + "`") != std::string::npos;
    CHECK(is_on_page == all[i].is_live);
    CHECK((find_live_setting(all[i].name) != nullptr) == all[i].is_live);
  }
}

TEST_CASE("live config: the page for operators has the table as it is") {
  std::ifstream page(test::project_file("docs/operating/configuration.md"));
  std::ostringstream text;
  text << page.rdbuf();
  INFO("The page should end like this:\n" << settings_page());
  CHECK(text.str().ends_with("\n" + settings_page()));
}

TEST_CASE("live config: values are written with their units and checked against their bounds") {
  const auto value = [](const char* name, const char* text) -> std::int64_t {
    const Result<std::int64_t> parsed = parse_setting(*find_setting(name), text);
    return parsed ? *parsed : -1;
  };
  CHECK(value("storage.file_bytes_max", "64MiB") == 64 << 20);
  CHECK(value("storage.file_bytes_max", "8 KiB") == 8192);
  CHECK(value("storage.file_bytes_max", "8192B") == 8192);
  CHECK(value("storage.file_bytes_max", "8192") == 8192);
  CHECK(value("storage.file_bytes_max", "64MB") == 64'000'000);
  CHECK(value("storage.file_bytes_max", "64Mi") == -1);  // The unit is unknown.
  CHECK(value("storage.file_bytes_max", "1B") == -1);    // The value is below the minimum.
  CHECK(value("storage.file_bytes_max", "9999999999999TiB") == -1);
  CHECK(value("storage.space_reserve_bytes", "0") == 0);
  CHECK(value("controller.pending_max", "1500ms") == 1500);
  CHECK(value("controller.pending_max", "2min") == 120'000);
  CHECK(value("controller.pending_max", "-1s") == -1);
  CHECK(value("controller.pending_max", "1500") == -1);  // The unit is missing.
  CHECK(value("storage.dead_percent_max", "0.25") == 25);
  CHECK(value("storage.dead_percent_max", "0.255") == -1);
  CHECK(value("storage.dead_percent_max", "1.5") == -1);
  CHECK(value("maintenance.paused", "true") == 1);
  CHECK(value("maintenance.paused", "yes") == -1);
  CHECK(value("cluster.redundancy", "17") == -1);
  const Status refused = parse_setting(*find_setting("cluster.redundancy"), "17").error();
  CHECK(refused.message().find("cluster.redundancy") != std::string::npos);
  CHECK(refused.message().find("from 1 to 16") != std::string::npos);
}

TEST_CASE("live config: a change is all or nothing, and settings that rule each other are checked together") {
  const SettingValues before = {{"cluster.redundancy", "3"}};
  const auto change = [&](std::vector<std::string> set, std::vector<std::string> unset = {}) {
    rpc::ChangeConfig request;
    request.set = std::move(set);
    request.unset = std::move(unset);
    Result<SettingValues> changed = change_settings(before, request);
    if (changed) {
      if (Status rules = check_rules(before, *changed, {}); !rules) return Result<SettingValues>(rules);
    }
    return changed;
  };
  CHECK_FALSE(change({"maintenance.paused=true", "cluster.redundancy=x"}));
  CHECK_FALSE(change({}, {"nonsense"}));
  CHECK(change({"rpc.io_threads=2"}).error().message() ==
        "rpc.io_threads is set in the configuration file and takes effect at the start of a process");
  CHECK_FALSE(change({"storage.space_warn_percent=93"}));  // 93 % is not below the next stage, 92 %.
  // rpc.frame_bytes_max of the processes would limit this setting, but no process reports it here.
  CHECK(change({"distributor.document_bytes_max=128MiB"}));
  CHECK_FALSE(change({"controller.lease=2s", "controller.down_after=2s"}));
  // maintenance.bytes_per_s_min is 4 MiB, and forbids a lower rate unless the same change lowers it too.
  CHECK_FALSE(change({"maintenance.bytes_per_s=1MiB"}));
  CHECK(change({"maintenance.bytes_per_s=1MiB", "maintenance.bytes_per_s_min=1MiB"}));
  CHECK_FALSE(change({"maintenance.bytes_per_s_min=129MiB"}));
  const SettingValues after = *change({"maintenance.paused=true"}, {"cluster.redundancy"});
  CHECK(after == SettingValues{{"maintenance.paused", "1"}});
  CHECK(differences(before, after) ==
        std::vector<std::string>{"cluster.redundancy: 3 -> default", "maintenance.paused: default -> true"});
  CHECK(as_list(after) == std::vector<std::string>{"maintenance.paused=1"});
  CHECK(value_or(after, "maintenance.paused", 0) == 1);
  CHECK(value_or(after, "cluster.redundancy", 2) == 2);
}

}  // namespace fjord::fleetcontroller
