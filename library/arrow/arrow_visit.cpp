#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <utility>

#include "arrow/arrow_stream.h"
#include "arrow/arrow_types.h"
#include "arrow/document_columns.h"
#include "decode_entry.h"
#include "fjord/library/arrow.h"

namespace fjord {

namespace {

constexpr std::size_t kBatchBytesMax = std::size_t{512} << 20;  ///< Offsets of Arrow's texts have 31 bits.

Status check(const VisitOptions& visit, const ArrowVisitOptions& options) {
  if (visit.include_removed) return {StatusCode::InvalidArgument, "include_removed: a removed document is not a row"};
  if (visit.visitor != "dump") return {StatusCode::InvalidArgument, "visitor: only \"dump\" gives whole documents"};
  if (options.batch_rows == 0) return {StatusCode::InvalidArgument, "batch_rows is 0: expected at least 1"};
  return Status::ok();
}

/// Returns the fields that the columns have; empty for all. A field set names none that this can know.
std::vector<std::string> columns_of(const VisitOptions& visit) {
  if (visit.ids_only || visit.fields == std::vector<std::string>{"[id]"}) return {kIdColumn};
  std::vector<std::string> names;
  for (const std::string& field : visit.fields) {
    if (field.find_first_of("[:,") == std::string::npos) names.push_back(field);
  }
  return names.size() == visit.fields.size() ? names : std::vector<std::string>();
}

}  // namespace

class ArrowVisit::Impl {
 public:
  Impl(std::shared_ptr<Client> client, std::shared_ptr<const DocumentTypeRepo> types, VisitOptions visit,
       const ArrowVisitOptions& options)
      : client_(std::move(client)),
        types_(types),
        options_(options),
        columns_(DocumentColumns::make(std::move(types), visit.type, columns_of(visit), options.version)),
        visit_(client_->visit(std::move(visit))) {
    options_.batch_bytes = std::min(options_.batch_bytes, kBatchBytesMax);
  }

  void schema(ArrowSchema* out) const { columns_->schema(out); }

  Result<bool> next(ArrowArray* out) {
    std::size_t bytes = 0;
    while (columns_->rows() < options_.batch_rows && bytes < options_.batch_bytes) {
      const std::optional<EntryView> entry = visit_.next_entry();
      if (!entry) break;
      if (entry->removed || entry->header.empty()) continue;
      if (Status added = add(*entry); !added) {
        visit_.stop();
        note(added);
        return added;
      }
      bytes += entry->header.size() + entry->body.size();
    }
    note(visit_.status());
    if (columns_->rows() == 0) {
      if (!visit_.status()) return visit_.status();
      return false;
    }
    columns_->finish(out);
    return true;
  }

  Status status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  std::string cursor() const {
    const std::lock_guard lock(mutex_);
    return cursor_ ? cursor_() : std::string();
  }
  VisitStatistics statistics() const { return visit_.statistics(); }
  void stop() { visit_.stop(); }
  Status first_status() const { return visit_.status(); }
  bool take_stream() { return !has_stream_.exchange(true); }

 private:
  Status add(const EntryView& entry) {
    FJORD_TRY_ASSIGN(const DocumentView document, know_type(client_->core(), types_, entry));
    return columns_->append(document, entry.timestamp);
  }

  void note(const Status& status) {
    std::function<std::string()> cursor = visit_.cursor_of_now();
    const std::lock_guard lock(mutex_);
    status_ = status;
    cursor_ = std::move(cursor);
  }

  std::shared_ptr<Client> client_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  ArrowVisitOptions options_;
  std::unique_ptr<DocumentColumns> columns_;
  Visit visit_;
  std::atomic<bool> has_stream_ = false;
  mutable std::mutex mutex_;
  Status status_;
  std::function<std::string()> cursor_;
};

ArrowVisit::ArrowVisit(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArrowVisit::~ArrowVisit() = default;

Result<std::shared_ptr<ArrowVisit>> ArrowVisit::open(std::shared_ptr<Client> client, VisitOptions visit,
                                                     const ArrowVisitOptions& options) {
  FJORD_TRY(check(visit, options));
  if (visit.type.empty()) {
    FJORD_TRY(client->core().refresh());
  } else {
    FJORD_TRY(client->core().types_with(visit.type).status());
  }
  auto types = client->core().types();
  auto impl = std::make_unique<Impl>(std::move(client), std::move(types), std::move(visit), options);
  FJORD_TRY(impl->first_status());
  return std::shared_ptr<ArrowVisit>(new ArrowVisit(std::move(impl)));
}

void ArrowVisit::schema(ArrowSchema* out) const { impl_->schema(out); }
Result<bool> ArrowVisit::next(ArrowArray* out) { return impl_->next(out); }
Status ArrowVisit::status() const { return impl_->status(); }
std::string ArrowVisit::cursor() const { return impl_->cursor(); }
VisitStatistics ArrowVisit::statistics() const { return impl_->statistics(); }
void ArrowVisit::stop() { impl_->stop(); }

namespace {

class VisitBatches : public BatchSource {
 public:
  explicit VisitBatches(std::shared_ptr<ArrowVisit> visit) : visit_(std::move(visit)) {}
  ~VisitBatches() override { visit_->stop(); }
  void schema(ArrowSchema* out) override { visit_->schema(out); }
  Result<bool> next(ArrowArray* out) override { return visit_->next(out); }

 private:
  std::shared_ptr<ArrowVisit> visit_;
};

}  // namespace

Status ArrowVisit::export_to(std::shared_ptr<ArrowVisit> visit, ArrowArrayStream* out) {
  if (!visit->impl_->take_stream()) {
    return {StatusCode::InvalidArgument, "the visit is being read already: a visit can be read once"};
  }
  export_stream(std::make_unique<VisitBatches>(std::move(visit)), out);
  return Status::ok();
}

}  // namespace fjord
