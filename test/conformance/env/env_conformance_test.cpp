// The contract of every Env; an implementation joins by a fixture.

#include <catch2/catch.hpp>
#include <filesystem>
#include <stdlib.h>
#include <string>
#include <vector>

#include "fjord/common/env.h"
#include "fjord/sim/sim_env.h"

namespace fjord {
namespace {

class PosixFixture {
 public:
  PosixFixture() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fjord-env-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
  }
  ~PosixFixture() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  Env& env() { return *env_; }
  std::string path(const std::string& name) const { return root_ + "/" + name; }

 private:
  std::string root_;
  std::unique_ptr<Env> env_ = make_posix_env();
};

template <bool kPowerLoss>
class SimFixture {
 public:
  SimFixture() { REQUIRE(env_.create_directories("/base")); }
  Env& env() { return env_; }
  std::string path(const std::string& name) const { return "/base/" + name; }

 private:
  sim::SimEnv env_{{.seed = 1, .power_loss = kPowerLoss}};
};

using SimEnvPlain = SimFixture<false>;
using SimEnvWithPowerLoss = SimFixture<true>;

std::string read_at(const RandomAccessFile& file, std::uint64_t offset, std::size_t n) {
  std::string bytes(n, '?');
  const Result<std::size_t> got = file.read(offset, bytes);
  REQUIRE(got);
  bytes.resize(*got);
  return bytes;
}

void create(Env& env, const std::string& path, std::string_view content) {
  auto file = env.create_random_access(path);
  REQUIRE(file);
  REQUIRE((*file)->write(0, content));
}

#define FJORD_ENV_CASE(name) TEMPLATE_TEST_CASE("env: " name, "[env]", PosixFixture, SimEnvPlain, SimEnvWithPowerLoss)

FJORD_ENV_CASE("what was written is read, also after opening again") {
  TestType fixture;
  const std::string path = fixture.path("file");
  {
    auto file = fixture.env().create_random_access(path);
    REQUIRE(file);
    REQUIRE((*file)->write(0, "hello world"));
    REQUIRE((*file)->write(6, "fjord"));
    REQUIRE((*file)->sync());
    CHECK(read_at(**file, 0, 11) == "hello fjord");
  }
  auto file = fixture.env().open_random_access(path);
  REQUIRE(file);
  CHECK(read_at(**file, 6, 5) == "fjord");
  CHECK(*(*file)->size() == 11);
  CHECK(*read_file(fixture.env(), path) == "hello fjord");
}

FJORD_ENV_CASE("a read is short only at the end of the file") {
  TestType fixture;
  create(fixture.env(), fixture.path("file"), "abcdef");
  auto file = fixture.env().open_random_access(fixture.path("file"));
  REQUIRE(file);
  CHECK(read_at(**file, 4, 10) == "ef");
  CHECK(read_at(**file, 6, 10).empty());
  CHECK(read_at(**file, 1000, 10).empty());
  CHECK(read_at(**file, 2, 0).empty());
}

FJORD_ENV_CASE("a write beyond the end leaves zeros in the gap") {
  TestType fixture;
  create(fixture.env(), fixture.path("file"), "ab");
  auto file = fixture.env().open_random_access(fixture.path("file"));
  REQUIRE(file);
  REQUIRE((*file)->write(2000, "z"));
  CHECK(*(*file)->size() == 2001);
  CHECK(*read_file(fixture.env(), fixture.path("file")) == "ab" + std::string(1998, '\0') + "z");
}

FJORD_ENV_CASE("creating an existing file empties it") {
  TestType fixture;
  create(fixture.env(), fixture.path("file"), "old");
  create(fixture.env(), fixture.path("file"), "");
  CHECK(read_file(fixture.env(), fixture.path("file"))->empty());
}

FJORD_ENV_CASE("allocate sets the size and the new bytes are zero; truncate cuts and grows") {
  TestType fixture;
  create(fixture.env(), fixture.path("file"), "abcdef");
  auto file = fixture.env().open_random_access(fixture.path("file"));
  REQUIRE(file);
  REQUIRE((*file)->allocate(5000));
  CHECK(*(*file)->size() == 5000);
  CHECK(read_at(**file, 0, 6000) == "abcdef" + std::string(4994, '\0'));
  REQUIRE((*file)->allocate(5000));
  CHECK(*(*file)->size() == 5000);
  REQUIRE((*file)->allocate(4));
  CHECK(read_at(**file, 0, 10) == "abcd");
  REQUIRE((*file)->truncate(2));
  CHECK(read_at(**file, 0, 10) == "ab");
  REQUIRE((*file)->truncate(4));
  CHECK(read_at(**file, 0, 10) == std::string("ab\0\0", 4));
}

FJORD_ENV_CASE("what is missing is NotFound") {
  TestType fixture;
  Env& env = fixture.env();
  CHECK(env.open_random_access(fixture.path("no")).error().code() == StatusCode::NotFound);
  CHECK(env.create_random_access(fixture.path("no/file")).error().code() == StatusCode::NotFound);
  CHECK(env.list_directory(fixture.path("no")).error().code() == StatusCode::NotFound);
  CHECK(env.remove_file(fixture.path("no")).code() == StatusCode::NotFound);
  CHECK(env.rename(fixture.path("no"), fixture.path("to")).code() == StatusCode::NotFound);
  CHECK(env.sync_directory(fixture.path("no")).code() == StatusCode::NotFound);
  CHECK(env.space(fixture.path("no")).error().code() == StatusCode::NotFound);
  CHECK(read_file(env, fixture.path("no")).error().message().find("no") != std::string::npos);
  CHECK_FALSE(*env.exists(fixture.path("no")));
  CHECK(env.remove_all(fixture.path("no")));
}

FJORD_ENV_CASE("a directory is no file and a file no directory") {
  TestType fixture;
  Env& env = fixture.env();
  REQUIRE(env.create_directories(fixture.path("dir")));
  create(env, fixture.path("file"), "x");
  CHECK_FALSE(env.open_random_access(fixture.path("dir")));
  CHECK_FALSE(env.create_random_access(fixture.path("dir")));
  CHECK_FALSE(env.remove_file(fixture.path("dir")));
  CHECK_FALSE(env.list_directory(fixture.path("file")));
  CHECK_FALSE(env.sync_directory(fixture.path("file")));
  CHECK_FALSE(env.create_directories(fixture.path("file/sub")));
  CHECK_FALSE(env.rename(fixture.path("file"), fixture.path("dir")));
  CHECK_FALSE(*env.exists(fixture.path("file/sub")));
}

FJORD_ENV_CASE("directories are made with their parents and listed in order") {
  TestType fixture;
  Env& env = fixture.env();
  REQUIRE(env.create_directories(fixture.path("a/b/c")));
  REQUIRE(env.create_directories(fixture.path("a/b")));
  for (const char* name : {"z", "a", "m"}) create(env, fixture.path("a/b/") + name, "x");
  CHECK(*env.list_directory(fixture.path("a/b")) == std::vector<std::string>{"a", "c", "m", "z"});
  CHECK(*env.list_directory(fixture.path("a/")) == std::vector<std::string>{"b"});
  CHECK(*env.exists(fixture.path("a/b/c")));
  CHECK(env.sync_directory(fixture.path("a/b")));
}

FJORD_ENV_CASE("removing takes one file or everything below a directory") {
  TestType fixture;
  Env& env = fixture.env();
  REQUIRE(env.create_directories(fixture.path("a/b")));
  create(env, fixture.path("a/b/x"), "x");
  create(env, fixture.path("a/y"), "y");
  create(env, fixture.path("ab"), "z");
  REQUIRE(env.remove_file(fixture.path("a/y")));
  CHECK(*env.list_directory(fixture.path("a")) == std::vector<std::string>{"b"});
  REQUIRE(env.remove_all(fixture.path("a")));
  CHECK_FALSE(*env.exists(fixture.path("a")));
  CHECK_FALSE(*env.exists(fixture.path("a/b/x")));
  CHECK(*env.exists(fixture.path("ab")));
}

FJORD_ENV_CASE("rename replaces its target and moves directories") {
  TestType fixture;
  Env& env = fixture.env();
  create(env, fixture.path("from"), "new");
  create(env, fixture.path("to"), "old");
  REQUIRE(env.rename(fixture.path("from"), fixture.path("to")));
  CHECK_FALSE(*env.exists(fixture.path("from")));
  CHECK(*read_file(env, fixture.path("to")) == "new");
  REQUIRE(env.rename(fixture.path("to"), fixture.path("to")));
  CHECK(*read_file(env, fixture.path("to")) == "new");
  REQUIRE(env.create_directories(fixture.path("d1")));
  create(env, fixture.path("d1/x"), "x");
  REQUIRE(env.rename(fixture.path("d1"), fixture.path("d2")));
  CHECK(*read_file(env, fixture.path("d2/x")) == "x");
  CHECK_FALSE(env.rename(fixture.path("d2"), fixture.path("d2/inside")));
}

FJORD_ENV_CASE("an open file outlives its name") {
  TestType fixture;
  create(fixture.env(), fixture.path("file"), "abc");
  auto file = fixture.env().open_random_access(fixture.path("file"));
  REQUIRE(file);
  REQUIRE(fixture.env().remove_file(fixture.path("file")));
  REQUIRE((*file)->write(3, "def"));
  CHECK(read_at(**file, 0, 10) == "abcdef");
}

FJORD_ENV_CASE("a file is replaced atomically and leaves no temporary file") {
  TestType fixture;
  Env& env = fixture.env();
  REQUIRE(write_file_atomically(env, fixture.path("file"), "one", true));
  REQUIRE(write_file_atomically(env, fixture.path("file"), "two", false));
  CHECK(*read_file(env, fixture.path("file")) == "two");
  CHECK(*env.list_directory(fixture.path("")) == std::vector<std::string>{"file"});
  CHECK(write_file_atomically(env, fixture.path("no/file"), "x", true).code() == StatusCode::NotFound);
}

FJORD_ENV_CASE("space is known and not more is free than there is") {
  TestType fixture;
  const Result<SpaceInfo> space = fixture.env().space(fixture.path(""));
  REQUIRE(space);
  CHECK(space->total_bytes > 0);
  CHECK(space->free_bytes <= space->total_bytes);
}

}  // namespace
}  // namespace fjord
