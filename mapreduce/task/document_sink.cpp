#include "fjord/mapreduce/document_sink.h"

#include <memory>
#include <utility>

namespace fjord::mapreduce {
namespace {

/// Gives an operation background priority: users' operations take precedence.
rpc::Operation in_background(rpc::Operation operation) {
  operation.priority = rpc::Priority::Background;
  return operation;
}

AsyncClient::OperationDone answer_to(visitors::Mailbox reply_to, DocumentSink::Done done) {
  return [reply_to = std::move(reply_to),
          shared = std::make_shared<DocumentSink::Done>(std::move(done))](OperationOutcome outcome) {
    reply_to.post([shared, status = std::move(outcome.status)] { (*shared)(status); });
  };
}

}  // namespace

void ClientSink::put(std::string id, EncodedDocument document, visitors::Mailbox reply_to, Done done) {
  client_.execute(in_background(put_operation(std::move(id), std::move(document))), timeout_,
                  answer_to(std::move(reply_to), std::move(done)));
}

void ClientSink::remove(std::string id, visitors::Mailbox reply_to, Done done) {
  client_.execute(in_background(remove_operation(std::move(id))), timeout_,
                  answer_to(std::move(reply_to), std::move(done)));
}

}  // namespace fjord::mapreduce
