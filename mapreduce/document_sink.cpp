#include "fjord/mapreduce/document_sink.h"

#include <memory>
#include <utility>

namespace fjord::mapreduce {
namespace {

Client::OperationDone answer_to(visitors::Mailbox reply_to, DocumentSink::Done done) {
  return [reply_to = std::move(reply_to),
          shared = std::make_shared<DocumentSink::Done>(std::move(done))](OperationOutcome outcome) {
    reply_to.post([shared, status = std::move(outcome.status)] { (*shared)(status); });
  };
}

}  // namespace

void ClientSink::put(std::string id, EncodedDocument document, visitors::Mailbox reply_to, Done done) {
  client_.put(std::move(id), std::move(document), timeout_, answer_to(std::move(reply_to), std::move(done)));
}

void ClientSink::remove(std::string id, visitors::Mailbox reply_to, Done done) {
  client_.remove(std::move(id), timeout_, answer_to(std::move(reply_to), std::move(done)));
}

}  // namespace fjord::mapreduce
