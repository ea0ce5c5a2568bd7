#include "fjord/rpc/dispatch.h"

#include <catch2/catch.hpp>

namespace fjord::rpc {
namespace {

/// Takes calls of one type and keeps the responder.
class KeepingService final : public Service {
 public:
  bool handle(Request& request, Responder& respond) override {
    if (!std::holds_alternative<CancelJob>(request)) return false;
    taken.push_back(std::move(std::get<CancelJob>(request)));
    responders.push_back(std::move(respond));
    return true;
  }
  std::vector<CancelJob> taken;
  std::vector<Responder> responders;
};

struct Answers {
  std::vector<Result<Reply>> list;
  AnswerFunction function() {
    return [this](const CallHeader& call, Result<Reply> reply) {
      CHECK(call.seqid == 3);
      list.push_back(std::move(reply));
    };
  }
};

DecodedRequest cancel(std::string job) { return {{"cancelJob", 3, WireProtocol::Compact}, CancelJob{std::move(job)}}; }

TEST_CASE("dispatch: the first service that takes a request answers it", "[rpc]") {
  KeepingService first;
  KeepingService second;
  Service* services[] = {&first, &second};
  Answers answers;
  dispatch(cancel("a"), services, answers.function());
  REQUIRE(first.taken.size() == 1);
  CHECK(first.taken[0].job_id == "a");
  CHECK(second.taken.empty());
  CHECK(answers.list.empty());
  first.responders[0](CancelJobReply{Status(StatusCode::NotFound, "no such job")});
  first.responders[0](CancelJobReply{});
  first.responders.clear();
  REQUIRE(answers.list.size() == 1);
  CHECK(status_of(*answers.list[0]).code() == StatusCode::NotFound);
}

TEST_CASE("dispatch: a dropped responder answers NotReady", "[rpc]") {
  KeepingService service;
  Service* services[] = {&service};
  Answers answers;
  dispatch(cancel("a"), services, answers.function());
  service.responders.clear();
  REQUIRE(answers.list.size() == 1);
  REQUIRE(answers.list[0]);
  CHECK(std::get<CancelJobReply>(*answers.list[0]).status.code() == StatusCode::NotReady);
}

TEST_CASE("dispatch: a request that nobody takes is NotImplemented", "[rpc]") {
  KeepingService service;
  Service* services[] = {&service};
  Answers answers;
  dispatch({{"getStatus", 3, WireProtocol::Compact}, GetStatus{}}, services, answers.function());
  dispatch({{"dance", 3, WireProtocol::Compact}, std::nullopt}, services, answers.function());
  REQUIRE(answers.list.size() == 2);
  CHECK(answers.list[0].error().code() == StatusCode::NotImplemented);
  CHECK(answers.list[1].error().code() == StatusCode::NotImplemented);
}

}  // namespace
}  // namespace fjord::rpc
