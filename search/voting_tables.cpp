#include "fjord/search/voting_tables.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "fjord/client/client.h"
#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::search {
namespace {

constexpr const char* kTableType = "fjord_affinity";
/// All parts of a table lie in one bucket.
constexpr std::uint64_t kTableLocation = 0x766f7465;
constexpr Duration kTimeout = seconds(5);
constexpr std::int32_t kPartsMax = 4096;

/// Returns the types that every process knows.
const DocumentTypeRepo& builtin_types() {
  static const std::shared_ptr<const DocumentTypeRepo> types = DocumentTypeRepo::build(rpc::builtin_schemas()).value();
  return *types;
}

Result<TablePart> part_of(const OperationOutcome& outcome) {
  if (!outcome.is_ok()) return outcome.status;
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(builtin_types(), outcome.header, outcome.body));
  const auto parts = view.field("parts");
  const auto content = view.field("content");
  if (!parts || !content || parts->as_int64() < 1 || parts->as_int64() > kPartsMax) {
    return Status(StatusCode::Corruption, "a document of a voting table lacks a field");
  }
  return TablePart{static_cast<std::uint32_t>(parts->as_int64()), std::string(content->as_string_view())};
}

class StoredVotingTables final : public VotingTableSource {
 public:
  StoredVotingTables(ClientOptions options, Runtime& runtime, rpc::Transport& transport)
      : executor_(runtime.scheduler.make_executor("search-tables")),
        client_(std::move(options), runtime, transport, *executor_) {}

  void read_part(std::uint64_t number, std::uint32_t part, Done done) override {
    client_.get(table_part_id(number, part), kTimeout,
                [done = std::move(done)](const OperationOutcome& outcome) mutable { done(part_of(outcome)); });
  }

 private:
  std::unique_ptr<Executor> executor_;
  AsyncClient client_;
};

}  // namespace

std::string table_part_id(std::uint64_t number, std::uint32_t part) {
  return fmt::format("id:fjord:{}:n={}:{}/{}", kTableType, kTableLocation, number, part);
}

std::uint32_t table_parts(std::size_t bytes) {
  return static_cast<std::uint32_t>(std::max<std::size_t>(1, (bytes + kTablePartBytes - 1) / kTablePartBytes));
}

Result<Document> table_part(const DocumentTypeRepo& types, std::uint64_t number, std::string_view bytes,
                            std::uint32_t part) {
  const DocumentType* type = types.find(kTableType);
  if (type == nullptr) return Status(StatusCode::NotReady, "there is no document type fjord_affinity yet");
  FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(table_part_id(number, part)));
  Document document(*type, id);
  FJORD_TRY(document.set("number", static_cast<std::int64_t>(number)));
  FJORD_TRY(document.set("part", static_cast<std::int32_t>(part)));
  FJORD_TRY(document.set("parts", static_cast<std::int32_t>(table_parts(bytes.size()))));
  const std::size_t begin = std::min(bytes.size(), part * kTablePartBytes);
  FJORD_TRY(document.set("content", RawValue{std::string(bytes.substr(begin, kTablePartBytes))}));
  return document;
}

std::string corpus_of(const DocumentTypeRepo& types) {
  std::vector<std::string> fields;
  for (const auto& type : types.types()) {
    if (const Field* field = type->indexed_field()) fields.push_back(type->name() + "." + field->name);
  }
  std::sort(fields.begin(), fields.end());
  std::string corpus;
  for (const std::string& field : fields) corpus += (corpus.empty() ? "" : ", ") + field;
  return corpus;
}

std::unique_ptr<VotingTableSource> stored_voting_tables(ClientOptions options, Runtime& runtime,
                                                        rpc::Transport& transport) {
  return std::make_unique<StoredVotingTables>(std::move(options), runtime, transport);
}

}  // namespace fjord::search
