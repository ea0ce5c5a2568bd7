#include "stored_files.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <unistd.h>

#include "support/project_files.h"

namespace fjord::testing {

namespace fs = std::filesystem;

fs::path StoredFiles::source(const std::string& relative) { return test::data_file(relative); }

StoredFiles::StoredFiles(const std::string& relative) {
  std::string name = (fs::temp_directory_path() / "fjord-format-XXXXXX").string();
  FJORD_CHECK(::mkdtemp(name.data()) != nullptr);
  path_ = name;
  fs::copy(source(relative), path_, fs::copy_options::recursive);
  fs::remove(path_ / "README.md");
}

StoredFiles::~StoredFiles() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

DocumentId located_id(int location, int number) {
  auto id = DocumentId::parse("id:test:item:n=" + std::to_string(location) + ":" + std::to_string(number));
  FJORD_CHECK(id.has_value());
  return *id;
}

Document located_document(int location, int number, const std::string& text) {
  Document document(*test_types()->find("item"), located_id(location, number));
  FJORD_CHECK(document.set("title", "item " + std::to_string(number)).is_ok());
  FJORD_CHECK(document.set("size", std::int32_t{number}).is_ok());
  if (!text.empty()) FJORD_CHECK(document.set("text", text).is_ok());
  return document;
}

OwnedWrite located_put(int location, int number, std::uint64_t timestamp_us, const std::string& text) {
  const Document document = located_document(location, number, text);
  EncodedDocument encoded = encode(document);
  return {.gid = document.id().gid(),
          .timestamp = Timestamp{timestamp_us},
          .remove = false,
          .id = document.id().str(),
          .header = std::move(encoded.header),
          .body = std::move(encoded.body)};
}

OwnedWrite located_remove(int location, int number, std::uint64_t timestamp_us) {
  const DocumentId id = located_id(location, number);
  return {
      .gid = id.gid(), .timestamp = Timestamp{timestamp_us}, .remove = true, .id = id.str(), .header = {}, .body = {}};
}

Document stored_document(spi::PersistenceProvider& provider, BucketId bucket, const DocumentId& id) {
  const auto stored = provider.get(bucket, id.gid());
  INFO(id.str());
  REQUIRE(stored.status().is_ok());
  REQUIRE_FALSE(stored->removed);
  const auto view = DocumentView::open(*test_types(), stored->header, stored->body);
  REQUIRE(view.status().is_ok());
  const auto document = view->document();
  REQUIRE(document.status().is_ok());
  return *document;
}

}  // namespace fjord::testing
