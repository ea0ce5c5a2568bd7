#include "settings_in_force.h"

#include <catch2/catch.hpp>

#include "fleet_world.h"

namespace fjord::fleetcontroller {
namespace {

SettingUser user(const std::string& name, const std::vector<std::string>& base) {
  return {.name = name, .base = parse_base_settings(base)};
}

rpc::Setting in_force(const char* name, const SettingValues& live, const std::vector<SettingUser>& users) {
  rpc::Setting said;
  add_value_in_force(said, *find_setting(name), live, users);
  return said;
}

rpc::Setting setting_of(Fleet& fleet, const std::string& name) {
  for (const rpc::Setting& setting : fleet.caller.ask(kController, rpc::GetConfig{}).settings) {
    if (setting.name == name) return setting;
  }
  FAIL(name);
  return {};
}

}  // namespace

TEST_CASE("settings in force: the value that most processes have, its source, and who has another one") {
  const char* const kName = "storage.entries_max";
  const std::vector<SettingUser> users = {
      user("controller", {"controller.down_after=1800="}), user("storage.0", {"storage.entries_max=8192="}),
      user("storage.1", {"storage.entries_max=500=file"}), user("storage.2", {"storage.entries_max=8192="})};
  rpc::Setting said = in_force(kName, {}, users);
  CHECK(said.in_force == "8192");
  CHECK(said.source == "built in");
  CHECK(said.elsewhere == std::vector<std::string>{"storage.1: 500 (configuration file)"});

  said = in_force(kName, {{kName, "100"}}, users);
  CHECK(said.in_force == "100");
  CHECK(said.source == "live configuration");
  CHECK(said.elsewhere.empty());

  std::vector<SettingUser> late = users;
  late[1].has_live = false;
  late[3].refused = {"storage.entries_max: too small"};
  said = in_force(kName, {{kName, "100"}}, late);
  CHECK(said.in_force == "8192");  // Two nodes still have 8192, one of them because it refuses the new value.
  CHECK(said.elsewhere == std::vector<std::string>{"storage.1: 100 (live configuration)"});

  said = in_force(kName, {}, {});
  CHECK(said.in_force == "8192");
  CHECK(said.source == "built in");
  CHECK(in_force("storage.visitors_max", {}, {}).in_force.empty());
}

TEST_CASE("settings in force: rules between settings hold wherever the values come from") {
  const std::vector<SettingUser> users = {
      user("controller", {"controller.down_after=1800=file", "fleetcontroller.poll_interval_ms=300="}),
      user("distributor.0", {"distributor.document_bytes_warn=8388608=", "distributor.document_bytes_max=67108864="}),
      user("distributor.1",
           {"distributor.document_bytes_warn=8388608=", "distributor.document_bytes_max=4194304=file"})};
  std::vector<SettingUser> all = users;
  all[0].base["controller.lease"] = {1500, kFromProgram, true};

  const Status lease = check_rules({}, {{"controller.lease", "300000"}}, all);
  CHECK(lease.code() == StatusCode::InvalidArgument);
  CHECK(lease.message() ==
        "controller: controller.lease (5min, live configuration) has to be less than controller.down_after (1800ms, "
        "configuration file), or a distributor would read from one replica when others may already count the "
        "distributor as down");
  CHECK(check_rules({}, {{"controller.lease", "1700"}}, all));
  // An unset lease follows down_after; a lease that is set does not.
  CHECK(check_rules({}, {{"controller.down_after", "1000"}}, all));
  CHECK_FALSE(check_rules({{"controller.lease", "1700"}},
                          {{"controller.lease", "1700"}, {"controller.down_after", "1000"}}, all));
  // Removing a value changes it, too.
  CHECK_FALSE(check_rules({{"controller.lease", "2000"}, {"controller.down_after", "9000"}},
                          {{"controller.lease", "2000"}}, all));
  CHECK_FALSE(check_rules({}, {{"controller.down_after", "300"}}, all));

  // One of the two distributors has document_bytes_max from its file.
  const Status warn = check_rules({}, {{"distributor.document_bytes_warn", "8388608"}}, users);
  CHECK(warn.message().starts_with("distributor.1: distributor.document_bytes_warn (8MiB, live configuration)"));
  // A rule that is already broken does not block unrelated changes, and is reported.
  CHECK(check_rules({}, {{"storage.entries_max", "100"}}, users));
  REQUIRE(broken_rules({}, users).size() == 1);
  CHECK(broken_rules({}, users)[0].starts_with("distributor.1: "));
  CHECK(broken_rules({}, {users[0], users[1]}).empty());
}

TEST_CASE("settings in force: what a node lists of its settings is read, and what is no number is left out") {
  const BaseSettings base = parse_base_settings({"a.b=5=file", "c.d=-1=", "e=f=g", "none", "h=7"});
  CHECK(base == BaseSettings{{"a.b", {5, kFromFile}}, {"c.d", {-1, kFromProgram}}, {"h", {7, kFromProgram}}});
}

TEST_CASE("fleet controller: a lease that is longer than down_after of the configuration file is refused") {
  Fleet fleet;
  fleet.options.settings_from_file = {"controller.down_after"};
  fleet.start_all();
  const rpc::ChangeConfigReply refused = fleet.caller.ask(kController, set({"controller.lease=5min"}));
  CHECK(refused.status.code() == StatusCode::InvalidArgument);
  CHECK_THAT(refused.status.message(), Catch::Contains("controller.down_after (1800ms, configuration file)"));
  rpc::Setting down_after = setting_of(fleet, "controller.down_after");
  CHECK(down_after.in_force == "1800ms");
  CHECK(down_after.source == "configuration file");
  CHECK(setting_of(fleet, "controller.lease").source == "built in");

  REQUIRE(fleet.caller.ask(kController, set({"controller.lease=3s", "controller.down_after=4s"})).status);
  down_after = setting_of(fleet, "controller.down_after");
  CHECK(down_after.in_force == "4s");
  CHECK(down_after.source == "live configuration");
  // Unsetting only down_after is refused, as the lease would then be too long. A revert to version 0 undoes both
  // changes.
  rpc::ChangeConfig unset;
  unset.unset = {"controller.down_after"};
  CHECK(fleet.caller.ask(kController, unset).status.code() == StatusCode::InvalidArgument);
  rpc::ChangeConfig revert;
  revert.revert = true;
  CHECK(fleet.caller.ask(kController, revert).status);
  CHECK(setting_of(fleet, "controller.lease").in_force == "1500ms");
}

TEST_CASE("fleet controller: its own settings from the configuration file are in force") {
  Fleet fleet;
  fleet.options.stable_period = seconds(90);
  fleet.options.settings_from_file = {"controller.stable_period"};
  fleet.start_all();
  const rpc::Setting stable = setting_of(fleet, "controller.stable_period");
  CHECK(stable.in_force == "90s");
  CHECK(stable.source == "configuration file");
}

TEST_CASE("fleet controller: nodes say which settings they began with, once for each start") {
  Fleet fleet;
  fleet.start_all();
  fleet.world.scheduler.run_for(seconds(2));
  for (const char* name : {"storage.0", "storage.1", "storage.2"}) {
    fleet.node(name).settings = {std::string("storage.entries_max=") + (name[8] == '2' ? "100=file" : "8192=")};
  }
  // The nodes had no settings to report at first, so the controller asks again until they have.
  fleet.world.scheduler.run_for(seconds(1));
  rpc::Setting entries = setting_of(fleet, "storage.entries_max");
  CHECK(entries.in_force == "8192");
  CHECK(entries.elsewhere == std::vector<std::string>{"storage.2: 100 (configuration file)"});
  CHECK_FALSE(fleet.node("storage.0").asked_for_settings);

  REQUIRE(fleet.caller.ask(kController, set({"storage.entries_max=5000"})).status);
  fleet.world.scheduler.run_for(seconds(1));
  entries = setting_of(fleet, "storage.entries_max");
  CHECK(entries.in_force == "5000");
  CHECK(entries.source == "live configuration");
  CHECK(entries.elsewhere.empty());
}

TEST_CASE("fleet controller: a process that was started as another node is down, and status says why") {
  Fleet fleet;
  fleet.start_all();
  fleet.node("storage.1").says_it_is = "storage.7";
  // The node is down, but not before the lease that it got as storage.1 is over.
  REQUIRE(fleet.world.scheduler.run_until([&] { return !fleet.state().is_up(NodeId::storage(1)); }, seconds(4)));
  const rpc::GetStatusReply status = fleet.caller.ask(kController, rpc::GetStatus{});
  CHECK(status.nodes[2].reason == "the process at storage.1:1 was started as storage.7");
  fleet.node("storage.1").says_it_is = "storage.1";
  REQUIRE(fleet.world.scheduler.run_until([&] { return fleet.state().is_up(NodeId::storage(1)); }, seconds(5)));
}

}  // namespace fjord::fleetcontroller
