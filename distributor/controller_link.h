#pragma once

#include <memory>
#include <vector>

#include "context.h"

namespace fjord::distributor {

/// Forwards requests to the fleet controllers, which clients reach through any distributor. Confined to the executor.
class ControllerLink {
 public:
  ControllerLink(Context& context, std::vector<rpc::Address> controllers)
      : context_(context), controllers_(std::move(controllers)) {}

  /// Answers with the reply of the leading controller. The next controller is asked if one does not lead, or if a
  /// request that changes nothing gets no answer.
  void forward(rpc::Request request, rpc::Responder respond);

 private:
  struct Question {
    rpc::Request request;
    rpc::Responder respond;
    std::size_t asked = 0;  ///< Number of controllers that were asked before.
  };
  void ask(std::shared_ptr<Question> question);
  void on_reply(std::shared_ptr<Question> question, const rpc::Address& address, Result<rpc::Reply> reply);
  const rpc::Address& current() const { return controllers_[current_ % controllers_.size()]; }

  Context& context_;
  std::vector<rpc::Address> controllers_;
  std::size_t current_ = 0;  ///< Index of the controller that answered last.
};

}  // namespace fjord::distributor
