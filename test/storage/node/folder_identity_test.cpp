#include "folder_identity.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/sim/sim_env.h"
#include "storage/node/node_world.h"

namespace fjord::storage {
namespace {

constexpr const char* kFolder = "/data";

Result<FolderIdentity> open(Env& env, std::uint64_t drawn, const std::string& node = "storage.2") {
  return open_folder(env, kFolder, node, drawn);
}

void put_data(Env& env) { REQUIRE(write_file_atomically(env, std::string(kFolder) + "/catalog-00.a", "x", true)); }

using Incarnations = std::vector<std::uint64_t>;

const FolderIdentity kOwn{1, 7, "storage.2", false};

/// A folder that processes open one after the other.
struct Folder {
  Folder() { REQUIRE(env.create_directories(kFolder)); }
  Incarnations open(std::uint64_t incarnation, const std::string& boot = "boot", std::uint64_t stamp = 5,
                    const FolderIdentity& identity = kOwn) {
    const auto before = begin_session(env, kFolder, identity,
                                      {.boot = boot, .stamp = stamp, .incarnation = incarnation, .syncs = syncs});
    REQUIRE(before);
    return *before;
  }
  sim::SimEnv env;
  bool syncs = false;
};

}  // namespace

TEST_CASE("folder identity: an empty folder gets one, and keeps it while it holds data") {
  sim::SimEnv env;
  const Result<FolderIdentity> first = open(env, 7);
  REQUIRE(first);
  CHECK(*first == FolderIdentity{0, 7, "storage.2", false});
  put_data(env);
  CHECK(*open(env, 8) == *first);
  FolderIdentity bound = *first;
  bound.cluster = 99;
  REQUIRE(save_identity(env, kFolder, bound));
  CHECK(*open(env, 9) == bound);
}

TEST_CASE("folder identity: a folder of an earlier version is adopted, and an emptied one counts as another") {
  sim::SimEnv env;
  REQUIRE(env.create_directories(kFolder));
  put_data(env);
  CHECK(*open(env, 7) == FolderIdentity{0, 7, "storage.2", true});
  REQUIRE(env.remove_file(std::string(kFolder) + "/catalog-00.a"));
  CHECK(*open(env, 8) == FolderIdentity{0, 8, "storage.2", false});
}

TEST_CASE("folder identity: the folder of another node is refused and left as it is") {
  sim::SimEnv env;
  REQUIRE(open(env, 7, "storage.3"));
  put_data(env);
  const Result<FolderIdentity> refused = open(env, 8);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() ==
        "/data is folder 0000000000000007 of storage.3, no cluster yet, and this process is storage.2: give it the "
        "folder of storage.2, or an empty one, which is filled from other nodes");
  CHECK((*load_identity(env, kFolder))->node == "storage.3");
}

TEST_CASE("folder identity: a damaged file is named") {
  sim::SimEnv env;
  REQUIRE(open(env, 7));
  put_data(env);
  REQUIRE(write_file_atomically(env, std::string(kFolder) + "/identity", "FJIDxxxxxxxxxxxx", true));
  CHECK(open(env, 8).error().message().find("/data/identity is damaged") == 0);
}

namespace {

StorageNodeOptions with_files() {
  StorageNodeOptions options;
  options.files = kFolder;
  return options;
}

rpc::Poll poll_of(test::NodeWorld& world, std::uint64_t version, std::uint64_t cluster) {
  rpc::Poll poll{.info = world.info(version)};
  poll.info.cluster_id = cluster;
  return poll;
}

}  // namespace

TEST_CASE("storage node: it names its folder, which belongs to one cluster for good") {
  test::NodeWorld world(1, with_files());
  const rpc::PollReply first = world.ask(0, poll_of(world, 1, 50));
  REQUIRE(first.status);
  CHECK(first.folder_id != 0);
  CHECK(first.folder_cluster == 50);
  CHECK_FALSE(first.folder_adopted);
  put_data(world.env());
  world.restart(0);
  const rpc::PollReply other = world.ask(0, poll_of(world, 1, 51));
  CHECK(other.status.code() == StatusCode::InvalidArgument);
  CHECK(other.status.message().find("of storage.0, cluster 0000000000000032, and the fleet controller is of cluster "
                                    "0000000000000033") != std::string::npos);
  CHECK(world.ask(0, rpc::GetBucketInfo{.state_version = 1, .all = true}).status.code() == StatusCode::NotReady);
  const rpc::PollReply again = world.ask(0, poll_of(world, 1, 50));
  REQUIRE(again.status);
  CHECK(again.folder_id == first.folder_id);
}

TEST_CASE("storage node: without its files it takes no part and acknowledges nothing within two seconds") {
  const bool replaced = GENERATE(false, true);
  test::NodeWorld world(1, with_files());
  REQUIRE(world.ask(0, poll_of(world, 1, 50)).status);
  const BucketId bucket(3, 1);
  REQUIRE(world.install(0, 1, bucket, {ReplicaSet::make_epoch(1, 1), {0}}));
  REQUIRE(world.env().remove_all(kFolder));
  if (replaced) {
    REQUIRE(open(world.env(), 99, "storage.0"));
    put_data(world.env());
  }
  world.world.scheduler.run_for(seconds(2));

  const rpc::PollReply reply = world.ask(0, poll_of(world, 1, 50));
  CHECK(reply.status.code() == StatusCode::IoError);
  CHECK(reply.status.message().find(replaced ? "the node was started on" : "the files of the node are gone") !=
        std::string::npos);
  rpc::StorageOperation put;
  put.kind = rpc::OperationKind::Put;
  put.bucket = bucket;
  put.timestamp_us = 5;
  put.epoch = ReplicaSet::make_epoch(1, 1);
  const rpc::ApplyReply applied = world.apply(0, 1, world.owner(bucket), {put});
  REQUIRE(applied.results.size() == 1);
  CHECK(applied.results[0].status.code() == StatusCode::NotReady);
  CHECK(world.node(0).health().is_failed);
  CHECK_FALSE(world.node(0).health().fault.empty());
}

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

TEST_CASE("folder session: after a loss of power a process has what those before it had if all of them synced") {
  Folder folder;
  SECTION("all synced") {
    folder.syncs = true;
    CHECK(folder.open(11).empty());
    CHECK(folder.open(12, "second boot") == Incarnations{11});
    CHECK(folder.open(13, "") == Incarnations{11, 12});
    CHECK(folder.open(14, "third boot", 6).empty());
  }
  SECTION("one did not sync") {
    folder.syncs = true;
    CHECK(folder.open(11).empty());
    folder.syncs = false;
    CHECK(folder.open(12, "second boot") == Incarnations{11});
    CHECK(folder.open(13, "third boot").empty());
    folder.syncs = true;
    CHECK(folder.open(14, "third boot") == Incarnations{13});
    CHECK(folder.open(15, "fourth boot").empty());
    CHECK(folder.open(16, "fifth boot") == Incarnations{15});
  }
  SECTION("a program of an earlier version, which wrote no flags") {
    std::string content;
    put_fixed<std::uint64_t>(content, kOwn.folder);
    put_string(content, "boot");
    put_fixed<std::uint64_t>(content, 5);
    put_varint(content, 1);
    put_fixed<std::uint64_t>(content, 11);
    std::string file = "FJSS";
    put_fixed<std::uint16_t>(file, 1);
    put_fixed<std::uint32_t>(file, checksum32(content));
    folder.syncs = true;
    REQUIRE(write_file_atomically(folder.env, std::string(kFolder) + "/session", file + content, true));
    SECTION("is believed while the machine lives") { CHECK(folder.open(12) == Incarnations{11}); }
    SECTION("is not believed later") { CHECK(folder.open(12, "second boot").empty()); }
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
