#include "fjord/common/callback_guard.h"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>

namespace fjord {
namespace {

struct Counted : std::enable_shared_from_this<Counted> {
  bool is_over() const { return over; }
  bool over = false;
  int calls = 0;
};

struct OnStack {
  std::function<void(int)> callback() {
    return while_alive(guard.of(*this), [](OnStack& self, int added) { self.sum += added; });
  }
  int sum = 0;
  CallbackGuard guard;
};

}  // namespace

TEST_CASE("callback guard: a callback does nothing once its object is over or destroyed") {
  auto object = std::make_shared<Counted>();
  const auto callback =
      std::function<void(int)>(while_alive(object->weak_from_this(), [](Counted& self, int) { ++self.calls; }));
  callback(1);
  CHECK(object->calls == 1);
  object->over = true;
  callback(1);
  CHECK(object->calls == 1);
  object.reset();
  callback(1);
}

TEST_CASE("callback guard: the object lives while its callback runs, also if that gives up the last reference") {
  auto object = std::make_shared<Counted>();
  std::weak_ptr<Counted> seen = object;
  auto callback = while_alive(std::weak_ptr<Counted>(object), [&](Counted& self) {
    object.reset();
    ++self.calls;
    CHECK(self.calls == 1);
    CHECK_FALSE(seen.expired());
  });
  callback();
  CHECK(seen.expired());
}

TEST_CASE("callback guard: an object without a shared_ptr guards its callbacks by its CallbackGuard") {
  std::function<void(int)> callback;
  {
    OnStack object;
    callback = object.callback();
    callback(3);
    CHECK(object.sum == 3);
    object.guard.begin_again();
    callback(4);
    CHECK(object.sum == 3);
    callback = object.callback();
    callback(5);
    CHECK(object.sum == 8);
    object.guard.end();
    callback(6);
    CHECK(object.sum == 8);
  }
  auto second = std::make_unique<OnStack>();
  callback = second->callback();
  second.reset();
  callback(1);  // The address sanitizer reports it if the callback touches the object.
}

}  // namespace fjord
