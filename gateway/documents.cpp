#include "documents.h"

#include <fmt/format.h>
#include <utility>

namespace fjord::gateway {
namespace {

Pending<WriteResult> start(Client& client, api::WriteDocument& request, WriteOptions options) {
  switch (request.kind) {
    case fjord::api::OperationKind::PUT:
      return client.put_json(std::move(request.id), std::move(request.json), std::move(options));
    case fjord::api::OperationKind::UPDATE:
      return client.update_json(std::move(request.id), std::move(request.json), std::move(options));
    default:
      return client.remove(std::move(request.id), std::move(options));
  }
}

bool is_write(fjord::api::OperationKind::type kind) {
  return kind == fjord::api::OperationKind::PUT || kind == fjord::api::OperationKind::UPDATE ||
         kind == fjord::api::OperationKind::REMOVE;
}

}  // namespace

void read_document(Client& client, api::ReadDocument request, Call<api::ReadDocumentReply> call) {
  ReadOptions options;
  options.fields = std::move(request.fields);
  if (request.consistency == fjord::api::Consistency::SESSION) options.consistency = ReadConsistency::Linearizable;
  options.timeout = timeout_of(request.timeout_ms);
  client.get_json(std::move(request.id), std::move(options)).then([call](JsonResult result) {
    api::ReadDocumentReply reply;
    reply.__set_status(call.status_of(result.status));
    reply.json = std::move(result.json);
    reply.timestamp_us = static_cast<std::int64_t>(result.version.us);
    call.answer(std::move(reply));
  });
}

void write_document(Client& client, api::WriteDocument request, Call<api::WriteDocumentReply> call) {
  if (!is_write(request.kind)) {
    return call.end({StatusCode::InvalidArgument,
                     fmt::format("kind is {}: expected PUT, UPDATE or REMOVE", static_cast<int>(request.kind))});
  }
  WriteOptions options;
  options.condition = std::move(request.condition);
  if (request.__isset.required_version) {
    options.required_version = Timestamp{static_cast<std::uint64_t>(request.required_version)};
  }
  options.create = request.create;
  options.durability = static_cast<WriteDurability>(request.durability);
  options.idempotency_key = std::move(request.token);
  options.timeout = timeout_of(request.timeout_ms);
  start(client, request, std::move(options)).then([call](WriteResult result) {
    api::WriteDocumentReply reply;
    reply.__set_status(call.status_of(result.status));
    reply.timestamp_us = static_cast<std::int64_t>(result.version.us);
    reply.existed = result.existed;
    reply.version_us = static_cast<std::int64_t>(result.current_version.us);
    reply.in_doubt = result.outcome == WriteOutcome::InDoubt;
    reply.token = std::move(result.idempotency_key);
    call.answer(std::move(reply));
  });
}

}  // namespace fjord::gateway
