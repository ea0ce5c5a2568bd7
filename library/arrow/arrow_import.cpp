#include <algorithm>
#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "arrow/arrow_types.h"
#include "arrow/row_encoder.h"
#include "fjord/client/feeder.h"
#include "fjord/client/operations.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/document/validate_fields.h"
#include "fjord/library/arrow.h"
#include "fjord/library/detail/client_core.h"

namespace fjord {
namespace {

/// Releases what a stream has given.
template <typename T>
class Released {
 public:
  Released() = default;
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released() {
    if (value_.release != nullptr) value_.release(&value_);
  }
  T& operator*() { return value_; }
  T* get() { return &value_; }

 private:
  T value_{};
};

Status stream_error(ArrowArrayStream* stream, int code) {
  const char* text = stream->get_last_error(stream);
  return {StatusCode::IoError,
          fmt::format("the stream of rows failed: {}", text != nullptr ? text : fmt::format("error {}", code).c_str())};
}

/// The id of a row, and the document type that it names; empty: none.
struct RowId {
  std::string text;
  std::string type;
};

/// Makes ids from the cells of one column.
class RowIds {
 public:
  /// Errors: InvalidArgument if there is no such column or no id can have the type and the namespace; InvalidField if
  /// the column has no texts.
  static Result<RowIds> make(const ArrowSchema& table, const ArrowImportOptions& options) {
    const std::string column = options.id_column.empty() ? kIdColumn : options.id_column;
    for (std::int64_t i = 0; i < table.n_children; ++i) {
      if (table.children[i]->name != column) continue;
      auto reader = TextReader::make(*table.children[i]);
      if (!reader) return reader.error().with_context("column " + column);
      RowIds ids(std::move(*reader), i);
      ids.has_whole_ids_ = column == kIdColumn;
      if (!options.type.empty()) {
        ids.type_ = options.type;
        ids.prefix_ =
            fmt::format("id:{}:{}::", options.id_namespace.empty() ? options.type : options.id_namespace, options.type);
        const auto probe = DocumentId::parse(ids.prefix_ + "1");
        if (!probe || probe->type() != options.type || probe->user_part() != "1") {
          return Status(StatusCode::InvalidArgument,
                        fmt::format("no id begins with \"{}\": the namespace or the type is wrong", ids.prefix_));
        }
      }
      return ids;
    }
    return Status(StatusCode::InvalidArgument,
                  fmt::format("the table has no column \"{}\" for the ids: id_column names another one", column));
  }

  /// Returns the position of the column.
  std::int64_t column() const { return child_; }
  Status set(const ArrowArray& batch) {
    offset_ = batch.offset;
    if (child_ >= batch.n_children) return {StatusCode::InvalidArgument, "a batch lacks the column of the ids"};
    return reader_.set(*batch.children[child_]);
  }
  /// Returns the id. One that is made of type and namespace is not checked here, as the client parses each id anyway,
  /// which computes hashes. Errors: InvalidId.
  Result<RowId> id(std::int64_t row) const {
    const std::optional<std::string> text = reader_.text(offset_ + row);
    if (!text) return Status(StatusCode::InvalidId, "the row has no id");
    constexpr std::string_view kSchemes[] = {"id:", "doc:", "userdoc:", "groupdoc:"};
    const auto begins = [&](std::string_view scheme) { return text->starts_with(scheme); };
    if (has_whole_ids_ && std::any_of(std::begin(kSchemes), std::end(kSchemes), begins)) {
      FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(*text));
      return RowId{id.str(), std::string(id.type().empty() ? std::string_view(type_) : id.type())};
    }
    if (prefix_.empty())
      return Status(StatusCode::InvalidId, fmt::format("not a whole id: \"{}\"; give the type", *text));
    return RowId{prefix_ + *text, type_};
  }

 private:
  RowIds(TextReader reader, std::int64_t child) : reader_(std::move(reader)), child_(child) {}
  TextReader reader_;
  std::int64_t child_;
  std::int64_t offset_ = 0;
  bool has_whole_ids_ = false;
  std::string type_;    ///< Empty if no type is given.
  std::string prefix_;  ///< Empty if no type is given.
};

class ArrowImport {
 public:
  ArrowImport(ClientCore& core, const ArrowImportOptions& options)
      : core_(core), options_(options), start_(core.clock().now()), feeder_(core.client(), feeder_options()) {}

  Status run(ArrowArrayStream* stream) {
    FJORD_TRY(open(stream));
    while (!options_.stop.stop_requested()) {
      Released<ArrowArray> batch;
      if (const int code = stream->get_next(stream, batch.get()); code != 0) return stream_error(stream, code);
      if ((*batch).release == nullptr) return Status::ok();
      FJORD_TRY(feed(*batch));
    }
    return {StatusCode::Cancelled, "the import was stopped"};
  }

  ImportSummary finish(Status status) {
    feeder_.flush();
    const FeedStats stats = feeder_.stats();
    ImportSummary summary;
    summary.status = std::move(status);
    summary.stored = stats.ok;
    summary.failed = stats.failed;
    for (const auto& [code, count] : unfit_) summary.failed[code] += count;
    summary.replaced = replaced_;
    summary.existing = existing_;
    if (existing_ > 0) summary.failed.erase(StatusCode::TestAndSetFailed);  // Nothing else fails so.
    summary.in_doubt = stats.in_doubt;
    summary.retried = stats.retried;
    summary.bytes = stats.bytes;
    summary.latency_p50_seconds = stats.latency_p50_seconds;
    summary.latency_p99_seconds = stats.latency_p99_seconds;
    summary.latency_max_seconds = stats.latency_max_seconds;
    summary.seconds = std::chrono::duration<double>(core_.clock().now() - start_).count();
    return summary;
  }

 private:
  Feeder::Options feeder_options() {
    Feeder::Options feeder;
    feeder.timeout = options_.timeout;
    feeder.priority = static_cast<rpc::Priority>(options_.priority);
    if (options_.in_flight != 0) feeder.window_operations = options_.in_flight;
    feeder.on_result = [this](std::uint64_t row, const OperationOutcome& outcome) { on_result(row, outcome); };
    return feeder;
  }

  Status open(ArrowArrayStream* stream) {
    FJORD_TRY(core_.refresh());
    types_ = core_.types();
    if (const int code = stream->get_schema(stream, table_.get()); code != 0) return stream_error(stream, code);
    if (std::string_view((*table_).format) != "+s") {
      return {StatusCode::InvalidArgument, "the stream holds no table: expected a struct of columns"};
    }
    FJORD_TRY_ASSIGN(RowIds ids, RowIds::make(*table_, options_));
    ids_.emplace(std::move(ids));
    return options_.type.empty() ? Status::ok() : encoder_of(options_.type).status();
  }

  /// Returns the encoder of a type. Errors: UnknownType; those of RowEncoder::make() and set().
  Result<RowEncoder*> encoder_of(const std::string& name) {
    const auto known = encoders_.find(name);
    if (known != encoders_.end()) return known->second.get();
    const DocumentType* type = types_->find(name);
    if (type == nullptr) return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", name));
    std::vector<std::string> warnings;
    FJORD_TRY_ASSIGN(auto encoder, RowEncoder::make(*table_, *types_, *type, ids_->column(), warnings));
    for (const std::string& warning : warnings) {
      if (options_.on_warning) options_.on_warning(warning);
    }
    if (batch_ != nullptr) FJORD_TRY(encoder->set(*batch_));
    return encoders_.emplace(name, std::move(encoder)).first->second.get();
  }

  Status feed(const ArrowArray& batch) {
    batch_ = &batch;
    FJORD_TRY(ids_->set(batch));
    for (const auto& [name, encoder] : encoders_) FJORD_TRY(encoder->set(batch));
    for (std::int64_t i = 0; i < batch.length && !options_.stop.stop_requested(); ++i, ++row_) {
      if (Status fed = feed_row(i); !fed) {
        ++unfit_[fed.code()];
        report({row_, std::move(fed), false});
      }
    }
    batch_ = nullptr;
    return Status::ok();
  }

  Status feed_row(std::int64_t i) {
    FJORD_TRY_ASSIGN(RowId id, ids_->id(i));
    if (!options_.type.empty() && id.type != options_.type) {
      return {StatusCode::InvalidId, fmt::format("{} is of another type than {}", id.text, options_.type)};
    }
    FJORD_TRY_ASSIGN(const RowEncoder* encoder, encoder_of(id.type));
    FJORD_TRY_ASSIGN(EncodedDocument document, encoder->encode(i, id.text));
    // What Arrow permits and documents do not: texts that are not UTF-8, keys that are there twice.
    FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types_, document.header, document.body));
    if (const Status valid = validate_fields(*view.type(), view.header_fields(), view.body_fields()); !valid) {
      return {StatusCode::InvalidField, fmt::format("document {}: {}", id.text, valid.message())};
    }
    rpc::Operation put = put_operation(std::move(id.text), std::move(document));
    if (options_.create_only) put.required_version = 0;
    feeder_.submit(std::move(put), row_);
    return Status::ok();
  }

  void on_result(std::uint64_t row, const OperationOutcome& outcome) {
    if (outcome.is_ok()) {
      if (outcome.existed) ++replaced_;
    } else if (options_.create_only && outcome.status.code() == StatusCode::TestAndSetFailed) {
      ++existing_;
    } else {
      report({row, outcome.status, outcome.outcome == Outcome::InDoubt});
    }
  }

  void report(const ArrowRowFailure& failure) {
    const std::lock_guard lock(report_mutex_);
    if (options_.on_failure) options_.on_failure(failure);
  }

  ClientCore& core_;
  const ArrowImportOptions& options_;
  const MonotonicTime start_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  Released<ArrowSchema> table_;
  std::optional<RowIds> ids_;
  std::map<std::string, std::unique_ptr<RowEncoder>> encoders_;  ///< By type.
  const ArrowArray* batch_ = nullptr;
  std::uint64_t row_ = 0;
  std::map<StatusCode, std::uint64_t> unfit_;  ///< Rows that were not submitted.
  std::atomic<std::uint64_t> replaced_ = 0;    ///< Counted on the client's executor, as existing_ is.
  std::atomic<std::uint64_t> existing_ = 0;
  std::mutex report_mutex_;  ///< Held while on_failure runs.
  Feeder feeder_;            ///< Last member: it calls report() until it is destroyed.
};

}  // namespace

ImportSummary import_arrow(Client& client, ArrowArrayStream* stream, const ArrowImportOptions& options) {
  ImportSummary summary;
  if (Status status = client.ping(); status) {
    ArrowImport import(client.core(), options);
    summary = import.finish(import.run(stream));
  } else {
    summary.status = std::move(status);
  }
  stream->release(stream);
  return summary;
}

}  // namespace fjord
