#include <fstream>
#include <sstream>

#include "fjord/config/cluster_config.h"

using fjord::config::ClusterConfig;
using fjord::config::parse_config;
using fjord::config::ProcessName;
using fjord::config::Role;

namespace {

const std::string kGood = R"(cluster:
  redundancy: 1
fleetcontroller:
  address: 127.0.0.1:1
  directory: fc
distributors:
  - address: 127.0.0.1:2
storage:
  - address: 127.0.0.1:3
    directory: s0
  - address: 127.0.0.1:4
    directory: /data/s1
    capacity: 2.5
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& yaml) {
  const auto config = parse_config(yaml, "/etc/c.yaml");
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().code() == fjord::StatusCode::InvalidArgument);
  return config.error().message();
}

}  // namespace

TEST_CASE("config: values are taken from the file and the rest from the defaults", "[config]") {
  const auto config = parse_config(kGood, "/etc/c.yaml");
  REQUIRE(config.status() == fjord::Status::ok());
  CHECK(config->redundancy == 1);
  CHECK(config->distribution_bits == 8);
  CHECK(config->durability == "process");
  CHECK_FALSE(config->allow_remote);
  CHECK(config->distribution() == "redundancy:1 (root 0 1*2.5)");
  CHECK(config->storage_addresses() == std::vector<std::string>{"127.0.0.1:3", "127.0.0.1:4"});
  CHECK(config->distributor_addresses() == std::vector<std::string>{"127.0.0.1:2"});
}

TEST_CASE("config: a cluster can have gateways", "[config]") {
  CHECK(parse_config(kGood, "/etc/c.yaml")->gateways.empty());
  const auto config = parse_config(kGood + std::string("gateways:\n  - address: 127.0.0.1:80\n"), "/etc/c.yaml");
  REQUIRE(config.status() == fjord::Status::ok());
  CHECK(config->names().back().to_string() == "gateway.0");
  CHECK(config->find(*fjord::config::ProcessName::parse("gateway.0"))->address == "127.0.0.1:80");
  CHECK(config->find({Role::Gateway, 1}) == nullptr);
  CHECK(error_of(kGood + std::string("gateways:\n  - address: 127.0.0.1:2\n")).find("used twice") != std::string::npos);
}

TEST_CASE("config: a gateway with TLS needs certificate and key", "[config]") {
  const std::string tls = kGood + std::string("gateways:\n  - address: 127.0.0.1:80\n    tls_address: 127.0.0.1:81\n");
  CHECK(error_of(tls).find("have to be given together") != std::string::npos);
  CHECK(error_of(tls + "    key: k\n").find("have to be given together") != std::string::npos);
  const auto config = parse_config(
      tls + "    key: /k\n    certificate: c\n    access_log: false\n    console_edits: false\n", "/etc/c.yaml");
  REQUIRE(config.status() == fjord::Status::ok());
  CHECK(config->gateways[0].certificate == "/etc/c");
  CHECK(config->gateways[0].key == "/k");
  CHECK(config->gateways[0].access_log == "false");
  CHECK(config->gateways[0].console_edits == "false");
  const std::string twice = tls + "    key: k\n    certificate: c\n  - address: 127.0.0.1:81\n";
  CHECK(error_of(twice).find("used twice") != std::string::npos);
}

TEST_CASE("config: relative folders are below that of the file", "[config]") {
  const auto config = parse_config(kGood, "/etc/c.yaml");
  REQUIRE(config.has_value());
  CHECK(config->fleetcontroller.directory == "/etc/fc");
  CHECK(config->storage[0].directory == "/etc/s0");
  CHECK(config->storage[1].directory == "/data/s1");
}

TEST_CASE("config: an unknown key is named with its line and the nearest known one", "[config]") {
  CHECK(error_of(with(kGood, "redundancy", "redundance")) ==
        "/etc/c.yaml:2: cluster.redundance: unknown key; did you mean cluster.redundancy?");
  CHECK_THAT(error_of(with(kGood, "capacity", "capacty")),
             Catch::Contains("/etc/c.yaml:13: storage[1].capacty: unknown key; did you mean storage[].capacity?"));
  CHECK_THAT(error_of(kGood + "distributor:\n  merges_max: 1\n"),
             Catch::Contains("/etc/c.yaml:14: distributor: unknown key"));
}

TEST_CASE("config: a bad value is named with its key, its line and what would fit", "[config]") {
  CHECK(error_of(with(kGood, "redundancy: 1", "redundancy: 17")) ==
        "/etc/c.yaml:2: cluster.redundancy: \"17\" is not an integer from 1 to 16");
  CHECK_THAT(error_of(with(kGood, "redundancy: 1", "distribution_bits: 17")),
             Catch::Contains("cluster.distribution_bits: \"17\" is more than 16, with which a cluster may begin"));
  CHECK_THAT(error_of(kGood + "storage_options:\n  visitors_max: 1025\n"),
             Catch::Contains("not an integer from 0 to 1024"));
  CHECK_THAT(error_of(with(kGood, "redundancy: 1", "redundancy: 1.5")), Catch::Contains("\"1.5\" is not an integer"));
  CHECK_THAT(error_of(with(kGood, "2.5", "-1")), Catch::Contains("storage[1].capacity: \"-1\" is not a number from 0"));
  CHECK_THAT(error_of(with(kGood, "127.0.0.1:3", "127.0.0.1:70000")),
             Catch::Contains("/etc/c.yaml:9: storage[0].address"));
  CHECK_THAT(error_of(kGood + "log:\n  level: loud\n"), Catch::Contains("one of debug, info, warning, error, off"));
  CHECK_THAT(error_of(kGood + "allow_remote: maybe\n"), Catch::Contains("\"maybe\" is not true or false"));
  CHECK_THAT(error_of(kGood + "storage_options:\n  stripes: 3\n"), Catch::Contains("not a power of two"));
  CHECK_THAT(error_of(kGood + "rpc:\n  - io_threads\n"),
             Catch::Contains("/etc/c.yaml:15: rpc: expected keys below it"));
}

TEST_CASE("config: missing, doubled and contradicting parts are errors", "[config]") {
  CHECK_THAT(error_of(""), Catch::Contains("/etc/c.yaml:1"));
  CHECK_THAT(error_of("a: [1, 2"), Catch::Contains("not YAML"));
  CHECK_THAT(error_of(with(kGood, "  directory: fc\n", "")), Catch::Contains("fleetcontroller.directory is missing"));
  CHECK_THAT(error_of(with(kGood, "    directory: s0\n", "")), Catch::Contains("storage[0].directory: is missing"));
  CHECK_THAT(error_of(kGood + "cluster:\n  redundancy: 2\n"),
             Catch::Contains("/etc/c.yaml:14: cluster: is there twice"));
  CHECK_THAT(error_of(with(kGood, "127.0.0.1:4", "127.0.0.1:3")), Catch::Contains("used twice"));
  CHECK_THAT(error_of(with(kGood, "/data/s1", "s0")), Catch::Contains("used twice"));
  CHECK_THAT(error_of(with(kGood, "redundancy: 1", "groups: (root 0)")), Catch::Contains("storage.1 is in no group"));
  CHECK_THAT(error_of(with(kGood, "redundancy: 1", "groups: (root 0 1 2)")),
             Catch::Contains("names storage.2, which is not in the list"));
  CHECK_THAT(error_of(with(kGood, "redundancy: 1", "groups: (root")), Catch::Contains("cluster.groups"));
}

TEST_CASE("config: the file knows which live settings it gives a first value for", "[config]") {
  const auto plain = parse_config(kGood, "c.yaml");
  REQUIRE(plain.has_value());
  CHECK(plain->live_settings_given() == std::set<std::string>{"cluster.redundancy"});
  const auto more = parse_config(kGood + "storage_options:\n  entries_max: 100\n  stripes: 2\n", "c.yaml");
  REQUIRE(more.has_value());
  CHECK(more->live_settings_given() == std::set<std::string>{"cluster.redundancy", "storage.entries_max"});
}

TEST_CASE("config: two values that do not go together are refused with both and their sources", "[config]") {
  CHECK(error_of(with(kGood, "  directory: fc", "  directory: fc\n  poll_interval_ms: 1800")) ==
        "/etc/c.yaml: fleetcontroller.poll_interval_ms (1800) has to be less than fleetcontroller.down_after_ms (1800, "
        "the default), or every node would count as down between two polls");
  CHECK_THAT(
      error_of(kGood + "storage_options:\n  space_warn_percent: 93\n"),
      Catch::Contains("space_warn_percent (93) has to be at most storage_options.space_throttle_percent (92, the"));
  CHECK(parse_config(kGood + "storage_options:\n  space_warn_percent: 92\n", "c.yaml").has_value());
}

TEST_CASE("config: a storage node may have another index than its place in the list", "[config]") {
  const auto config = parse_config(kGood + "    index: 3\n", "/etc/c.yaml");
  REQUIRE(config.has_value());
  CHECK(config->storage_addresses() == std::vector<std::string>{"127.0.0.1:3", "", "", "127.0.0.1:4"});
  CHECK(config->distribution() == "redundancy:1 (root 0 3*2.5)");
  CHECK(config->find({Role::Storage, 3})->directory == "/data/s1");
  CHECK(config->find({Role::Storage, 1}) == nullptr);
  CHECK(config->names().back().to_string() == "storage.3");
  CHECK_THAT(error_of(kGood + "    index: 0\n"), Catch::Contains("storage[1].index: there are two nodes storage.0"));
  CHECK_THAT(error_of(kGood + "    index: -1\n"), Catch::Contains("storage[1].index"));
}

TEST_CASE("config: only loopback addresses unless others are allowed", "[config]") {
  const std::string remote = with(kGood, "127.0.0.1:3", "0.0.0.0:3");
  CHECK_THAT(error_of(remote), Catch::Contains("storage.0: \"0.0.0.0:3\"") && Catch::Contains("allow_remote"));
  CHECK(parse_config(remote + "allow_remote: true\n", "c.yaml").has_value());
  for (const char* name : {"127.example.org:3", "127.0.0.1.example.org:3", "localhost.example.org:3", "127.1:3"}) {
    INFO(name);
    CHECK_THAT(error_of(with(kGood, "127.0.0.1:3", name)), Catch::Contains("allow_remote"));
  }
  CHECK(parse_config(with(kGood, "127.0.0.1:3", "127.0.0.2:3"), "c.yaml").has_value());
}

TEST_CASE("config: process names round-trip and others are refused", "[config]") {
  for (const char* text : {"storage.2", "distributor.0", "fleetcontroller.0", "gateway.1"}) {
    const auto name = ProcessName::parse(text);
    REQUIRE(name.has_value());
    CHECK(name->to_string() == text);
  }
  for (const char* text : {"", "storage", "storage.", "storage.x", "storage.70000", "proxy.0", "storage.1.2"}) {
    CHECK_FALSE(ProcessName::parse(text).has_value());
  }
  const auto config = parse_config(kGood, "c.yaml");
  CHECK(config->find({Role::Storage, 2}) == nullptr);
  CHECK(config->find({Role::FleetController, 1}) == nullptr);
  CHECK(config->names().size() == 4);
}

TEST_CASE("config: several fleet controllers are a list, one may be written either way") {
  const std::string section = "fleetcontroller:\n  address: 127.0.0.1:1\n  directory: fc\n";
  const auto one = parse_config(kGood, "/etc/cluster.yaml");
  REQUIRE(one);
  CHECK(one->fleet_controller_addresses() == std::vector<std::string>{"127.0.0.1:1"});
  const std::string list =
      "fleet_controllers:\n  - address: 127.0.0.1:1\n    directory: fc\n  - address: 127.0.0.1:9\n    directory: fc1\n";
  CHECK_THAT(error_of(with(kGood, section, list)), Catch::Contains("fleetcontroller.zookeeper"));
  CHECK_THAT(error_of(kGood + list), Catch::Contains("stands beside fleet_controllers"));
  const auto two =
      parse_config(with(kGood, section, list + "fleetcontroller:\n  zookeeper: 127.0.0.1:2181\n"), "/etc/cluster.yaml");
  REQUIRE(two);
  CHECK(two->fleet_controller_addresses() == std::vector<std::string>{"127.0.0.1:1", "127.0.0.1:9"});
  CHECK(two->fleetcontroller.directory == "/etc/fc");
  CHECK(two->find({Role::FleetController, 1})->directory == "/etc/fc1");
  CHECK(two->names().size() == one->names().size() + 1);
  CHECK(two->zookeeper == "127.0.0.1:2181");
}

TEST_CASE("config: the reference page is what the table of keys says", "[config]") {
  std::ifstream in(FJORD_CONFIGURATION_PAGE, std::ios::binary);
  std::ostringstream page;
  page << in.rdbuf();
  INFO("to bring it up to date: fjordd --help-config=markdown > docs/reference/configuration.md");
  CHECK(page.str() == fjord::config::reference_page());
}
