#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "fjord/client/client_options.h"
#include "fjord/common/result.h"
#include "fjord/common/runtime.h"
#include "fjord/common/unique_function.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"
#include "fjord/rpc/transport.h"
#include "fjord/search/voting_tables.h"

/// What brokers keep as documents of the cluster: voting tables (voting_tables.h), lists of synonyms, which have a
/// number as tables do, and the log of queries from which tables are trained.
namespace fjord::search {

/// All documents of a log of queries lie in one bucket, that of this location.
inline constexpr std::uint64_t kQueryLogLocation = 0x71756572;
inline constexpr const char* kQueryLogType = "fjord_queries";

/// Returns the id of the list of synonyms that search.synonyms names by `number`.
std::string synonyms_id(std::uint64_t number);
/// Returns a list of synonyms as a document. Errors: NotReady if the types lack fjord_synonyms.
Result<Document> synonyms_document(const DocumentTypeRepo& types, std::uint64_t number, std::string text);

/// The source from which a broker reads lists of synonyms.
///
/// Threading: read() on the broker's executor.
class SynonymSource {
 public:
  using Done = UniqueFunction<void(Result<std::string>)>;

  virtual ~SynonymSource() = default;
  /// Calls `done` with the text of the list on any thread, unless the source ends before. Errors: NotFound if there is
  /// no such list; those of a get.
  virtual void read(std::uint64_t number, Done done) = 0;
};

/// Where a broker writes the queries that it has recorded.
///
/// Threading: write() on the broker's executor.
class QueryLogSink {
 public:
  using Done = UniqueFunction<void(Status)>;

  virtual ~QueryLogSink() = default;
  /// Replaces what is in that place of the log; `queries` has a line for each query. Calls `done` on any thread, unless
  /// the sink ends before.
  virtual void write(std::uint64_t place, std::string queries, Done done) = 0;
};

/// Any of them may be null: then there are no such documents.
struct BrokerDocuments {
  std::unique_ptr<VotingTableSource> tables = nullptr;
  std::unique_ptr<SynonymSource> synonyms = nullptr;
  std::unique_ptr<QueryLogSink> queries = nullptr;
};

/// Returns sources and a sink that read and write documents of the cluster through one client. `broker`: name of the
/// process; each broker writes to other places in the log of queries. Lifetime: `runtime` and `transport` outlive them.
BrokerDocuments stored_broker_documents(ClientOptions options, std::string broker, Runtime& runtime,
                                        rpc::Transport& transport);

}  // namespace fjord::search
