#include "controller_link.h"

#include <utility>

namespace fjord::distributor {
namespace {

/// Returns true if the request changes nothing, so that it may be sent twice.
bool only_asks(const rpc::Request& request) {
  if (const auto* balance = std::get_if<rpc::Balance>(&request)) {
    return balance->action != rpc::BalanceAction::Apply && balance->action != rpc::BalanceAction::Revert;
  }
  return !std::holds_alternative<rpc::DeploySchemas>(request) && !std::holds_alternative<rpc::ChangeNodes>(request) &&
         !std::holds_alternative<rpc::ChangeConfig>(request) && !std::holds_alternative<rpc::RecoverState>(request);
}

}  // namespace

void ControllerLink::forward(rpc::Request request, rpc::Responder respond) {
  ask(std::make_shared<Question>(Question{std::move(request), std::move(respond)}));
}

void ControllerLink::ask(std::shared_ptr<Question> question) {
  const rpc::Address address = current();
  context_.transport.call(
      address, rpc::Request(question->request), context_.options.storage_timeout, context_.executor,
      [this, question, address](Result<rpc::Reply> reply) { on_reply(question, address, std::move(reply)); });
}

void ControllerLink::on_reply(std::shared_ptr<Question> question, const rpc::Address& address,
                              Result<rpc::Reply> reply) {
  const Status status = reply ? rpc::status_of(*reply) : reply.error();
  const bool not_done = status.code() == StatusCode::NotReady || (!reply && only_asks(question->request));
  if ((!reply || not_done) && address == current()) ++current_;
  if (not_done && question->asked + 1 < controllers_.size()) {
    ++question->asked;
    ask(std::move(question));
  } else if (reply) {
    question->respond(std::move(*reply));
  } else {
    question->respond(
        rpc::error_reply(question->request, reply.error().with_context("fleet controller at " + address)));
  }
}

}  // namespace fjord::distributor
