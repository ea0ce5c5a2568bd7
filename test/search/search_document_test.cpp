#include "fjord/search/search_document.h"

#include <catch2/catch.hpp>

namespace fjord::search {
namespace {

constexpr const char* kSchema = R"(schema ads {
  document ad_group {
    field name type string { header index: group }
    field advertiser type int { header }
    field trust type double { header }
    field language type string { header }
    field hours type int { header }
  }
  document keyword {
    field text type string {
      header
      index: keyword
    }
    field match type string { header }
    field bid_micros type long { header }
    field ctr type double { header }
  }
  document ad {
    field title type string { header index: ad }
    field phone type double { body }
  }
  document click { field at type long { header } }
})";

class Documents {
 public:
  Documents() {
    const std::vector<std::string> schemas = {kSchema};
    types_ = DocumentTypeRepo::build(schemas).value();
  }

  std::optional<SearchDocument> of(const std::string& id, const std::map<std::string, FieldValue>& fields) const {
    Document document(*types_->find(DocumentId::parse(id)->type()), *DocumentId::parse(id));
    for (const auto& [name, value] : fields) REQUIRE(document.set(name, value));
    const EncodedDocument encoded = encode(document);
    return search_document_of(*DocumentView::open(*types_, encoded.header, encoded.body));
  }

 private:
  std::shared_ptr<const DocumentTypeRepo> types_;
};

TEST_CASE("a schema declares the part of a type in searches at one field of type string") {
  const auto build = [](const std::string& field) {
    const std::vector<std::string> schemas = {"document d { " + field + " }"};
    return DocumentTypeRepo::build(schemas);
  };
  CHECK((*build("field a type string { index: keyword }"))->find("d")->indexed_field()->index == IndexRole::Keyword);
  CHECK((*build("field a type string { index: group header }"))->find("d")->indexed_field()->name == "a");
  CHECK((*build("field a type string { index { stemming: none } }"))->find("d")->indexed_field() == nullptr);
  CHECK_FALSE(build("field a type int { index: keyword }"));
  CHECK_FALSE(build("field a type string { index: keyword } field b type string { index: ad }"));
  CHECK_FALSE(build("field a type string { index: keyword index: ad }"));
}

TEST_CASE("a keyword has its folded words, its kind and its bid") {
  const Documents documents;
  const auto found = documents.of("id:ads:keyword:n=7:1", {{"text", FieldValue(std::string("Home-made MASK"))},
                                                           {"match", FieldValue(std::string("phrase"))},
                                                           {"bid_micros", FieldValue(std::int64_t{250'000})},
                                                           {"ctr", FieldValue(0.25)}});
  REQUIRE(found);
  CHECK(found->role == IndexRole::Keyword);
  CHECK(found->group == 7);
  CHECK(found->kind == MatchKind::Phrase);
  CHECK(found->words == "home made mask");
  const auto data = KeywordData::decode(found->payload);
  REQUIRE(data);
  CHECK(data->id == "id:ads:keyword:n=7:1");
  CHECK(data->bid_micros == 250'000);
  CHECK(data->ctr == 0.25);
  CHECK(data->relevance == 0.5);
}

TEST_CASE("groups and ads have their numbers, and impossible ones are passed over") {
  const Documents documents;
  const auto group = documents.of("id:ads:ad_group:n=7:7", {{"advertiser", FieldValue(std::int32_t{3})},
                                                            {"trust", FieldValue(7.5)},
                                                            {"language", FieldValue(std::string("CS"))},
                                                            {"hours", FieldValue(std::int32_t{0x300})}});
  REQUIRE(group);
  const auto data = GroupData::decode(group->payload);
  REQUIRE(data);
  CHECK(data->advertiser == 3);
  CHECK(data->trust == 0.5);
  CHECK(data->language == "cs");
  CHECK(data->hours == 0x300);
  const auto ad =
      documents.of("id:ads:ad:n=7:1", {{"title", FieldValue(std::string("Masks"))}, {"phone", FieldValue(1.5)}});
  REQUIRE(ad);
  CHECK(AdData::decode(ad->payload)->title == "Masks");
  CHECK(AdData::decode(ad->payload)->phone == 1.5);
}

TEST_CASE("what takes no part in searches has no search document") {
  const Documents documents;
  CHECK_FALSE(documents.of("id:ads:click:n=7:1", {{"at", FieldValue(std::int64_t{1})}}));
  CHECK_FALSE(documents.of("id:ads:keyword:n=7:1", {{"text", FieldValue(std::string("--"))}}));
  CHECK_FALSE(documents.of("id:ads:keyword::1", {{"text", FieldValue(std::string("mask"))}}));
}

TEST_CASE("damaged payloads are recognised") {
  const std::string whole = KeywordData{.id = "id:a:b::c", .bid_micros = 5}.encode();
  REQUIRE(KeywordData::decode(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK_FALSE(KeywordData::decode(whole.substr(0, size)));
  CHECK_FALSE(KeywordData::decode(whole + "x"));
  CHECK_FALSE(GroupData::decode(whole));
  CHECK_FALSE(AdData::decode(whole));
}

}  // namespace
}  // namespace fjord::search
