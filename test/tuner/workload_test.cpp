#include "fjord/tuner/workload.h"

#include <catch2/catch.hpp>

namespace fjord::tuner {
namespace {

const std::string kLeast =
    "documents: 1e6\n"
    "document_bytes: {mean: 800}\n"
    "nodes:\n"
    "  count: 4\n"
    "  memory: 8GiB\n";

std::string error_of(const std::string& text) { return parse_workload(text, "w.yaml").status().message(); }

}  // namespace

TEST_CASE("workload: the example that is printed can be read, and has every key") {
  const auto read = parse_workload(example_workload(), "example");
  REQUIRE(read.has_value());
  CHECK(read->documents == 20'000'000);
  CHECK(read->document_bytes_p99 == 4000);
  CHECK(read->latency_target_s == Approx(0.02));
  CHECK(read->map_s_per_document == Approx(2e-6));
  CHECK(read->memory_bytes == 32.0 * (1ULL << 30));
  CHECK(read->disk_random_read_s == Approx(0.15e-3));
  CHECK(read->network_rate == 125e6);
  CHECK_FALSE(read->sync);
  CHECK(read->current.held_bytes_max == 128 << 20);
}

TEST_CASE("workload: little has to be said") {
  const auto read = parse_workload(kLeast, "w.yaml");
  REQUIRE(read.has_value());
  CHECK(read->document_bytes_p99 == 3200);
  CHECK(read->documents_per_node() == 1e6 * 2 / 4);
  CHECK(read->current == Settings());
}

TEST_CASE("workload: mistakes are named with line, key and what would be right") {
  CHECK(error_of("documents: 5\n").find("w.yaml:1: document_bytes.mean: is missing") == 0);
  CHECK(error_of(kLeast + "redundancy: 5\n").find("w.yaml:6: redundancy: 5 replicas on 4 nodes") == 0);
  CHECK(error_of(kLeast + "redundancy: 1.5\n").find("w.yaml:6: redundancy: 1.5 is out of bounds") == 0);
  CHECK(error_of(kLeast + "operations:\n  key_skew: 3\n")
            .find("w.yaml:7: operations.key_skew: 3 is out of bounds; expected a "
                  "number from 0 to 2") == 0);
  CHECK(error_of(kLeast + "operations:\n  read_per_s: 3\n").find("w.yaml:7: operations.read_per_s: unknown key") == 0);
  CHECK(error_of(kLeast + "durability: often\n").find("w.yaml:6: durability: expected process or sync") == 0);
  CHECK(error_of(kLeast + "scans: 3\n").find("w.yaml:6: scans: expected keys below it") == 0);
  CHECK(error_of(kLeast + "scans:\n  output_bytes: 3 apples\n")
            .find("w.yaml:7: scans.output_bytes: \"3 apples\" is not a "
                  "number of bytes") == 0);
  CHECK(error_of(kLeast + "documents: 7\n").find("w.yaml:") == 0);
  CHECK(error_of(kLeast + "current:\n  storage.speed: 9\n").find("w.yaml:7: current.storage.speed") == 0);
  CHECK(error_of(kLeast + "current:\n  storage.slotfiles_max: 65\n").find("w.yaml:7: current.storage.slotfiles_max") ==
        0);
  CHECK(error_of("documents: [\n").find("w.yaml:") == 0);
  CHECK(error_of("just words\n").find("w.yaml:1: the file") == 0);
}

TEST_CASE("workload: what the file says of disks is stronger than a profile") {
  auto read = parse_workload(kLeast + "  disk: {iops: 90}\n", "w.yaml");
  REQUIRE(read.has_value());
  const HardwareProfile profile = read->with_overrides(HardwareProfile());
  CHECK(profile[Constant::RandomReadsPerS] == 90);
  CHECK(profile.at(Constant::RandomReadsPerS).origin == Origin::Workload);
  CHECK(profile.at(Constant::SyncS).origin == Origin::Default);
}

}  // namespace fjord::tuner
