#include "fjord/sim/sim_env.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace fjord::sim {
namespace {

constexpr std::size_t kSector = 512;

std::unique_ptr<RandomAccessFile> create(SimEnv& env, const std::string& path, std::string_view content) {
  auto file = env.create_random_access(path);
  REQUIRE(file);
  REQUIRE((*file)->write(0, content));
  return std::move(*file);
}

/// Creates a file whose content and name are durable.
std::unique_ptr<RandomAccessFile> create_durable(SimEnv& env, const std::string& path, std::string_view content) {
  auto file = create(env, path, content);
  REQUIRE(file->sync());
  REQUIRE(env.sync_directory("/"));
  return file;
}

TEST_CASE("sim env: a loss of power keeps what was synced and drops the rest") {
  SimEnv env({.power_loss = true});
  auto file = create_durable(env, "/kept", std::string(2000, 'a'));
  REQUIRE(file->write(100, std::string(1000, 'b')));
  REQUIRE(file->write(1900, std::string(3000, 'c')));
  REQUIRE(create(env, "/no-name", "x")->sync());
  REQUIRE(env.create_directories("/dir"));
  env.lose_power_and_all_unsynced();
  CHECK(*read_file(env, "/kept") == std::string(2000, 'a'));
  CHECK_FALSE(*env.exists("/no-name"));
  CHECK_FALSE(*env.exists("/dir"));
  CHECK(env.used_bytes() == 2000);
  CHECK(file->write(0, "x").code() == StatusCode::IoError);
  CHECK(file->size().error().code() == StatusCode::IoError);
}

TEST_CASE("sim env: truncation and allocation are durable only after sync") {
  SimEnv env({.power_loss = true});
  const std::string content = std::string(700, 'a') + std::string(800, 'b');
  auto file = create_durable(env, "/f", content);
  REQUIRE(file->truncate(10));
  REQUIRE(file->write(10, std::string(600, 'c')));
  REQUIRE(file->allocate(4000));
  env.lose_power_and_all_unsynced();
  CHECK(*read_file(env, "/f") == content);
  auto again = env.open_random_access("/f");
  REQUIRE((*again)->truncate(5));
  REQUIRE((*again)->sync());
  REQUIRE((*again)->truncate(600));
  env.lose_power_and_all_unsynced();
  CHECK(*read_file(env, "/f") == "aaaaa");
}

TEST_CASE("sim env: writing an existing file anew may bring back the old content") {
  SimEnv env({.power_loss = true});
  create_durable(env, "/f", "old");
  create(env, "/f", "brand new");
  env.lose_power_and_all_unsynced();
  CHECK(*read_file(env, "/f") == "old");
}

TEST_CASE("sim env: unsynced writes survive in whole sectors, and every mixture occurs") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimEnv env({.seed = seed, .power_loss = true});
    auto file = create_durable(env, "/f", std::string(3 * kSector, 'o'));
    REQUIRE(file->write(0, std::string(3 * kSector, 'n')));
    env.lose_power();
    const std::string content = *read_file(env, "/f");
    REQUIRE(content.size() == 3 * kSector);
    std::string pattern;
    for (std::size_t i = 0; i < 3; ++i) {
      pattern += content[i * kSector];
      CHECK(content.substr(i * kSector, kSector) == std::string(kSector, pattern.back()));
    }
    seen.insert(pattern);
  }
  CHECK(seen.size() == 8);
}

TEST_CASE("sim env: an appended tail survives whole, in part, as zeros or not at all") {
  std::set<std::size_t> sizes;
  bool zeros = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimEnv env({.seed = seed, .power_loss = true});
    auto file = create_durable(env, "/f", std::string(100, 'o'));
    REQUIRE(file->write(100, std::string(2000, 'n')));
    env.lose_power();
    const std::string content = *read_file(env, "/f");
    sizes.insert(content.size());
    REQUIRE(content.size() >= 100);
    CHECK(content.substr(0, 100) == std::string(100, 'o'));
    zeros = zeros || content.find('\0') != std::string::npos;
    CHECK(content.substr(100).find_first_not_of(std::string("n\0", 2)) == std::string::npos);
  }
  CHECK(sizes.count(100) == 1);
  CHECK(sizes.count(2100) == 1);
  CHECK(sizes.size() > 3);
  CHECK(zeros);
}

TEST_CASE("sim env: a lost truncation leaves the old bytes, not zeros") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimEnv env({.seed = seed, .power_loss = true});
    const std::string content(3000, 'o');
    auto file = create_durable(env, "/f", content);
    REQUIRE(file->truncate(700));
    env.lose_power();
    const std::string left = *read_file(env, "/f");
    CHECK((left == content || left == content.substr(0, 700)));
  }
}

TEST_CASE("sim env: a rename without directory sync leaves the old or the new name, never none") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimEnv env({.seed = seed, .power_loss = true});
    REQUIRE(env.create_directories("/a"));
    REQUIRE(env.create_directories("/b"));
    auto file = create_durable(env, "/a/f", "x");
    REQUIRE(env.sync_directory("/a"));
    REQUIRE(env.rename("/a/f", "/b/g"));
    env.lose_power();
    const bool old_name = *env.exists("/a/f");
    const bool new_name = *env.exists("/b/g");
    CHECK(old_name != new_name);
    seen.insert(old_name ? "old" : "new");
  }
  CHECK(seen.size() == 2);
}

TEST_CASE("sim env: syncing either directory makes a rename between them durable") {
  const std::string synced = GENERATE("/a", "/b");
  SimEnv env({.power_loss = true});
  REQUIRE(env.create_directories("/a"));
  REQUIRE(env.create_directories("/b"));
  auto file = create_durable(env, "/a/f", "x");
  REQUIRE(env.rename("/a/f", "/b/g"));
  REQUIRE(env.sync_directory(synced));
  env.lose_power_and_all_unsynced();
  CHECK_FALSE(*env.exists("/a/f"));
  CHECK(*read_file(env, "/b/g") == "x");
}

TEST_CASE("sim env: a name that a synced rename took away does not come back with an older change") {
  SimEnv env({.power_loss = true});
  REQUIRE(env.create_directories("/a"));
  REQUIRE(env.create_directories("/b"));
  REQUIRE(env.sync_directory("/"));
  REQUIRE(create(env, "/a/f", "x")->sync());
  REQUIRE(env.rename("/a/f", "/b/g"));
  REQUIRE(env.sync_directory("/b"));
  REQUIRE(env.sync_directory("/a"));
  env.lose_power_and_all_unsynced();
  CHECK_FALSE(*env.exists("/a/f"));
  CHECK(*read_file(env, "/b/g") == "x");
}

TEST_CASE("sim env: removals come back unless the directory was synced") {
  SimEnv env({.power_loss = true});
  create_durable(env, "/f", "x");
  create_durable(env, "/g", "y");
  REQUIRE(env.remove_file("/f"));
  CHECK(env.used_bytes() == 1);
  env.lose_power_and_all_unsynced();
  CHECK(*read_file(env, "/f") == "x");
  CHECK(env.used_bytes() == 2);
  REQUIRE(env.remove_file("/f"));
  REQUIRE(env.sync_directory("/"));
  env.lose_power_and_all_unsynced();
  CHECK_FALSE(*env.exists("/f"));
}

TEST_CASE("sim env: a synced atomic replacement survives, an unsynced one leaves the old or the new content") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimEnv env({.seed = seed, .power_loss = true});
    REQUIRE(write_file_atomically(env, "/f", "one", true));
    REQUIRE(write_file_atomically(env, "/f", "two", true));
    env.lose_power();
    REQUIRE(*read_file(env, "/f") == "two");
    auto file = create(env, "/f.tmp", "three");
    REQUIRE(file->sync());
    REQUIRE(env.rename("/f.tmp", "/f"));
    env.lose_power();
    seen.insert(*read_file(env, "/f"));
  }
  CHECK(seen == std::set<std::string>{"three", "two"});
}

TEST_CASE("sim env: after a failed sync a second one succeeds without the data") {
  SimEnv env({.power_loss = true});
  auto file = create_durable(env, "/f", std::string(1024, 'o'));
  REQUIRE(file->write(0, std::string(512, 'n')));
  SECTION("readers still see the new data") {
    env.inject({.operations = FileOperation::Sync});
    CHECK(file->sync().code() == StatusCode::IoError);
    CHECK(read_file(env, "/f")->front() == 'n');
    REQUIRE(file->write(600, "later"));
    REQUIRE(file->sync());
    env.lose_power();
    const std::string content = *read_file(env, "/f");
    CHECK(content.substr(0, 512) == std::string(512, 'o'));
    CHECK(content.substr(600, 5) == "later");
  }
  SECTION("readers see the old data") {
    env.inject({.operations = FileOperation::Sync, .effect = FileFault::Effect::FailSyncOldData});
    CHECK(file->sync().code() == StatusCode::IoError);
    CHECK(*read_file(env, "/f") == std::string(1024, 'o'));
  }
  SECTION("written again, the data becomes durable") {
    env.inject({.operations = FileOperation::Sync});
    CHECK_FALSE(file->sync());
    REQUIRE(file->write(0, std::string(512, 'n')));
    REQUIRE(file->sync());
    env.lose_power();
    CHECK(read_file(env, "/f")->substr(0, 512) == std::string(512, 'n'));
  }
  CHECK(env.faults_pending() == 0);
  CHECK(env.faults_hit() == 1);
}

TEST_CASE("sim env: faults hit the operation, path and turn they were made for") {
  SimEnv env;
  REQUIRE(env.create_directories("/data/x"));
  auto inside = create(env, "/data/x/f", "abc");
  auto outside = create(env, "/other", "abc");
  env.inject({.path_prefix = "/data",
              .operations = FileOperation::Write | FileOperation::Truncate,
              .code = StatusCode::NoSpace,
              .skip = 1,
              .count = 2});
  CHECK(outside->write(0, "x"));
  CHECK(inside->write(0, "x"));
  CHECK(inside->sync());
  CHECK(inside->write(0, "y").code() == StatusCode::NoSpace);
  CHECK(inside->truncate(0).code() == StatusCode::NoSpace);
  CHECK(inside->write(0, "z"));
  CHECK(env.operations(FileOperation::Write) == 6);
  env.inject({.operations = FileOperations::all(), .count = 100});
  CHECK_FALSE(env.open_random_access("/other"));
  CHECK_FALSE(env.list_directory("/"));
  env.clear_faults();
  CHECK(env.open_random_access("other"));
}

TEST_CASE("sim env: a write that fails has stored a prefix") {
  std::set<std::size_t> lengths;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimEnv env({.seed = seed});
    auto file = create(env, "/f", "");
    env.inject({});
    CHECK_FALSE(file->write(0, "abcdef"));
    const std::string content = *read_file(env, "/f");
    CHECK(content == std::string("abcdef").substr(0, content.size()));
    lengths.insert(content.size());
  }
  CHECK(lengths.size() == 7);
}

TEST_CASE("sim env: lost and misdirected writes report success") {
  SimEnv env;
  auto file = create(env, "/f", std::string(1024, 'o'));
  env.inject({.effect = FileFault::Effect::LoseWrite});
  CHECK(file->write(0, "new"));
  CHECK(*read_file(env, "/f") == std::string(1024, 'o'));
  env.inject({.effect = FileFault::Effect::MisdirectWrite});
  CHECK(file->write(0, "new"));
  const std::string content = *read_file(env, "/f");
  CHECK(content.substr(0, 3) == "ooo");
  REQUIRE(content.find("new") != std::string::npos);
  CHECK(content.find("new") % kSector == 0);
}

TEST_CASE("sim env: a full disk takes what fits and says NoSpace") {
  SimEnv env({.capacity_bytes = 1000});
  auto file = create(env, "/f", std::string(600, 'x'));
  CHECK(env.space("/")->free_bytes == 400);
  CHECK(file->allocate(1001).code() == StatusCode::NoSpace);
  CHECK(*file->size() == 600);
  CHECK(file->write(600, std::string(500, 'y')).code() == StatusCode::NoSpace);
  CHECK(*file->size() == 1000);
  CHECK(file->write(0, std::string(1000, 'z')));  // The write needs no new space, so it succeeds.
  auto other = create(env, "/g", "");
  CHECK(other->write(0, "x").code() == StatusCode::NoSpace);
  REQUIRE(env.remove_file("/f"));
  CHECK(env.space("/")->free_bytes == 1000);
  CHECK(other->write(0, "x"));
  env.set_capacity(0);
  CHECK(env.space("/")->free_bytes == 0);
  CHECK(other->write(1, "x").code() == StatusCode::NoSpace);
}

TEST_CASE("sim env: replaced and moved files are counted once") {
  SimEnv env;
  create(env, "/f", std::string(10, 'x'));
  create(env, "/g", std::string(20, 'x'));
  REQUIRE(env.rename("/f", "/g"));
  CHECK(env.used_bytes() == 10);
  REQUIRE(env.create_directories("/d"));
  REQUIRE(env.rename("/g", "/d/g"));
  REQUIRE(env.rename("/d", "/e"));
  CHECK(env.used_bytes() == 10);
  REQUIRE(env.remove_all("/e"));
  CHECK(env.used_bytes() == 0);
}

TEST_CASE("sim env: a copy has the files, also what is not synced, and lives on its own") {
  SimEnv env({.power_loss = true});
  auto file = create_durable(env, "/kept", std::string(1024, 'a'));
  REQUIRE(file->write(0, "b"));
  REQUIRE(env.create_directories("/dir"));
  auto moved = create(env, "/dir/old", "moved");
  REQUIRE(env.rename("/dir/old", "/dir/new"));

  SimEnv same({.seed = 2, .power_loss = true});
  same.copy_from(env);
  CHECK(*read_file(same, "/kept") == "b" + std::string(1023, 'a'));
  CHECK(*read_file(same, "/dir/new") == "moved");
  CHECK(same.used_bytes() == env.used_bytes());

  same.lose_power_and_all_unsynced();
  CHECK(*read_file(same, "/kept") == std::string(1024, 'a'));
  CHECK_FALSE(*same.exists("/dir"));
  CHECK(*read_file(env, "/kept") == "b" + std::string(1023, 'a'));
  REQUIRE(env.remove_file("/kept"));
  REQUIRE(moved->write(0, "M"));
  CHECK(*read_file(same, "/kept") == std::string(1024, 'a'));
  CHECK(*read_file(env, "/dir/new") == "Moved");
}

TEST_CASE("sim env: a flipped bit stays flipped after a loss of power") {
  SimEnv env({.power_loss = true});
  auto file = create_durable(env, "/f", std::string(1024, 'a'));
  REQUIRE(file->write(0, "b"));
  REQUIRE(env.flip_bit("/f", 5, 1));
  REQUIRE(env.flip_bit("/f", 600, 0));
  CHECK(env.flip_bit("/f", 1024, 0).code() == StatusCode::InvalidArgument);
  CHECK(env.flip_bit("/g", 0, 0).code() == StatusCode::NotFound);
  std::string expected(1024, 'a');
  expected[5] = 'a' ^ 2;
  expected[600] = 'a' ^ 1;
  env.lose_power_and_all_unsynced();
  CHECK(*read_file(env, "/f") == expected);
}

}  // namespace
}  // namespace fjord::sim
