// Real libraries in real processes, without a cluster.

#include "fjord/plugins/plugin_directory.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>

#include "fjord/common/log.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_format.h"
#include "fjord/document/json.h"

namespace fjord::plugins {
namespace {

using visitors::BucketResult;
using visitors::Visitor;
using visitors::VisitorRegistry;

const BucketId kBucket(8, 3);

class Context final : public visitors::VisitContext {
 public:
  explicit Context(std::shared_ptr<const DocumentTypeRepo> types) : types_(std::move(types)) {}
  const std::shared_ptr<const DocumentTypeRepo>& types() const override { return types_; }
  visitors::Mailbox mailbox() const override { return {}; }
  void send(BucketId bucket, std::string docblock) override { sent.emplace_back(bucket, std::move(docblock)); }
  bool cancelled() const override { return is_cancelled && is_cancelled(); }

  std::vector<std::pair<BucketId, std::string>> sent;
  std::function<bool()> is_cancelled;

 private:
  std::shared_ptr<const DocumentTypeRepo> types_;
};

class World {
 public:
  explicit World(PluginOptions options = {}) {
    log::set_level(log::Level::Off);
    visitors::add_builtin_visitors(registry);
    if (options.directory.empty()) options.directory = FJORD_PLUGIN_FOLDER;
    if (options.host.empty()) options.host = FJORD_PLUGIN_HOST;
    auto loaded = load_plugins(options, metrics, registry, applications);
    REQUIRE(loaded);
    libraries = std::move(*loaded);
    const std::string schema = "document item { field count type int { header } }";
    const auto types = DocumentTypeRepo::build(std::span(&schema, 1));
    REQUIRE(types);
    context = std::make_unique<Context>(*types);
  }

  const rpc::PluginLibrary& library(const std::string& name) const {
    for (const rpc::PluginLibrary& one : libraries) {
      if (std::filesystem::path(one.file).filename() == name + ".so") return one;
    }
    FAIL("no library " + name);
    return libraries.front();
  }

  std::unique_ptr<Visitor> make(const std::string& visitor, std::vector<rpc::Parameter> parameters) {
    const visitors::VisitorFactory* factory = registry.find(visitor);
    REQUIRE(factory != nullptr);
    auto made = (*factory)(*context, parameters);
    REQUIRE(made);
    return std::move(*made);
  }

  std::string block(const std::vector<int>& counts) const {
    DocBlockBuilder builder;
    for (const int count : counts) {
      const auto id = DocumentId::parse("id:t:item::" + std::to_string(count));
      if (!id) FAIL(id.error().message());
      const auto document =
          fields_from_json(*context->types()->find("item"), *id, "{\"count\": " + std::to_string(count) + "}");
      if (!document) FAIL(document.error().message());
      builder.add({id->gid(), Timestamp{1}, false, {}, document->header, document->body});
    }
    return builder.take();
  }

  /// Returns the final status of a visit by a misbehaving visitor.
  Status visit_badly(const std::string& how) {
    const std::unique_ptr<Visitor> visitor = make("bad", {{"how", how}});
    Status status = visitor->begin_bucket(kBucket);
    if (status) status = visitor->visit(kBucket, block({1}));
    if (!status) visitor->abandon_bucket(kBucket);
    return status;
  }

  MetricRegistry metrics;
  VisitorRegistry registry;
  mapreduce::ApplicationRegistry applications;
  std::vector<rpc::PluginLibrary> libraries;
  std::unique_ptr<Context> context;
};

BucketResult end_bucket(Visitor& visitor) {
  std::optional<BucketResult> got;
  visitor.end_bucket(kBucket, [&](BucketResult result) { got = std::move(result); });
  REQUIRE(got);
  return std::move(*got);
}

}  // namespace

TEST_CASE("plugins: a directory gives the visitors of its libraries, and says why others are not used") {
  const World world;
  REQUIRE(world.libraries.size() == 6);
  CHECK(world.library("test_visitors").problem.empty());
  const auto& visitors = world.library("test_visitors").functions;
  REQUIRE(visitors.size() == 2);
  CHECK(visitors[0].name == "bad");
  CHECK(visitors[1].name == "counting");
  CHECK_FALSE(visitors[1].is_application);
  const auto& applications = world.library("test_applications").functions;
  REQUIRE(applications.size() == 1);
  CHECK(applications[0].name == "sums");
  CHECK(applications[0].is_application);
  CHECK(applications[0].version == "3");
  REQUIRE(world.applications.find("sums") != nullptr);
  CHECK(world.applications.find("sums")->version == "3");
  CHECK(world.applications.find("sums")->parameters[1].default_value == "-1");
  CHECK(world.library("no_version").problem.find("nothing without a version") != std::string::npos);
  CHECK(world.library("other_interface").problem.find("interface 999") != std::string::npos);
  CHECK(world.library("no_plugin").problem.find("is not a plugin") != std::string::npos);
  CHECK(world.library("same_name").problem.find("another visitor dump") != std::string::npos);
  CHECK(world.registry.names() == std::vector<std::string>{"bad", "counting", "dump"});
}

TEST_CASE("plugins: without a directory there are none, and a missing one or a missing host is an error") {
  MetricRegistry metrics;
  VisitorRegistry registry;
  mapreduce::ApplicationRegistry applications;
  PluginOptions options;
  CHECK(load_plugins(options, metrics, registry, applications)->empty());
  options.directory = "there/is/no/such/folder";
  CHECK(load_plugins(options, metrics, registry, applications).status().code() == StatusCode::NotFound);
  options.directory = FJORD_PLUGIN_FOLDER;
  options.host = "there/is/no/such/program";
  CHECK(load_plugins(options, metrics, registry, applications).status().code() == StatusCode::IoError);
}

TEST_CASE("plugins: a library that other users can change is not used, nor is a folder of that kind") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / fmt::format("fjord-plugins-{}", ::getpid());
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all);
  const fs::path library = folder / "changed.so";
  const fs::path some = fs::directory_iterator(FJORD_PLUGIN_FOLDER)->path();
  fs::copy_file(some, library);
  PluginOptions options;
  options.directory = folder;
  options.host = FJORD_PLUGIN_HOST;
  MetricRegistry metrics;
  VisitorRegistry visitors;
  mapreduce::ApplicationRegistry applications;
  fs::permissions(library, fs::perms::owner_all | fs::perms::others_write);
  const auto refused = load_plugins(options, metrics, visitors, applications);
  REQUIRE(refused.has_value());
  CHECK(refused->front().file == "changed.so");
  CHECK_THAT(refused->front().problem, Catch::Contains("expected root or user"));
  fs::permissions(library, fs::perms::owner_all);
  fs::permissions(folder, fs::perms::owner_all | fs::perms::group_write);
  const auto of_others = load_plugins(options, metrics, visitors, applications);
  REQUIRE(of_others.has_value());
  CHECK_THAT(of_others->front().problem, Catch::Contains("expected root or user"));
  CHECK_THAT(of_others->front().problem, !Catch::Contains(folder.parent_path().string()));
  fs::remove_all(folder);
}

TEST_CASE("plugins: the name of an application is given once") {
  MetricRegistry metrics;
  VisitorRegistry registry;
  mapreduce::ApplicationRegistry applications;
  applications.add({"sums", "Built in", {}, {}});
  PluginOptions options;
  options.directory = FJORD_PLUGIN_FOLDER;
  options.host = FJORD_PLUGIN_HOST;
  const auto libraries = load_plugins(options, metrics, registry, applications);
  REQUIRE(libraries);
  for (const rpc::PluginLibrary& library : *libraries) {
    if (library.file.ends_with("test_applications.so")) CHECK(library.problem == "there is another application sums");
  }
  CHECK(applications.find("sums")->version.empty());
}

TEST_CASE("plugins: a visitor sees the documents, sends some, and its word on a bucket comes back") {
  World world;
  const std::unique_ptr<Visitor> visitor = world.make("counting", {{"least", "5"}});
  const std::string first = world.block({1, 5, 9});
  const std::string second = world.block({7, 2});
  REQUIRE(visitor->begin_bucket(kBucket));
  REQUIRE(visitor->visit(kBucket, first));
  REQUIRE(visitor->visit(kBucket, second));
  const BucketResult result = end_bucket(*visitor);
  CHECK(result.status);
  CHECK(result.result == "3");
  using Sent = std::vector<std::pair<BucketId, std::string>>;
  CHECK(world.context->sent == Sent{{kBucket, first}, {kBucket, second}});
  // The same object continues with the next bucket; the abandoned bucket does not count.
  REQUIRE(visitor->begin_bucket(kBucket));
  REQUIRE(visitor->visit(kBucket, first));
  visitor->abandon_bucket(kBucket);
  REQUIRE(visitor->begin_bucket(kBucket));
  CHECK(end_bucket(*visitor).result == "0");
  CHECK(world.metrics.counter("fjord_plugin_processes_total", "").value() == 1);
}

TEST_CASE("plugins: a large block goes there and back whole") {
  World world;
  const std::unique_ptr<Visitor> visitor = world.make("counting", {{"least", "0"}});
  std::vector<int> counts(200'000);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<int>(i);
  const std::string block = world.block(counts);
  REQUIRE(visitor->begin_bucket(kBucket));
  REQUIRE(visitor->visit(kBucket, block));
  CHECK(end_bucket(*visitor).result == "200000");
  REQUIRE(world.context->sent.size() == 1);
  CHECK(world.context->sent[0].second == block);
}

TEST_CASE("plugins: what a factory refuses ends the bucket with its reason") {
  World world;
  const std::unique_ptr<Visitor> visitor = world.make("counting", {});
  const Status status = visitor->begin_bucket(kBucket);
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK(status.message() == "counting needs the parameter least");
}

TEST_CASE("plugins: whatever a visitor does, it is said, and the next visit is as good as any") {
  const auto [how, said] = GENERATE(table<std::string, std::string>({
      {"throws", "visit() threw an exception: a bad day"},
      {"throws a number", "visit() threw something"},
      {"refuses", "nothing here"},
      {"crashes", "ended by signal 6"},
      {"exits", "ended with code 7"},
      {"loops", "did not return in time"},
      {"leaks", "std::bad_alloc"},
  }));
  PluginOptions options;
  if (how == "loops") options.call_timeout = milliseconds(300);
  options.memory_bytes = std::uint64_t{512} << 20;
  World world(options);
  const Status status = world.visit_badly(how);
  CAPTURE(how, status.message());
  CHECK_FALSE(status);
  CHECK(status.message().find(said) != std::string::npos);
  CHECK(world.metrics.counter("fjord_plugin_failed_calls_total", "").value() >= 1);
  if (how != "loops") CHECK(world.visit_badly("nothing").is_ok());
}

TEST_CASE(
    "plugins: a visit that nobody wants any more ends, whatever its visitor is doing, and the next one is served") {
  World world;
  bool is_cancelled = true;
  world.context->is_cancelled = [&] { return is_cancelled; };
  CHECK(world.visit_badly("loops").code() == StatusCode::Cancelled);
  is_cancelled = false;
  CHECK(world.visit_badly("nothing").is_ok());
}

}  // namespace fjord::plugins
