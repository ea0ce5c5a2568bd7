#include <random>

#include "fjord/document/document_format.h"
#include "fjord/document/json.h"
#include "sample_schema.h"
#include "wire.h"

namespace fjord {
namespace {

/// Reads everything that a reader can ask for. All calls have to return, and must not read outside of the bytes.
void read_all(const DocumentTypeRepo& repo, std::string_view header, std::string_view body) {
  const auto view = DocumentView::open(repo, header, body);
  if (view) {
    (void)view->document();
    for (const auto& type : repo.types()) {
      for (const Field& field : type->fields()) {
        const auto slice = view->field(field);
        if (!slice) continue;
        (void)slice->as_int64();
        (void)slice->as_double();
        (void)slice->as_string_view();
        (void)slice->value();
        (void)slice->member(stable_id("name"));
        for (ElementCursor at(*slice); at.next();) (void)at.value().value();
      }
    }
  }
  (void)validate(repo, header, body);
}

/// Returns a copy in a buffer of exactly its size, so that a sanitizer detects reads beyond it.
std::vector<char> exact(std::string_view bytes) { return {bytes.begin(), bytes.end()}; }

std::string_view view_of(const std::vector<char>& bytes) { return {bytes.data(), bytes.size()}; }

}  // namespace

TEST_CASE("document view: single fields are read in place") {
  const auto repo = test::sample_repo();
  const DocumentType& type = *repo->find("song");
  const EncodedDocument encoded = encode(test::full_song(*repo));
  const auto view = DocumentView::open(*repo, encoded.header, encoded.body);
  REQUIRE(view);
  CHECK(view->id() == "id:music:song:n=7:full");
  CHECK(document_id_of_header(encoded.header) == view->id());
  CHECK(view->type() == &type);
  CHECK(view->type_id() == type.id());

  CHECK(view->field("year")->as_int64() == -1969);
  CHECK(view->field("plays")->as_int64() == 9000000000);
  CHECK(view->field("stars")->as_int64() == -5);
  CHECK(view->field("live")->as_bool());
  CHECK(view->field("loudness")->as_double() == -7.25);
  CHECK(view->field("seconds")->as_int64() == 213);
  CHECK(view->field(*type.field("lyrics"))->as_string_view() == std::string(300, 'l'));
  CHECK(view->field_by_id(stable_id("cover"))->as_string_view().size() == 3);
  CHECK(view->has_field(*type.field("tags")));
  CHECK_FALSE(view->field("nothing"));
  const std::string_view title = view->field("title")->as_string_view();
  CHECK(title.data() > encoded.header.data());
  CHECK(title.data() < encoded.header.data() + encoded.header.size());

  const auto credit = view->field("main_credit");
  REQUIRE(credit);
  CHECK(credit->member(stable_id("name"))->as_string_view() == "Kari");
  CHECK_FALSE(credit->member(stable_id("nothing")));
}

TEST_CASE("document view: collections are walked element by element") {
  const auto repo = test::sample_repo();
  const EncodedDocument encoded = encode(test::full_song(*repo));
  const auto view = DocumentView::open(*repo, encoded.header, encoded.body);
  REQUIRE(view);
  std::vector<std::string> seen;
  ElementCursor tags(*view->field("tags"));
  CHECK(tags.count() == 3);
  while (tags.next()) seen.push_back(std::to_string(tags.index()) + std::string(tags.value().as_string_view()));
  CHECK(tags.ok());
  CHECK(seen == std::vector<std::string>{"0a", "1", "2c"});

  ElementCursor moods(*view->field("moods"));
  REQUIRE(moods.next());
  CHECK(moods.key().as_string_view() == "calm");
  CHECK(moods.value().as_int64() == 10);
  REQUIRE(moods.next());
  CHECK(moods.value().as_int64() == -3);
  CHECK_FALSE(moods.next());
  CHECK(moods.ok());

  ElementCursor charts(*view->field("charts"));
  REQUIRE(charts.next());
  CHECK(charts.key().as_string_view() == "no");
  CHECK(charts.value().as_int64() == 1);

  ElementCursor none(*view->field("title"));
  CHECK_FALSE(none.next());
}

TEST_CASE("document view: a header alone is enough for its fields") {
  const auto repo = test::sample_repo();
  const EncodedDocument encoded = encode(test::full_song(*repo));
  const auto view = DocumentView::open(*repo, encoded.header, {});
  REQUIRE(view);
  CHECK(view->field("title"));
  CHECK_FALSE(view->field("lyrics"));
}

TEST_CASE("document view: a type that the repo does not know is still readable by field id") {
  const auto repo = test::sample_repo();
  const EncodedDocument encoded = encode(test::full_song(*repo));
  const auto other = test::repo_of("document other { field x type int {} }");
  const auto view = DocumentView::open(*other, encoded.header, encoded.body);
  REQUIRE(view);
  CHECK(view->type() == nullptr);
  CHECK(view->field_by_id(stable_id("year"))->as_int64() == -1969);
  CHECK(view->document().error().code() == StatusCode::UnknownType);
  CHECK(validate(*other, encoded.header, encoded.body).code() == StatusCode::UnknownType);
}

TEST_CASE("document view: a field that a later schema moved to the other part is still found") {
  const auto old_repo = test::repo_of("document t {\n field a type int { header }\n}");
  const auto new_repo = test::repo_of("document t {\n field a type int { body }\n}");
  Document document(*old_repo->find("t"), test::id_of("id:n:t::1"));
  REQUIRE(document.set("a", std::int32_t{5}));
  const EncodedDocument encoded = encode(document);
  const auto view = DocumentView::open(*new_repo, encoded.header, encoded.body);
  REQUIRE(view);
  CHECK(view->field("a")->as_int64() == 5);
  CHECK(validate(*new_repo, encoded.header, encoded.body).code() == StatusCode::InvalidField);
}

TEST_CASE("document view: a value of another type, of a field that was dropped and came back, is not set") {
  const std::string rest = "field kept type string {} struct part { field m type int {} field k type int {} }";
  const auto before = test::repo_of(
      "document u { field a type int {header} field l type array<int> {} field p type part {} " + rest + " }");
  const auto after = test::repo_of(
      "document u { field a type string {header} field l type array<string> {} field p type part {} "
      "field kept type string {} struct part { field m type string {} field k type int {} } }");
  const auto id = test::id_of("id:a:u::1");
  const auto old = fields_from_json(*before->find("u"), id, R"({"a":7,"l":[1],"p":{"m":1,"k":2},"kept":"x"})");
  REQUIRE(old);
  const auto view = DocumentView::open(*after, old->header, old->body);
  REQUIRE(view);
  CHECK_FALSE(view->field("a"));
  CHECK_FALSE(view->field("l"));
  CHECK(to_json_fields(*view).value() == R"({"p":{"k":2},"kept":"x"})");
  const auto plain = fields_from_json(*before->find("u"), id, R"({"a":7,"l":[1],"kept":"x"})");
  REQUIRE(plain);
  const auto document = DocumentView::open(*after, plain->header, plain->body);
  REQUIRE(document);
  CHECK(document->document());
}

TEST_CASE("validate: what does not fit the type is named") {
  const auto repo = test::sample_repo();
  const DocumentType& type = *repo->find("song");
  std::string prefix;
  append_header_prefix(prefix, type, "id:music:song::x");
  const auto with = [&](std::string_view name, TypeTag tag, std::string_view value) {
    std::string header = prefix;
    append_field_start(header, stable_id(name), tag);
    put_string(header, value);
    return header;
  };
  CHECK(validate(*repo, prefix, ""));
  CHECK(validate(*repo, with("title", TypeTag::String, "x"), ""));
  CHECK(validate(*repo, with("unheard", TypeTag::String, "x"), "").code() == StatusCode::InvalidField);
  CHECK(validate(*repo, with("title", TypeTag::Raw, "x"), "").code() == StatusCode::InvalidField);
  CHECK(validate(*repo, with("lyrics", TypeTag::String, "x"), "").code() == StatusCode::InvalidField);
  CHECK(validate(*repo, with("title", TypeTag::String, "\xff"), "").code() == StatusCode::Corruption);
  CHECK(validate(*repo, with("year", TypeTag::Int, "123"), "").code() == StatusCode::Corruption);
  CHECK(validate(*repo, with("live", TypeTag::Bool, "\x02"), "").code() == StatusCode::Corruption);
  CHECK(validate(*repo, with("title", TypeTag::String, "x") + "y", "").code() == StatusCode::Corruption);
  const std::string twice = with("title", TypeTag::String, "x");
  CHECK(validate(*repo, twice + twice.substr(prefix.size()), "").code() == StatusCode::Corruption);
  // An array of ints instead of strings, an array with more elements than bytes, and a map with a duplicate key.
  CHECK(validate(*repo, with("tags", TypeTag::Array, std::string("\x02\x00", 2)), "").code() ==
        StatusCode::InvalidField);
  CHECK(validate(*repo, with("tags", TypeTag::Array, "\x01\x7f\x01x"), "").code() == StatusCode::Corruption);
  const std::string moods("\x01\x02\x01x\x01\x00\x00\x00\x01x\x02\x00\x00\x00", 14);
  CHECK(validate(*repo, with("moods", TypeTag::WeightedSet, moods), "").message().find("twice") != std::string::npos);

  std::string wrong_id;
  append_header_prefix(wrong_id, type, "id:music:other::x");
  CHECK(validate(*repo, wrong_id, "").code() == StatusCode::InvalidId);
  std::string bad_id;
  append_header_prefix(bad_id, type, "music");
  CHECK(validate(*repo, bad_id, "").code() == StatusCode::InvalidId);
  std::string newer = prefix;
  newer[0] = 2;
  CHECK(validate(*repo, newer, "").code() == StatusCode::Corruption);
}

TEST_CASE("document view: every truncation is refused or leaves out whole fields, and nothing is read beyond the end") {
  const auto repo = test::sample_repo();
  const EncodedDocument encoded = encode(test::full_song(*repo));
  std::size_t accepted = 0;
  for (std::size_t n = 0; n < encoded.header.size(); ++n) {
    const auto cut = exact(std::string_view(encoded.header).substr(0, n));
    read_all(*repo, view_of(cut), encoded.body);
    if (validate(*repo, view_of(cut), encoded.body)) ++accepted;
  }
  for (std::size_t n = 0; n < encoded.body.size(); ++n) {
    const auto cut = exact(std::string_view(encoded.body).substr(0, n));
    read_all(*repo, encoded.header, view_of(cut));
    if (validate(*repo, encoded.header, view_of(cut))) ++accepted;
  }
  // Only a cut between two fields, or right after the prefix, gives a valid shorter document.
  CHECK(accepted == repo->find("song")->fields().size());
}

TEST_CASE("document view: every change of a single byte is survived") {
  const auto repo = test::sample_repo();
  const EncodedDocument encoded = encode(test::full_song(*repo));
  auto header = exact(encoded.header);
  auto body = exact(encoded.body);
  for (auto* part : {&header, &body}) {
    for (char& byte : *part) {
      const char original = byte;
      for (int change : {1, 0x7f, 0x80, 0xff, 0x10}) {
        byte = static_cast<char>(original ^ change);
        read_all(*repo, view_of(header), view_of(body));
      }
      byte = original;
    }
  }
  CHECK(validate(*repo, view_of(header), view_of(body)));
}

TEST_CASE("document view: random damage is survived") {
  const auto repo = test::sample_repo();
  const EncodedDocument encoded = encode(test::full_song(*repo));
  std::mt19937 random(4711);
  std::size_t refused = 0;
  for (int round = 0; round < 5000; ++round) {
    auto header = exact(encoded.header);
    auto body = exact(encoded.body);
    auto& part = random() % 2 == 0 ? header : body;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      part[random() % part.size()] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
    }
    if (random() % 3 == 0) part.resize(random() % part.size());
    read_all(*repo, view_of(header), view_of(body));
    if (!validate(*repo, view_of(header), view_of(body))) ++refused;
  }
  CHECK(refused > 2000);
}

TEST_CASE("field slice: values nested without end are refused instead of exhausting the stack") {
  // Each level: tag of the elements, one element, its length.
  std::string nested(std::string("\x01\x00", 2));
  for (int i = 0; i < 1000; ++i) {
    std::string outer;
    append_tag(outer, TypeTag::Array);
    put_varint(outer, 1);
    put_string(outer, nested);
    nested = std::move(outer);
  }
  const auto value = FieldSlice{TypeTag::Array, nested}.value();
  REQUIRE_FALSE(value);
  CHECK(value.error().code() == StatusCode::Corruption);
}

TEST_CASE("field slice: numbers become other numbers within their range") {
  const auto slice = [](TypeTag tag, const auto& number) {
    return FieldSlice{tag, std::string_view(reinterpret_cast<const char*>(&number), sizeof(number))};
  };
  const double huge = 1e300, minus = -1e300, nan = std::nan("");
  CHECK(slice(TypeTag::Double, huge).as_int64() == std::numeric_limits<std::int64_t>::max());
  CHECK(slice(TypeTag::Double, minus).as_int64() == std::numeric_limits<std::int64_t>::min());
  CHECK(slice(TypeTag::Double, nan).as_int64() == 0);
  const std::int32_t five = 5;
  CHECK(slice(TypeTag::Int, five).as_double() == 5.0);
  CHECK(slice(TypeTag::Int, five).is_integer());
  CHECK(FieldSlice{TypeTag::String, "5"}.as_int64() == 0);
  CHECK(FieldSlice{TypeTag::Long, "5"}.as_int64() == 0);
  CHECK(FieldSlice{TypeTag::Int, "5555"}.as_string_view().empty());
  CHECK_FALSE(FieldSlice{TypeTag::Long, "5"}.value());
}

}  // namespace fjord
