#include "schema_deployment.h"

#include <catch2/catch.hpp>

namespace fjord::fleetcontroller {

TEST_CASE("schema deployment: what is passed over in the schemas of others is no warning") {
  std::vector<std::string> warnings;
  const std::string song = "document song { field a type int { indexing: summary } }";
  const auto first = deploy_schemas({}, {.schemas = {song}}, warnings);
  REQUIRE(first);
  CHECK(warnings == std::vector<std::string>{
                        "the schema of song, line 1, column 36: \"indexing\" has no meaning here and is passed over"});
  warnings.clear();
  const auto second = deploy_schemas(
      *first, {.schemas = {"search ad {\n document { field t type string { indexing: index } } }"}}, warnings);
  REQUIRE(second);
  CHECK(second->version == first->version + 1);
  CHECK(second->schemas.size() == 2);
  CHECK(warnings == std::vector<std::string>{
                        "the schema of ad, line 2, column 35: \"indexing\" has no meaning here and is passed over"});
}

TEST_CASE("schema deployment: an error calls a schema by its type, not by a number") {
  std::vector<std::string> warnings;
  const auto first = deploy_schemas({}, {.schemas = {"document song { field a type int { } }"}}, warnings);
  REQUIRE(first);
  const auto refused = deploy_schemas(*first, {.schemas = {"document ad { field t type text { } }"}}, warnings);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() == "the schema of ad, line 1, column 28: unknown type text");
  CHECK(warnings.empty());
}

}  // namespace fjord::fleetcontroller
