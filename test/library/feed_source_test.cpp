#include "feed_source.h"

#include <catch2/catch.hpp>
#include <cstdio>

namespace fjord {
namespace {

/// Parses one record of the test, with a feed whose file stays empty.
rpc::Operation parsed(const std::string& text, Status* refused = nullptr) {
  const std::vector<std::string> schemas = {
      "document item { field title type string { } field plays type int { header } }"};
  const auto types = DocumentTypeRepo::build(schemas);
  REQUIRE(types);
  auto file = InputFile::open("/dev/null");
  REQUIRE(file);
  FeedSource source(std::move(*file), *types, JsonValues::Exact);
  auto operation = source.parse({text, 1});
  if (refused != nullptr) *refused = operation.status();
  if (refused == nullptr) REQUIRE(operation.status() == Status::ok());
  return operation ? std::move(*operation) : rpc::Operation{};
}

}  // namespace

TEST_CASE("feed: updates, conditions and create become what is sent", "[feed]") {
  const rpc::Operation update = parsed(
      R"({"update": "id:a:item::1", "create": true, "condition": "item.plays > 1", "fields": {"plays": {"increment": 1}}})");
  CHECK(update.kind == rpc::OperationKind::Update);
  CHECK(update.id == "id:a:item::1");
  CHECK(DocumentUpdate::id_of(update.update) == "id:a:item::1");
  CHECK(update.create);
  CHECK(update.condition == "item.plays > 1");

  const rpc::Operation put =
      parsed(R"({"put": "id:a:item::2", "condition": "item.plays == 7", "fields": {"title": "x"}})");
  CHECK(put.kind == rpc::OperationKind::Put);
  CHECK(put.condition == "item.plays == 7");
  CHECK_FALSE(put.create);
  CHECK(!put.body.empty());

  const rpc::Operation remove = parsed(R"({"remove": "id:a:item::3", "condition": "item.plays == 0"})");
  CHECK(remove.kind == rpc::OperationKind::Remove);
  CHECK(remove.condition == "item.plays == 0");
  CHECK(parsed(R"({"remove": "id:a:item::3"})").condition.empty());

  Status refused;
  parsed(R"({"update": "id:a:item::1", "fields": {"plays": {"increment": "x"}}})", &refused);
  CHECK(refused.code() == StatusCode::InvalidField);
}

}  // namespace fjord
