#include "state_file.h"

#include <catch2/catch.hpp>

#include "fjord/sim/sim_env.h"

namespace fjord::fleetcontroller {
namespace {

constexpr const char* kDirectory = "/controller";
constexpr const char* kFile = "/controller/fleetcontroller.state";

PersistedState sample() {
  PersistedState state;
  state.state = "version:7 bits:8 distributor:2 storage:3 .1.s:d";
  state.schema_version = 300;
  state.schemas = {"document a { }", "", std::string("document b { # \0\n }", 19)};
  state.incarnations = {{"storage.0", 1}, {"storage.1", 0xfedcba9876543210}, {"distributor.0", 77}};
  return state;
}

void overwrite(Env& env, std::string_view bytes) {
  auto file = env.create_random_access(kFile);
  REQUIRE(file);
  REQUIRE((*file)->write(0, bytes));
}

StatusCode load_code(Env& env) { return load_state(env, kDirectory).status().code(); }

}  // namespace

TEST_CASE("state file: gives back what was saved, last one wins") {
  sim::SimEnv env;
  REQUIRE(env.create_directories(kDirectory));
  REQUIRE(save_state(env, kDirectory, sample()));
  Result<PersistedState> loaded = load_state(env, kDirectory);
  REQUIRE(loaded);
  CHECK(*loaded == sample());

  REQUIRE(save_state(env, kDirectory, PersistedState{}));
  loaded = load_state(env, kDirectory);
  REQUIRE(loaded);
  CHECK(*loaded == PersistedState{});
}

TEST_CASE("state file: none is an empty state") {
  sim::SimEnv env;
  REQUIRE(env.create_directories(kDirectory));
  Result<PersistedState> loaded = load_state(env, kDirectory);
  REQUIRE(loaded);
  CHECK(*loaded == PersistedState{});
}

TEST_CASE("state file: cut off at any byte, or followed by one, it is corrupt") {
  sim::SimEnv env;
  REQUIRE(env.create_directories(kDirectory));
  REQUIRE(save_state(env, kDirectory, sample()));
  const std::string whole = *read_file(env, kFile);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    overwrite(env, std::string_view(whole).substr(0, size));
    CHECK(load_code(env) == StatusCode::Corruption);
  }
  overwrite(env, whole + '\0');
  CHECK(load_code(env) == StatusCode::Corruption);
  overwrite(env, whole);
  CHECK(load_code(env) == StatusCode::Ok);
}

TEST_CASE("state file: any single flipped bit makes it corrupt") {
  sim::SimEnv env;
  REQUIRE(env.create_directories(kDirectory));
  REQUIRE(save_state(env, kDirectory, sample()));
  const std::size_t size = read_file(env, kFile)->size();
  for (std::size_t offset = 0; offset < size; ++offset) {
    for (int bit = 0; bit < 8; ++bit) {
      INFO(offset << " bit " << bit);
      REQUIRE(env.flip_bit(kFile, offset, bit));
      CHECK(load_code(env) == StatusCode::Corruption);
      REQUIRE(env.flip_bit(kFile, offset, bit));
    }
  }
  CHECK(load_code(env) == StatusCode::Ok);
}

TEST_CASE("state file: what was saved survives a loss of power, and one that could not be saved leaves the old") {
  sim::SimEnv env({.seed = 3, .power_loss = true});
  REQUIRE(env.create_directories(kDirectory));
  REQUIRE(env.sync_directory("/"));
  REQUIRE(save_state(env, kDirectory, sample()));
  env.lose_power_and_all_unsynced();
  Result<PersistedState> loaded = load_state(env, kDirectory);
  REQUIRE(loaded);
  CHECK(*loaded == sample());

  // Repeats the save, and lets each of its operations on the disk fail once.
  const std::uint64_t before = env.operations();
  REQUIRE(save_state(env, kDirectory, sample()));
  const std::uint64_t steps = env.operations() - before;
  PersistedState next = sample();
  next.schema_version = 301;
  for (std::uint64_t step = 0; step < steps; ++step) {
    INFO(step);
    env.inject({.path_prefix = "/", .operations = sim::FileOperations::all(), .skip = step});
    const bool saved = save_state(env, kDirectory, next).is_ok();
    CHECK_FALSE(saved);
    env.clear_faults();
    loaded = load_state(env, kDirectory);
    REQUIRE(loaded);
    // If only the sync of the directory fails, the new file already has the name.
    const bool is_old_or_new = *loaded == sample() || *loaded == next;
    CHECK(is_old_or_new);
    REQUIRE(save_state(env, kDirectory, sample()));
  }
}

TEST_CASE("state file: a file that cannot be read is an error, not an empty state") {
  sim::SimEnv env;
  REQUIRE(env.create_directories(kDirectory));
  REQUIRE(save_state(env, kDirectory, sample()));
  env.inject({.path_prefix = "/", .operations = sim::FileOperation::Read});
  CHECK(load_code(env) == StatusCode::IoError);
}

}  // namespace fjord::fleetcontroller
