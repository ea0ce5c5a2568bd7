// A copy of a cluster has what the original had, and the original does not notice.

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "fjord/common/log.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {
namespace {

constexpr unsigned kDocuments = 30;

std::string id_of(unsigned n) { return "id:n:item::" + std::to_string(n); }

struct CopiedWorld {
  explicit CopiedWorld(std::uint64_t seed) : cluster(shape(seed)) {
    log::set_level(log::Level::Off);
    cluster.start();
    for (unsigned n = 0; n < kDocuments; ++n) put(cluster, n, "first");
    cluster.scheduler().run_for(seconds(2));
  }
  static SimClusterOptions shape(std::uint64_t seed) {
    SimClusterOptions options;
    options.seed = seed;
    options.storage_nodes = 3;
    options.schemas = {"document item { field value type string { header } }"};
    return options;
  }
  static void put(SimCluster& where, unsigned n, const std::string& value) {
    where.admin().put_json(id_of(n), R"({"value": ")" + value + R"("})", seconds(20), [](OperationOutcome) {});
  }
  /// Returns the number of documents whose JSON holds `value`.
  static unsigned count(SimCluster& where, const std::string& value) {
    struct Gets {
      unsigned left = kDocuments;
      unsigned found = 0;
    };
    auto gets = std::make_shared<Gets>();
    for (unsigned n = 0; n < kDocuments; ++n) {
      where.admin().get_json(id_of(n), seconds(20), [gets, value](const OperationOutcome& got) {
        --gets->left;
        gets->found += got.is_ok() && got.json.find(value) != std::string::npos ? 1 : 0;
      });
    }
    REQUIRE(where.run_until([&] { return gets->left == 0; }, seconds(30)));
    return gets->found;
  }

  SimCluster cluster;
};

TEST_CASE("a copy of a cluster starts with all documents, and lives on its own", "[sim]") {
  CopiedWorld world(1);
  const std::string added = world.cluster.add_storage_node();
  const std::unique_ptr<SimCluster> copy = world.cluster.copy(2);
  CHECK(copy->scheduler().clock().now() == world.cluster.scheduler().clock().now());
  CHECK(copy->storage_names() == world.cluster.storage_names());
  CHECK_FALSE(copy->alive("storage.0"));
  copy->restart_everything();
  CHECK(CopiedWorld::count(*copy, "first") == kDocuments);
  for (unsigned n = 0; n < kDocuments; ++n) CopiedWorld::put(*copy, n, "second");
  copy->scheduler().run_for(seconds(2));
  CHECK(CopiedWorld::count(*copy, "second") == kDocuments);
  const std::unique_ptr<SimCluster> second = copy->copy(3);
  for (const std::string& name : copy->storage_names()) copy->wipe(name);
  CHECK(CopiedWorld::count(world.cluster, "first") == kDocuments);
  second->restart_everything();
  CHECK(CopiedWorld::count(*second, "second") == kDocuments);
}

TEST_CASE("a cluster that was copied goes on as if it had not been", "[sim]") {
  CopiedWorld alone(4);
  CopiedWorld copied(4);
  const std::unique_ptr<SimCluster> copy = copied.cluster.copy(5);
  copy->restart_everything();
  copy->scheduler().run_for(seconds(3));
  alone.cluster.scheduler().run_for(seconds(3));
  copied.cluster.scheduler().run_for(seconds(3));
  CHECK(alone.cluster.scheduler().trace_hash() == copied.cluster.scheduler().trace_hash());
}

}  // namespace
}  // namespace fjord::sim
