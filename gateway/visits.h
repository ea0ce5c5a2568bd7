#pragma once

#include <memory>
#include <string>

#include "entry_writer.h"
#include "fjord/library/visit.h"
#include "streams.h"

namespace fjord::gateway {

/// An open visit: a Visit of the client library whose documents are written as JSON. Threading: one thread at a time.
class VisitSource {
 public:
  using Reply = api::NextVisitReply;

  /// Waits for the schemas. Errors: those of Visit::status().
  static Result<std::unique_ptr<VisitSource>> open(Client& client, const api::OpenVisit& request,
                                                   std::size_t buffer_bytes);

  void take(const ChunkLimits& limits, Reply& reply);
  static bool has_news(const Reply& reply) { return !reply.documents.empty() || is_end(reply); }
  static bool is_end(const Reply& reply) { return reply.is_over || reply.__isset.status; }
  static Reply nothing() { return {}; }
  Pending<Status> ready() { return visit_.ready(); }
  static void set_name(api::OpenVisitReply& reply, std::string name) { reply.visit = std::move(name); }

 private:
  VisitSource(Client& client, Visit visit, const std::vector<std::string>& fields)
      : visit_(std::move(visit)), writer_(client, visit_.types(), fields), cursor_(visit_.cursor()) {}

  /// Adds the documents that have arrived. Errors: those of EntryWriter::write().
  Status take_entries(const ChunkLimits& limits, Reply& reply);

  Visit visit_;
  EntryWriter writer_;
  std::string cursor_;  ///< Cursor after the documents that were given so far.
  Status failure_;      ///< Error of a document that could not be written.
};

}  // namespace fjord::gateway
