#include "fjord/document/schema_change.h"

#include "sample_schema.h"

namespace fjord {
namespace {

using Kind = SchemaProblem::Kind;

std::vector<SchemaProblem> problems(const std::string& from, const std::string& to,
                                    const SchemaChangeOptions& options = {}) {
  return schema_problems(*test::repo_of(from), *test::repo_of(to), options);
}

/// Returns the only problem of the change.
SchemaProblem problem(const std::string& from, const std::string& to, const SchemaChangeOptions& options = {}) {
  const auto found = problems(from, to, options);
  INFO(from << " -> " << to);
  REQUIRE(found.size() == 1);
  return found[0];
}

const std::string kBefore = R"(
document media { field title type string { header } }
document song inherits media {
  struct credit { field name type string {} field share type float {} }
  field year type int { header }
  field text type string { body }
  field credits type array<credit> {}
  field main type credit {}
  field charts type map<string, credit> {}
})";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kBefore;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("schema change: none, and additions, are no problem") {
  CHECK(problems(kBefore, kBefore).empty());
  CHECK(check_schema_change(*test::repo_of(kBefore), *test::repo_of(kBefore)));
  CHECK(problems(kBefore, kBefore + "document film { field x type int {} }").empty());
  CHECK(problems(kBefore, changed("field year", "field more type array<string> {} field year")).empty());
  CHECK(problems(kBefore, changed("field share", "field more type int {} field share")).empty());
  CHECK(problems(kBefore, changed("{ header } }\ndocument song inherits media",
                                  "{ header } }\ndocument other { } document song inherits media, other"))
            .empty());
  CHECK(problems(kBefore,
                 changed("document song inherits media {", "document song inherits media { body compression zstd"))
            .empty());
}

TEST_CASE("schema change: order, names of structs and moves to the body are no problem") {
  CHECK(problems("document a { field x type int {} field y type long {} }",
                 "document a { field y type long {} field x type int {} }")
            .empty());
  CHECK(problems("document a { struct s { field n type int {} } field x type s {} }",
                 "document a { struct t { field n type int {} } field x type t {} }")
            .empty());
  CHECK(problems("document a { field x type int { header } }", "document a { field x type int { body } }").empty());
  CHECK(problems("document a { field x type uri {} }", "document a { field x type string {} }").empty());
}

TEST_CASE("schema change: a document stored before is read with fields moved to the body") {
  const auto before = test::repo_of("document song { field x type int { header } }");
  const auto after = test::repo_of("document song { field x type int { body } }");
  Document song(*before->find("song"), test::id_of("id:m:song::x"));
  REQUIRE(song.set("x", std::int32_t{7}));
  const EncodedDocument stored = encode(song);
  const auto view = DocumentView::open(*after, stored.header, stored.body);
  REQUIRE(view->field("x"));
  CHECK(view->field("x")->as_int64() == 7);
}

TEST_CASE("schema change: removing a type is refused unless it may be dropped") {
  const std::string from = "document a { } document b { }";
  const SchemaProblem found = problem(from, "document a { }");
  CHECK(found.kind == Kind::TypeRemoved);
  CHECK(found.place == "b");
  CHECK(problems(from, "document a { }", {{"b"}}).empty());
  CHECK(problems(from, "document a { }", {{"a"}}).size() == 1);
}

TEST_CASE("schema change: removing a field or a member is refused unless it may be dropped") {
  const std::string no_text = changed("field text type string { body }", "");
  const SchemaProblem field = problem(kBefore, no_text);
  CHECK(field.kind == Kind::FieldRemoved);
  CHECK(field.place == "song.text");
  CHECK(problems(kBefore, no_text, {{"song.text"}}).empty());
  const std::string no_share = changed("field share type float {}", "");
  // Three fields have the struct, but the problem is reported once.
  const SchemaProblem member = problem(kBefore, no_share);
  CHECK(member.kind == Kind::FieldRemoved);
  CHECK(member.place == "song.credit.share");
  CHECK(problems(kBefore, no_share, {{"song.credit.share"}}).empty());
}

TEST_CASE("schema change: another type of a field, an element, a key or a member is refused even if marked") {
  const auto place_of = [&](const std::string& from, const std::string& to) {
    const SchemaProblem found = problem(from, to);
    CHECK(found.kind == Kind::TypeChanged);
    CHECK(problems(from, to, {{found.place}}).size() == 1);
    return found.place;
  };
  CHECK(place_of(kBefore, changed("year type int", "year type long")) == "song.year");
  CHECK(place_of(kBefore, changed("share type float", "share type double")) == "song.credit.share");
  CHECK(place_of(kBefore, changed("map<string, credit>", "map<int, credit>")) == "song.charts, its keys");
  CHECK(place_of(kBefore, changed("array<credit>", "array<string>")) == "song.credits, its elements");
  CHECK(place_of(kBefore, changed("main type credit", "main type string")) == "song.main");
  CHECK(place_of("document a { field x type weightedset<int> {} }", "document a { field x type array<int> {} }") ==
        "a.x");
  CHECK(
      place_of("document a { struct s { field n type int {} } struct t { field n type long {} } field x type s {} }",
               "document a { struct s { field n type int {} } struct t { field n type long {} } field x type t {} }") ==
      "a.s.n");
}

TEST_CASE("schema change: moving a field from the body to the header is refused") {
  const SchemaProblem found = problem(kBefore, changed("text type string { body }", "text type string { header }"));
  CHECK(found.kind == Kind::FieldMoved);
  CHECK(found.place == "song.text");
}

TEST_CASE("schema change: no longer inheriting is refused, also if the fields stay") {
  const std::string alone = changed("song inherits media {", "song { field title type string { header }");
  const SchemaProblem found = problem(kBefore, alone);
  CHECK(found.kind == Kind::InheritanceRemoved);
  CHECK(found.place == "song inherits media");
  CHECK(problems(kBefore, alone, {{"song inherits media"}}).empty());
  CHECK(problems(kBefore, changed("song inherits media {", "song {")).size() == 2);  // One of them: song loses a field.
}

TEST_CASE("schema change: a new name with the id of one that is given up is refused even if that may be dropped") {
  // Ids are hashes; types made by hand stand in for two names with equal hashes.
  const auto repo = [](const char* name, std::uint32_t id) {
    std::vector<std::unique_ptr<const DocumentType>> types;
    types.push_back(std::make_unique<DocumentType>(
        "song", std::vector<Field>{{name, id, DataType::primitive(TypeTag::Int), true}}));
    return DocumentTypeRepo::of(std::move(types)).value();
  };
  const auto found = schema_problems(*repo("old", 7), *repo("new", 7), {{"song.old"}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == Kind::IdTaken);
  CHECK(found[0].place == "song.old");
  CHECK(schema_problems(*repo("old", 7), *repo("new", 8), {{"song.old"}}).empty());
}

TEST_CASE("schema change: the status says all problems, and what to do") {
  const Status status = check_schema_change(*test::repo_of("document a { field x type int {} field y type int {} }"),
                                            *test::repo_of("document a { field x type long {} }"));
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK(status.message() ==
        "the new schema does not fit what is stored\n"
        "a.x: its type changes from int to long, and stored values of it could not be read; add a field with another "
        "name and copy the values\n"
        "a.y: it is removed, and stored documents that have it could not be read whole; keep it, or clear it in all "
        "documents and allow the loss: fjord schema deploy --allow-drop a.y");
  std::string many = "document a {";
  for (int i = 0; i < 25; ++i) many += " field f" + std::to_string(i) + " type int {}";
  const Status long_one = check_schema_change(*test::repo_of(many + " }"), *test::repo_of("document a { }"));
  CHECK(long_one.message().ends_with("\nand 5 more"));
}

}  // namespace fjord
