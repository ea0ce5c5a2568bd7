#include "engine_under_test.h"

#include <iterator>

#include "fjord/common/coding.h"
#include "fjord/document/document.h"

namespace fjord::bench {

std::string_view to_string(EngineDurability durability) {
  return durability == EngineDurability::Process ? "process" : "sync";
}

std::string_view to_string(DocumentSize size) { return size == DocumentSize::Small ? "small" : "large"; }

void StoredForm::append(std::string& to, Timestamp timestamp, std::string_view header, std::string_view body) {
  put_fixed<std::uint64_t>(to, timestamp.us);
  put_fixed<std::uint32_t>(to, static_cast<std::uint32_t>(header.size()));
  to.append(header).append(body);
}

Result<EngineDocument> StoredForm::read(std::string_view key, std::string_view value) {
  std::uint64_t timestamp_us = 0;
  std::uint32_t header_length = 0;
  if (key.size() != sizeof(GlobalId) || value.size() < kPrefixBytes) {
    return Status(StatusCode::Corruption, "a key or value is too short");
  }
  std::memcpy(&timestamp_us, value.data(), sizeof(timestamp_us));
  std::memcpy(&header_length, value.data() + sizeof(timestamp_us), sizeof(header_length));
  if (header_length > value.size() - kPrefixBytes) return Status(StatusCode::Corruption, "a header is too long");
  return EngineDocument{.gid = GlobalId::from_bytes(key),
                        .timestamp = Timestamp{timestamp_us},
                        .header = value.substr(kPrefixBytes, header_length),
                        .body = value.substr(kPrefixBytes + header_length)};
}

Status EngineUnderTest::iterate(const EngineSelection& selection, const DocumentSink& sink) {
  Status failure;
  FJORD_TRY(iterate([&](const EngineDocument& document) {
    const Result<DocumentView> view = DocumentView::open(*selection.types, document.header, document.body);
    if (!view) {
      failure = view.error();
    } else if (selection.selection->matches(*view)) {
      sink(document);
    }
  }));
  return failure;
}

std::vector<EngineConfiguration> engine_configurations() {
  std::vector<EngineConfiguration> all;
  for (const auto make :
       {provider_configurations, leveldb_configurations, rocksdb_configurations, wiredtiger_configurations}) {
    std::vector<EngineConfiguration> some = make();
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace fjord::bench
