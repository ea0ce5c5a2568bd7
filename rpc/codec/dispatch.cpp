#include "fjord/rpc/dispatch.h"

#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace fjord::rpc {
namespace {

/// Makes the answer to a request whose responder was destroyed without an answer.
using MakeDropped = Reply (*)();

template <typename Message>
Reply make_dropped() {
  typename Message::Reply reply;
  reply.status = Status(StatusCode::NotReady, "the node dropped the request unanswered");
  return reply;
}

MakeDropped make_dropped_for(const Request& request) {
  return std::visit([](const auto& one) -> MakeDropped { return &make_dropped<std::decay_t<decltype(one)>>; }, request);
}

/// The answer that a call still needs. Owned by its responder. If there was no answer, the destructor sends the one
/// that `if_dropped` makes.
class PendingAnswer {
 public:
  PendingAnswer(CallHeader call, MakeDropped if_dropped, AnswerFunction answer)
      : call_(std::move(call)), if_dropped_(if_dropped), answer_(std::move(answer)) {}
  PendingAnswer(const PendingAnswer&) = delete;
  PendingAnswer& operator=(const PendingAnswer&) = delete;
  ~PendingAnswer() {
    if (answer_) answer_(call_, Result<Reply>(if_dropped_()));
  }

  void answer(Result<Reply> reply) {
    if (!answer_) return;  // The call was answered before.
    const AnswerFunction answer = std::exchange(answer_, nullptr);
    answer(call_, std::move(reply));
  }

 private:
  CallHeader call_;
  MakeDropped if_dropped_;
  AnswerFunction answer_;
};

}  // namespace

void dispatch(DecodedRequest decoded, std::span<Service* const> services, AnswerFunction answer) {
  if (!decoded.request) {
    answer(decoded.header, Status(StatusCode::NotImplemented, "there is no call " + decoded.header.method));
    return;
  }
  auto pending =
      std::make_unique<PendingAnswer>(std::move(decoded.header), make_dropped_for(*decoded.request), std::move(answer));
  PendingAnswer* const view = pending.get();
  Responder respond = [pending = std::move(pending)](Reply reply) { pending->answer(std::move(reply)); };
  for (Service* service : services) {
    if (service->handle(*decoded.request, respond)) return;
  }
  FJORD_CHECK_MSG(static_cast<bool>(respond), "a service took the responder of a request that it did not take");
  view->answer(Status(StatusCode::NotImplemented, "no service here answers " + std::string(name_of(*decoded.request))));
}

}  // namespace fjord::rpc
