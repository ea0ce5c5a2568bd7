#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/library/aggregate.h"
#include "fjord/library/arrow_abi.h"
#include "fjord/library/client.h"
#include "fjord/library/files.h"
#include "fjord/library/visit.h"

/// Documents as columns: the Arrow C stream interface, which pyarrow, pandas, Polars and DuckDB read without copies.
///
/// A table has the column "_id" and one for each field. Its types:
///
///     string utf8, raw binary, byte int8, int int32, long int64, float, double, bool
///     array<T> list<T>, map<K, V> map<K, V>, weightedset<T> map<T, int32>, struct struct
///
/// A field that is not set is null.
namespace fjord {

// --- Visits

struct ArrowVisitOptions {
  std::size_t batch_rows = 65536;                  ///< Largest number of documents in a batch.
  std::size_t batch_bytes = std::size_t{8} << 20;  ///< A batch ends when its documents have this many bytes.
  bool version = false;                            ///< Add the column "_version": when the document was written.
};

/// A visit whose documents become batches of columns. Without VisitOptions::type it has the fields of all types; a
/// field that types declare differently is JSON text.
///
/// Threading: schema() and next() on one thread at a time; the other members on any thread.
/// Lifetime: it keeps the client alive.
class ArrowVisit {
 public:
  /// Errors: UnknownType, InvalidField, InvalidSelection, InvalidArgument; those of Client::ping().
  static Result<std::shared_ptr<ArrowVisit>> open(std::shared_ptr<Client> client, VisitOptions visit,
                                                  const ArrowVisitOptions& options);
  /// Makes `out` a stream of the visit's batches. The visit ends when the stream is released. Only one stream can be
  /// made of a visit. Errors: InvalidArgument for a second one.
  static Status export_to(std::shared_ptr<ArrowVisit> visit, ArrowArrayStream* out);
  ~ArrowVisit();

  /// The caller releases `out`.
  void schema(ArrowSchema* out) const;
  /// Waits for the next batch, which the caller releases. Returns false at the end.
  Result<bool> next(ArrowArray* out);

  /// Returns as Visit::status().
  Status status() const;
  /// Returns as Visit::cursor(): what the batches given so far hold.
  std::string cursor() const;
  VisitStatistics statistics() const;
  /// Ends the visit and the work of the storage nodes for it. A next() that waits returns Cancelled.
  void stop();

 private:
  class Impl;
  explicit ArrowVisit(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// --- Import

/// A row that was not stored.
struct ArrowRowFailure {
  std::uint64_t row = 0;  ///< From 0.
  Status status;
  bool in_doubt = false;  ///< The write was sent, and may have been applied.
};

struct ArrowImportOptions {
  std::string type = {};  ///< Type of the documents. Empty: the ids name it.
  /// Column with the last part of each id, or with whole ids if it is the column "_id". Empty: "_id".
  std::string id_column = {};
  std::string id_namespace = {};  ///< Namespace of the ids; empty: the name of the type.
  bool create_only = false;   ///< Documents that exist stay as they are, and are counted in ImportSummary::existing.
  std::size_t in_flight = 0;  ///< Writes in flight at once; 0: the library adapts it.
  ClientPriority priority = ClientPriority::Default;
  Duration timeout{0};  ///< Timeout of one write; 0: the client's timeout.
  /// Called for each row that was not stored, on any thread of the import or the client, one call at a time.
  std::function<void(const ArrowRowFailure&)> on_failure = {};
  /// Called for each column that is no field of the type, on the calling thread.
  std::function<void(const std::string& warning)> on_warning = {};
  std::stop_token stop = {};  ///< A stop request ends the import as Cancelled after the writes in flight.
};

/// Stores the rows of `stream` as documents, and releases it. A row that does not fit its type is reported, and the
/// import continues. Memory is bounded by one batch of the stream and the writes in flight. Numbers may have any Arrow
/// type that holds their value; texts may be dictionary-encoded. Errors in ImportSummary::status: InvalidArgument for a
/// stream that is no table or has no column for the ids; InvalidField for a column whose type does not fit its field;
/// IoError if the stream fails.
ImportSummary import_arrow(Client& client, ArrowArrayStream* stream, const ArrowImportOptions& options);

// --- Schemas

/// Makes `out` the schema of a visit of this type.
void arrow_schema_of(const DocumentType& type, ArrowSchema* out);

/// A document type for a table.
struct ArrowSchemaFit {
  std::string sd;                     ///< Text for Admin::deploy_schemas().
  std::vector<std::string> problems;  ///< Columns that were left out or lose something, one line for each.
};
/// Returns the schema of a document type `type` with the columns of a table. Errors: InvalidArgument if `schema` is no
/// table, no column fits or the name is not one of a type.
Result<ArrowSchemaFit> sd_of_arrow_schema(const ArrowSchema& schema, const std::string& type);

// --- Aggregations

/// Makes `out` a stream of one batch with the rows of an aggregation.
void aggregate_to_arrow(const AggregateResult& result, ArrowArrayStream* out);

}  // namespace fjord
