#include "fjord/document/json.h"
#include "sample_schema.h"

namespace fjord {
namespace {

Status error_of(std::string_view json) {
  const auto operation = parse_feed_operation(*test::sample_repo(), json);
  INFO(json);
  REQUIRE_FALSE(operation);
  return operation.error();
}

}  // namespace

TEST_CASE("feed operation: an update with condition and create") {
  const auto repo = test::sample_repo();
  const auto operation = parse_feed_operation(
      *repo,
      R"({"fields":{"plays":{"increment":1}},"create":true,"condition":"song.year > 1999","update":"id:m:song::x"})");
  INFO(operation.status());
  REQUIRE(operation);
  CHECK(operation->kind == FeedOperation::Kind::Update);
  CHECK(operation->id.str() == "id:m:song::x");
  CHECK_FALSE(operation->document);
  REQUIRE(operation->update);
  CHECK(operation->update->id() == operation->id);
  CHECK(operation->update->create_if_missing());
  CHECK(operation->update->updates().size() == 1);
  CHECK(operation->create_if_missing);
  CHECK(operation->condition == "song.year > 1999");
}

TEST_CASE("feed operation: puts and removes may have a condition, puts may create") {
  const auto repo = test::sample_repo();
  const auto put = parse_feed_operation(
      *repo, R"({"put":"id:m:song::x","condition":"song.year = 1","create":true,"fields":{"year":2}})");
  REQUIRE(put);
  CHECK(put->kind == FeedOperation::Kind::Put);
  CHECK(put->condition == "song.year = 1");
  CHECK(put->create_if_missing);
  CHECK(put->document);
  CHECK_FALSE(put->update);
  const auto remove = parse_feed_operation(*repo, R"({"remove":"id:m:song::x","condition":"true"})");
  REQUIRE(remove);
  CHECK(remove->kind == FeedOperation::Kind::Remove);
  CHECK(remove->condition == "true");
  const auto plain = parse_feed_operation(*repo, R"({"put":"id:m:song::x","create":false,"fields":{}})");
  REQUIRE(plain);
  CHECK(plain->condition.empty());
  CHECK_FALSE(plain->create_if_missing);
}

TEST_CASE("feed operation: an update of an id that names no type takes it from the member type") {
  const auto repo = test::sample_repo();
  CHECK(parse_feed_operation(*repo, R"({"update":"doc:m:x","type":"song","fields":{}})"));
  CHECK(error_of(R"({"update":"doc:m:x","fields":{}})").code() == StatusCode::UnknownType);
}

TEST_CASE("feed operation: members that do not belong together are refused") {
  for (const char* bad :
       {R"({"update":"id:m:song::x"})", R"({"update":"id:m:song::x","put":"id:m:song::x","fields":{}})",
        R"({"update":7,"fields":{}})", R"({"remove":"id:m:song::x","create":true})",
        R"({"put":"id:m:song::x","fields":{},"condition":7})", R"({"put":"id:m:song::x","fields":{},"condition":""})",
        R"({"put":"id:m:song::x","fields":{},"create":"true"})",
        R"({"put":"id:m:song::x","fields":{},"create":true,"create":true})", R"({"condition":"true","fields":{}})",
        R"({"put":"id:m:song::x","fields":{},"if":"true"})"}) {
    const Status status = error_of(bad);
    INFO(status);
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message().find("JSON, byte ") != std::string::npos);
  }
}

}  // namespace fjord
