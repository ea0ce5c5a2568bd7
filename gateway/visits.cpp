#include "visits.h"

#include <algorithm>
#include <utility>

namespace fjord::gateway {
namespace {

/// Errors: InvalidArgument.
Result<VisitOptions> options_of(const api::OpenVisit& request, std::size_t buffer_bytes) {
  if (request.from_us < 0 || request.to_us < 0) {
    return Status(StatusCode::InvalidArgument, "from_us and to_us are microseconds since 1970, 0 or more");
  }
  if (request.slices < 0 || request.slice_index < 0 || request.slice_count < 0) {
    return Status(StatusCode::InvalidArgument, "slices, slice_index and slice_count are 0 or more");
  }
  VisitOptions options;
  options.selection = request.selection;
  options.type = request.type;
  options.fields = request.fields;
  options.ids_only = request.ids_only;
  options.include_removed = request.include_removed;
  options.from = Timestamp{static_cast<std::uint64_t>(request.from_us)};
  options.to = Timestamp{static_cast<std::uint64_t>(request.to_us)};
  options.snapshot = request.snapshot;
  options.slices = static_cast<std::uint64_t>(std::max(request.slices, 1));
  if (request.slice_count > 0) {
    options.slice =
        VisitSlice{static_cast<std::uint64_t>(request.slice_index), static_cast<std::uint64_t>(request.slice_count)};
  }
  options.resume = request.resume;
  options.priority = static_cast<ClientPriority>(request.priority);
  options.buffer_bytes = buffer_bytes;
  return options;
}

}  // namespace

Result<std::unique_ptr<VisitSource>> VisitSource::open(Client& client, const api::OpenVisit& request,
                                                       std::size_t buffer_bytes) {
  FJORD_TRY_ASSIGN(VisitOptions options, options_of(request, buffer_bytes));
  Visit visit = client.visit(std::move(options));
  FJORD_TRY(visit.status());
  return std::unique_ptr<VisitSource>(new VisitSource(client, std::move(visit), request.fields));
}

Status VisitSource::take_entries(const ChunkLimits& limits, Reply& reply) {
  std::size_t bytes = 0;
  while (reply.documents.size() < limits.entries && bytes < limits.bytes) {
    const auto entry = visit_.try_next_entry();
    if (!entry) break;
    api::VisitedDocument document;
    FJORD_TRY(writer_.write(*entry, document.id, document.json));
    document.timestamp_us = static_cast<std::int64_t>(entry->timestamp.us);
    document.removed = entry->removed;
    bytes += document.id.size() + document.json.size();
    reply.documents.push_back(std::move(document));
  }
  return Status::ok();
}

void VisitSource::take(const ChunkLimits& limits, Reply& reply) {
  if (failure_) failure_ = take_entries(limits, reply);
  // The visit counts the document that failed as given. So the cursor stays as it was before this chunk.
  if (failure_) {
    cursor_ = visit_.cursor();
  } else {
    reply.documents.clear();
  }
  // The error is sent after the documents before it.
  const Status& status = failure_ ? visit_.status() : failure_;
  if (!status && reply.documents.empty()) {
    reply.__set_status(wire_status(status, {}));
  }
  reply.is_over = status.is_ok() && visit_.is_over();
  reply.cursor = cursor_;
  const VisitStatistics statistics = visit_.statistics();
  api::VisitProgress progress;
  progress.buckets_total = static_cast<std::int64_t>(statistics.buckets_total);
  progress.buckets_done = static_cast<std::int64_t>(statistics.buckets_done);
  progress.documents_read = static_cast<std::int64_t>(statistics.documents_read);
  progress.documents_matched = static_cast<std::int64_t>(statistics.documents_matched);
  progress.fraction_done = std::max(0.0, reply.is_over ? 1.0 : statistics.fraction_done());
  reply.__set_progress(progress);
}

}  // namespace fjord::gateway
