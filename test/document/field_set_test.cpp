#include "fjord/document/field_set.h"

#include <algorithm>

#include "random_values.h"
#include "sample_schema.h"

namespace fjord {
namespace {

FieldSet set_of(const DocumentTypeRepo& repo, std::string_view text) {
  auto set = FieldSet::parse(repo, text);
  INFO(text);
  INFO(set.status());
  REQUIRE(set);
  return *set;
}

Status refused(std::string_view text) {
  const auto set = FieldSet::parse(*test::sample_repo(), text);
  INFO(text);
  REQUIRE_FALSE(set);
  return set.error();
}

}  // namespace

TEST_CASE("field set: the forms and the parts they need") {
  const auto repo = test::sample_repo();
  struct Expected {
    const char* text;
    const char* canonical;
    FieldSet::Kind kind;
    bool header;
    bool body;
  };
  for (const Expected& each :
       {Expected{"[all]", "[all]", FieldSet::Kind::All, true, true},
        Expected{" [document] ", "[all]", FieldSet::Kind::All, true, true},
        Expected{"[id]", "[id]", FieldSet::Kind::Id, false, false},
        Expected{"[none]", "[none]", FieldSet::Kind::None, false, false},
        Expected{"song:[document]", "song:[document]", FieldSet::Kind::Fields, true, true},
        Expected{"song:title", "song:title", FieldSet::Kind::Fields, true, false},
        Expected{"song: lyrics", "song:lyrics", FieldSet::Kind::Fields, false, true},
        Expected{"song:year , lyrics,year", "song:year,lyrics", FieldSet::Kind::Fields, true, true}}) {
    INFO(each.text);
    const FieldSet set = set_of(*repo, each.text);
    CHECK(set.text() == each.canonical);
    CHECK(set.kind() == each.kind);
    CHECK(set.needs_header_fields() == each.header);
    CHECK(set.needs_body() == each.body);
  }
  CHECK(FieldSet().text() == "[all]");
}

TEST_CASE("field set: what is wrong is said with its place and what is known") {
  CHECK(refused("film:title").message() ==
        "field set \"film:title\", byte 0: unknown document type \"film\"; there are song");
  CHECK(refused("film:title").code() == StatusCode::UnknownType);
  const Status field = refused("song:title,titel");
  CHECK(field.code() == StatusCode::InvalidField);
  CHECK(field.message().starts_with(
      "field set \"song:title,titel\", byte 11: document type song has no field \"titel\"; it has title, year, "));
  for (const char* bad : {"", "song", "[every]", "[all", "[all] x", "song:", "song:,", "song:title,", "song:title year",
                          "song:[document],title", "song:[id]", ":title", "song:title]"}) {
    INFO(bad);
    CHECK(refused(bad).code() == StatusCode::InvalidArgument);
    CHECK(refused(bad).message().find(", byte ") != std::string::npos);
  }
}

TEST_CASE("field set: all, id and none give views of what went in and leave the buffer alone") {
  const auto repo = test::sample_repo();
  const EncodedDocument song = encode(test::full_song(*repo));
  EncodedDocument buffer;
  const auto all = set_of(*repo, "[all]").project(song.header, song.body, buffer);
  REQUIRE(all);
  CHECK(all->header.data() == song.header.data());
  CHECK(all->header == song.header);
  CHECK(all->body == song.body);
  const auto id = set_of(*repo, "[id]").project(song.header, "not looked at", buffer);
  REQUIRE(id);
  CHECK(id->header.data() == song.header.data());
  CHECK(id->body.empty());
  const auto view = DocumentView::open(*repo, id->header, id->body);
  REQUIRE(view);
  CHECK(view->id() == "id:music:song:n=7:full");
  CHECK(view->header_fields().empty());
  const auto none = set_of(*repo, "[none]").project("not", "looked at", buffer);
  REQUIRE(none);
  CHECK(none->header.empty());
  CHECK(none->body.empty());
  // The fields of [document] are one run of bytes, so nothing is copied.
  const auto whole = set_of(*repo, "song:[document]").project(song.header, song.body, buffer);
  REQUIRE(whole);
  CHECK(whole->header.data() == song.header.data());
  CHECK(whole->body.data() == song.body.data());
  CHECK(buffer == EncodedDocument());
}

TEST_CASE("field set: fields of the header alone do not need the body") {
  const auto repo = test::sample_repo();
  const EncodedDocument song = encode(test::full_song(*repo));
  EncodedDocument buffer;
  const auto projected = set_of(*repo, "song:year,stars").project(song.header, "not looked at", buffer);
  REQUIRE(projected);
  CHECK(projected->body.empty());
  const auto view = DocumentView::open(*repo, projected->header, projected->body);
  CHECK(view->field("year")->as_int64() == -1969);
  CHECK(view->field("stars")->as_int64() == -5);
  CHECK_FALSE(view->field("title"));
}

TEST_CASE("field set: of documents of other types only the id is kept; types that inherit count") {
  const auto repo = test::repo_of(R"(
document media { field title type string { header } field text type string { } }
document song inherits media { field year type int { header } field title type string { body } }
document film { field title type string { header } })");
  const auto make = [&](const char* type, const char* id) {
    Document document(*repo->find(type), test::id_of(id));
    REQUIRE(document.set("title", "t"));
    if (document.type().field("year") != nullptr) REQUIRE(document.set("year", std::int32_t{1}));
    return encode(document);
  };
  const FieldSet set = set_of(*repo, "media:[document]");
  EncodedDocument buffer;
  const EncodedDocument film = make("film", "id:m:film::x");
  const auto other = set.project(film.header, film.body, buffer);
  REQUIRE(other);
  CHECK(DocumentView::open(*repo, other->header, other->body)->header_fields().empty());
  const EncodedDocument song = make("song", "id:m:song::x");
  const auto inherited = set.project(song.header, song.body, buffer);
  REQUIRE(inherited);
  const auto view = DocumentView::open(*repo, inherited->header, inherited->body);
  CHECK(view->field("title")->as_string_view() == "t");
  CHECK_FALSE(view->field("year"));
  CHECK(set_of(*repo, "media:title").needs_body());
}

TEST_CASE("field set: a malformed document is Corruption") {
  const auto repo = test::sample_repo();
  const EncodedDocument song = encode(test::full_song(*repo));
  EncodedDocument buffer;
  CHECK(set_of(*repo, "[id]").project("", "", buffer).error().code() == StatusCode::Corruption);
  const FieldSet set = set_of(*repo, "song:year,lyrics");
  const auto cut = [](const std::string& part) { return std::string_view(part).substr(0, part.size() - 1); };
  CHECK(set.project(cut(song.header), song.body, buffer).error().code() == StatusCode::Corruption);
  CHECK(set.project(song.header, cut(song.body), buffer).error().code() == StatusCode::Corruption);
}

TEST_CASE("field set: projecting random documents keeps what a plain model keeps, to the byte") {
  const auto repo = test::sample_repo();
  const DocumentType& type = *repo->find("song");
  Random random(4);
  EncodedDocument buffer;
  for (int round = 0; round < 3000; ++round) {
    const auto id = test::id_of("id:m:song::" + std::to_string(round));
    const Document document = test::random_document(type, id, random);
    std::vector<const Field*> wanted;
    std::string text = "song:";
    for (std::uint64_t i = 1 + random.below(10); i > 0; --i) {
      wanted.push_back(&type.fields()[random.below(type.fields().size())]);
      text += (text.back() == ':' ? "" : ",") + wanted.back()->name;
    }
    const FieldSet set = set_of(*repo, text);
    Document expected(type, id);
    for (const auto& [field, value] : document.fields()) {
      if (std::find(wanted.begin(), wanted.end(), field) != wanted.end()) REQUIRE(expected.set(*field, value));
    }
    const EncodedDocument stored = encode(document);
    const auto projected = set.project(stored.header, set.needs_body() ? std::string_view(stored.body) : "", buffer);
    REQUIRE(projected);
    const EncodedDocument plain = encode(expected);
    INFO(text);
    REQUIRE(projected->header == plain.header);
    REQUIRE(projected->body == plain.body);
  }
}

}  // namespace fjord
