#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "fjord/document/json.h"
#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

constexpr std::uint64_t kState = 4;
const std::string kSchema = R"(
document news {
  keep_while: "news.day > 10"
  field day type int { header }
  field text type string { }
}
document song { field day type int { header } })";

class GarbageWorld : public NodeWorld {
 public:
  GarbageWorld() : NodeWorld(1) {
    rpc::ClusterInfo info = this->info(kState);
    info.schema_version = 1;
    info.schemas = {kSchema};
    REQUIRE(ask(0, rpc::Poll{.info = info}).status);
    REQUIRE(install(0, kState, bucket, {}));
    types_ = *DocumentTypeRepo::build(std::span(&kSchema, 1));
  }
  std::string put(const std::string& type, int number, int day) {
    const std::string id = "id:test:" + type + ":n=1:" + std::to_string(number);
    const DocumentId parsed = *DocumentId::parse(id);
    const EncodedDocument document =
        *fields_from_json(*types_->find(type), parsed, R"({"day": )" + std::to_string(day) + "}");
    rpc::StorageOperation operation = put_of(id, ++timestamp_, "");
    operation.header = document.header;
    operation.body = document.body;
    REQUIRE(apply_one(0, kState, std::move(operation)).status);
    return id;
  }
  rpc::FindGarbageReply find(std::uint32_t max_ids = 0, std::uint64_t state_version = kState) {
    rpc::FindGarbage request;
    request.state_version = state_version;
    request.distributor = owner(bucket);
    request.bucket = bucket;
    request.max_ids = max_ids;
    return caller.ask(storage_address(0), request, seconds(100));
  }
  const BucketId bucket = get_of(id_in(1, 0)).bucket;

 private:
  std::uint64_t timestamp_ = 100;
  std::shared_ptr<const DocumentTypeRepo> types_;
};

}  // namespace

TEST_CASE("garbage: a storage node names the documents that their type does not keep, and removes none") {
  GarbageWorld node;
  const std::set<std::string> garbage = {node.put("news", 1, 9), node.put("news", 2, 10)};
  node.put("news", 3, 11);
  node.put("song", 4, 1);
  const std::string removed = node.put("news", 5, 1);
  REQUIRE(node.apply_one(0, kState, remove_of(removed, 1000)).status);
  const rpc::FindGarbageReply found = node.find();
  REQUIRE(found.status);
  CHECK(std::set<std::string>(found.ids.begin(), found.ids.end()) == garbage);
  CHECK(found.types == std::vector<std::string>{"news", "news"});
  CHECK(found.scanned == 4);
  CHECK_FALSE(found.more);
  CHECK(node.find().ids.size() == 2);
}

TEST_CASE("garbage: many documents are looked at in steps, and no more named than wanted") {
  GarbageWorld node;
  for (int number = 0; number < 1000; ++number) node.put("news", number, number % 20);
  CHECK(node.find().ids.size() == 550);
  const rpc::FindGarbageReply some = node.find(7);
  CHECK(some.ids.size() == 7);
  CHECK(some.more);
  CHECK(some.scanned < 100);
  // The scan is no faster than the maintenance budget allows.
  node.set_tunable("maintenance.bytes_per_s", 1024);
  node.set_tunable("maintenance.bytes_per_s_min", 1024);
  node.world.scheduler.run_for(seconds(1));
  const MonotonicTime begin = node.world.scheduler.clock().now();
  CHECK(node.find().ids.size() == 550);
  CHECK(node.world.scheduler.clock().now() - begin > seconds(10));
}

TEST_CASE("garbage: nobody but the owner under the current state is told") {
  GarbageWorld node;
  CHECK(node.find(0, kState + 1).status.code() == StatusCode::NotReady);
  CHECK(node.find(0, kState - 1).status.code() == StatusCode::WrongDistribution);
}

}  // namespace fjord::test
