#include "fjord/document/garbage_rules.h"

#include <catch2/catch.hpp>

#include "fjord/document/json.h"
#include "sample_schema.h"

namespace fjord {
namespace {

constexpr const char* kSchema = R"(
document news {
  keep_while: "news.day > now() - 30"
  field day type int { header }
  field text type string { }
}
document sport inherits news { }
document archive inherits news {
  keep_while "archive.text = \"keep*\""
}
document song { field year type int { } }
)";

bool is_garbage(const DocumentTypeRepo& repo, const std::string& id, const std::string& json, std::int64_t now) {
  const DocumentId parsed = DocumentId::parse(id).value();
  const EncodedDocument document = fields_from_json(*repo.find(parsed.type()), parsed, json).value();
  const DocumentView view = DocumentView::open(repo, document.header, document.body).value();
  const bool garbage = GarbageRules(repo, now).is_garbage(view);
  // The condition that is sent with a remove of garbage has to agree with is_garbage().
  const std::string condition = GarbageRules::condition(*repo.find(parsed.type()));
  if (condition.empty()) {
    CHECK_FALSE(garbage);
  } else {
    CHECK(Selection::parse(condition, repo)->with_now(now).matches(view) == garbage);
  }
  return garbage;
}

}  // namespace

TEST_CASE("garbage: documents for which the selection of their type is false, and no others") {
  const auto repo = test::repo_of(kSchema);
  CHECK(is_garbage(*repo, "id:x:news::1", R"({"day": 69})", 100));
  CHECK(is_garbage(*repo, "id:x:news::1", R"({"day": 70})", 100));
  CHECK_FALSE(is_garbage(*repo, "id:x:news::1", R"({"day": 71})", 100));
  CHECK_FALSE(is_garbage(*repo, "id:x:news::1", R"({"day": 70})", 99));
  CHECK_FALSE(is_garbage(*repo, "id:x:song::1", R"({"year": 1})", 100));
}

TEST_CASE("garbage: a type inherits the selection of its parent unless it has its own") {
  const auto repo = test::repo_of(kSchema);
  CHECK(repo->find("sport")->keep_while() == repo->find("news")->keep_while());
  CHECK(repo->find("archive")->keep_while() == "archive.text = \"keep*\"");
  CHECK(is_garbage(*repo, "id:x:sport::1", R"({"day": 1})", 100));
  CHECK_FALSE(is_garbage(*repo, "id:x:archive::1", R"({"day": 1, "text": "keep me"})", 100));
  CHECK(is_garbage(*repo, "id:x:archive::1", R"({"day": 99, "text": "drop me"})", 100));
}

TEST_CASE("garbage: where the selection has no meaning the document is kept") {
  const auto repo = test::repo_of(kSchema);
  CHECK_FALSE(is_garbage(*repo, "id:x:news::1", R"({"text": "no day"})", 100));
}

TEST_CASE("garbage: rules know whether they need the body, and whether there are any") {
  CHECK(GarbageRules(*test::repo_of("document a { field x type int { header } }"), 0).empty());
  CHECK(GarbageRules(*test::repo_of("document a { keep_while: \"true\" field x type int { header } }"), 0).empty());
  CHECK_FALSE(GarbageRules(*test::repo_of("document a { keep_while \"a.x > 1\" field x type int { header } }"), 0)
                  .needs_body());
  CHECK(GarbageRules(*test::repo_of("document a { keep_while \"a.x > 1\" field x type int { } }"), 0).needs_body());
}

TEST_CASE("garbage: a type whose stored selection can no longer be read keeps all documents, others go on") {
  const auto repo = test::repo_of(
      "document a { keep_while: \"a.x{k} > 1\" field x type int { header } } "
      "document b { keep_while: \"b.x > 1\" field x type int { header } }");
  CHECK_FALSE(GarbageRules::check(*repo).is_ok());
  CHECK_FALSE(GarbageRules(*repo, 0).empty());
  const auto is_dropped = [&](const std::string& type) {
    const DocumentId id = DocumentId::parse("id:n:" + type + "::1").value();
    const EncodedDocument document = fields_from_json(*repo->find(type), id, R"({"x": 0})").value();
    return GarbageRules(*repo, 0).is_garbage(DocumentView::open(*repo, document.header, document.body).value());
  };
  CHECK_FALSE(is_dropped("a"));
  CHECK(is_dropped("b"));
}

TEST_CASE("garbage: a schema whose selection does not compile is refused") {
  const auto error = [](const std::string& statement) {
    const std::string text = "document a { " + statement + "\n field x type int { } }";
    const auto repo = DocumentTypeRepo::build(std::span(&text, 1));
    if (!repo) return repo.error().to_string();
    const Status status = GarbageRules::check(**repo);
    return status.is_ok() ? std::string() : status.to_string();
  };
  CHECK(error("keep_while: \"a.x > 1\"").empty());
  CHECK_THAT(error("keep_while: \"a.y > 1\""),
             Catch::Contains("INVALID_ARGUMENT") && Catch::Contains("keep_while") && Catch::Contains("y"));
  CHECK_THAT(error("keep_while: \"a.x{k} > 1\""), Catch::Contains("keep_while") && Catch::Contains("has no keys"));
  CHECK_THAT(error("keep_while: \"a.x >\""), Catch::Contains("keep_while"));
  CHECK_THAT(error("keep_while: yes"), Catch::Contains("in double quotes"));
  CHECK_THAT(error("keep_while: \"true\" keep_while: \"true\""), Catch::Contains("declared twice"));
}

}  // namespace fjord
