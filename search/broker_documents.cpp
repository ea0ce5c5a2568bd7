#include "fjord/search/broker_documents.h"

#include <fmt/format.h>
#include <utility>

#include "fjord/client/client.h"
#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::search {
namespace {

constexpr const char* kSynonymsType = "fjord_synonyms";
/// All lists of synonyms lie in one bucket.
constexpr std::uint64_t kSynonymsLocation = 0x73796e6f;
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

Result<std::string> terms_of(const OperationOutcome& outcome) {
  if (!outcome.is_ok()) return outcome.status;
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(builtin_types(), outcome.header, outcome.body));
  const auto terms = view.field("terms");
  if (!terms) return Status(StatusCode::Corruption, "a list of synonyms lacks its terms");
  return std::string(terms->as_string_view());
}

Result<EncodedDocument> queries_document(const std::string& id, const std::string& broker, std::string queries) {
  FJORD_TRY_ASSIGN(const DocumentId parsed, DocumentId::parse(id));
  Document document(*builtin_types().find(kQueryLogType), parsed);
  FJORD_TRY(document.set("broker", broker));
  FJORD_TRY(document.set("queries", std::move(queries)));
  return encode(document);
}

struct BrokerClient {
  BrokerClient(ClientOptions options, Runtime& runtime, rpc::Transport& transport)
      : executor(runtime.scheduler.make_executor("search-documents")),
        client(std::move(options), runtime, transport, *executor) {}

  std::unique_ptr<Executor> executor;
  AsyncClient client;
};

class StoredVotingTables final : public VotingTableSource {
 public:
  explicit StoredVotingTables(std::shared_ptr<BrokerClient> client) : client_(std::move(client)) {}

  void read_part(std::uint64_t number, std::uint32_t part, Done done) override {
    client_->client.get(table_part_id(number, part), kTimeout,
                        [done = std::move(done)](const OperationOutcome& outcome) mutable { done(part_of(outcome)); });
  }

 private:
  std::shared_ptr<BrokerClient> client_;
};

class StoredSynonyms final : public SynonymSource {
 public:
  explicit StoredSynonyms(std::shared_ptr<BrokerClient> client) : client_(std::move(client)) {}

  void read(std::uint64_t number, Done done) override {
    client_->client.get(synonyms_id(number), kTimeout,
                        [done = std::move(done)](const OperationOutcome& outcome) mutable { done(terms_of(outcome)); });
  }

 private:
  std::shared_ptr<BrokerClient> client_;
};

class StoredQueryLog final : public QueryLogSink {
 public:
  StoredQueryLog(std::shared_ptr<BrokerClient> client, std::string broker)
      : client_(std::move(client)), broker_(std::move(broker)) {}

  void write(std::uint64_t place, std::string queries, Done done) override {
    const std::string id = fmt::format("id:fjord:{}:n={}:{}/{}", kQueryLogType, kQueryLogLocation, broker_, place);
    auto document = queries_document(id, broker_, std::move(queries));
    if (!document) return done(document.error());
    client_->client.put(id, std::move(*document), kTimeout,
                        [done = std::move(done)](const OperationOutcome& outcome) mutable { done(outcome.status); });
  }

 private:
  std::shared_ptr<BrokerClient> client_;
  std::string broker_;
};

}  // namespace

std::string synonyms_id(std::uint64_t number) {
  return fmt::format("id:fjord:{}:n={}:{}", kSynonymsType, kSynonymsLocation, number);
}

Result<Document> synonyms_document(const DocumentTypeRepo& types, std::uint64_t number, std::string text) {
  const DocumentType* type = types.find(kSynonymsType);
  if (type == nullptr) return Status(StatusCode::NotReady, "there is no document type fjord_synonyms yet");
  FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(synonyms_id(number)));
  Document document(*type, id);
  FJORD_TRY(document.set("number", static_cast<std::int64_t>(number)));
  FJORD_TRY(document.set("terms", std::move(text)));
  return document;
}

BrokerDocuments stored_broker_documents(ClientOptions options, std::string broker, Runtime& runtime,
                                        rpc::Transport& transport) {
  auto client = std::make_shared<BrokerClient>(std::move(options), runtime, transport);
  return {.tables = std::make_unique<StoredVotingTables>(client),
          .synonyms = std::make_unique<StoredSynonyms>(client),
          .queries = std::make_unique<StoredQueryLog>(client, std::move(broker))};
}

}  // namespace fjord::search
