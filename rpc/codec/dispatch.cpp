#include "fjord/rpc/dispatch.h"

#include <memory>
#include <utility>

namespace fjord::rpc {
namespace {

/// The answer that a call still needs. Owned by its responder. If there was no answer, the destructor sends
/// `if_dropped`.
class PendingAnswer {
 public:
  PendingAnswer(CallHeader call, Reply if_dropped, AnswerFunction answer)
      : call_(std::move(call)), if_dropped_(std::move(if_dropped)), answer_(std::move(answer)) {}
  PendingAnswer(const PendingAnswer&) = delete;
  PendingAnswer& operator=(const PendingAnswer&) = delete;
  ~PendingAnswer() {
    if (answer_) answer_(call_, Result<Reply>(std::move(if_dropped_)));
  }

  void answer(Result<Reply> reply) {
    if (!answer_) return;  // The call was answered before.
    const AnswerFunction answer = std::exchange(answer_, nullptr);
    answer(call_, std::move(reply));
  }

 private:
  CallHeader call_;
  Reply if_dropped_;
  AnswerFunction answer_;
};

}  // namespace

void dispatch(DecodedRequest decoded, std::span<Service* const> services, AnswerFunction answer) {
  if (!decoded.request) {
    answer(decoded.header, Status(StatusCode::NotImplemented, "there is no call " + decoded.header.method));
    return;
  }
  Reply if_dropped =
      error_reply(*decoded.request, Status(StatusCode::NotReady, "the node dropped the request unanswered"));
  auto pending = std::make_unique<PendingAnswer>(std::move(decoded.header), std::move(if_dropped), std::move(answer));
  PendingAnswer* const view = pending.get();
  Responder respond = [pending = std::move(pending)](Reply reply) { pending->answer(std::move(reply)); };
  for (Service* service : services) {
    if (service->handle(*decoded.request, respond)) return;
  }
  FJORD_CHECK_MSG(static_cast<bool>(respond), "a service took the responder of a request that it did not take");
  view->answer(Status(StatusCode::NotImplemented, "no service here answers " + std::string(name_of(*decoded.request))));
}

}  // namespace fjord::rpc
