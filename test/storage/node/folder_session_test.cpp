#include "folder_session.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "fjord/sim/sim_env.h"

namespace fjord::storage {
namespace {

using Incarnations = std::vector<std::uint64_t>;

constexpr const char* kFolder = "/data";
const FolderIdentity kOwn{1, 7, "storage.2", false};

/// A folder that processes open one after the other.
struct Folder {
  Folder() { REQUIRE(env.create_directories(kFolder)); }
  Incarnations open(std::uint64_t incarnation, const std::string& boot = "boot", std::uint64_t stamp = 5,
                    const FolderIdentity& identity = kOwn) {
    const auto before =
        begin_session(env, kFolder, identity, {.boot = boot, .stamp = stamp, .incarnation = incarnation});
    REQUIRE(before);
    return *before;
  }
  sim::SimEnv env;
};

}  // namespace

TEST_CASE("folder session: a process has what those before it had, as long as machine and folder are the same") {
  Folder folder;
  CHECK(folder.open(11).empty());
  CHECK(folder.open(12) == Incarnations{11});
  CHECK(folder.open(13) == Incarnations{11, 12});
  SECTION("the machine was started anew") {
    CHECK(folder.open(14, "another boot").empty());
    CHECK(folder.open(15, "another boot") == Incarnations{14});
    // The first boot comes back only in the name: what came between is not forgotten.
    CHECK(folder.open(16).empty());
  }
  SECTION("the start of the machine is not known") {
    CHECK(folder.open(14, "").empty());
    CHECK(folder.open(15, "").empty());
  }
  SECTION("it is a copy of the folder") { CHECK(folder.open(14, "boot", 6).empty()); }
  SECTION("the folder was emptied and has another number") {
    CHECK(folder.open(14, "boot", 5, {1, 8, "storage.2", false}).empty());
  }
}

TEST_CASE("folder session: a damaged record is none, and is replaced") {
  Folder folder;
  CHECK(folder.open(11).empty());
  const std::string path = std::string(kFolder) + "/session";
  const std::string good = *read_file(folder.env, path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    REQUIRE(write_file_atomically(folder.env, path, bad, true));
    INFO("byte " << at);
    CHECK(folder.open(12).empty());
    REQUIRE(write_file_atomically(folder.env, path, good.substr(0, at), true));
    CHECK(folder.open(12).empty());
  }
  CHECK(folder.open(13) == Incarnations{12});
}

TEST_CASE("folder session: only the last processes are remembered") {
  Folder folder;
  for (std::uint64_t i = 1; i <= 100; ++i) folder.open(i);
  const Incarnations before = folder.open(101);
  CHECK(before.size() == kSessionsMax - 1);
  CHECK(before.back() == 100);
}

}  // namespace fjord::storage
