#include "fjord/library/next.h"

#include <catch2/catch.hpp>
#include <coroutine>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

namespace fjord {
namespace {

/// A source of the numbers that the test puts into it.
class Numbers {
 public:
  Next<Numbers, int> next() { return Next<Numbers, int>(*this); }
  const int* try_next() {
    if (arrived_.empty()) return nullptr;
    last_ = arrived_.front();
    arrived_.pop_front();
    return &last_;
  }
  bool is_over() const { return is_over_ && arrived_.empty(); }
  Pending<Status> ready() {
    const auto state = std::make_shared<detail::PendingState<Status>>(nullptr);
    if (news_before_wait_ > 0) {
      --news_before_wait_;
      state->set(Status::ok());
    } else {
      waiter_ = state;
    }
    return Pending<Status>(state);
  }

  void arrive(int number) {
    arrived_.push_back(number);
    wake(Status::ok());
  }
  /// Adds a number without waking the waiting coroutine.
  void arrive_silently(int number) { arrived_.push_back(number); }
  void end() {
    is_over_ = true;
    wake(Status::ok());
  }
  void wake(const Status& status) {
    if (const auto waiter = std::exchange(waiter_, nullptr); waiter != nullptr) waiter->set(status);
  }
  /// The next `count` calls of ready() complete at once, although there is nothing to take.
  void set_news_before_wait(int count) { news_before_wait_ = count; }
  bool is_awaited() const { return waiter_ != nullptr; }

 private:
  friend class Next<Numbers, int>;
  const int* wait_next() { return try_next(); }

  std::deque<int> arrived_;
  int last_ = 0;
  bool is_over_ = false;
  int news_before_wait_ = 0;
  std::shared_ptr<detail::PendingState<Status>> waiter_;
};

/// A coroutine that starts at once. Its owner may destroy it while it waits.
struct Started {
  struct promise_type {
    Started get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

Started collect(Numbers& numbers, std::vector<int>& into, bool& is_ended) {
  while (const int* number = co_await numbers.next()) into.push_back(*number);
  is_ended = true;
}

struct Collector {
  explicit Collector(Numbers& numbers) : coroutine(collect(numbers, seen, is_ended)) {}
  ~Collector() {
    if (coroutine.handle) coroutine.handle.destroy();
  }
  std::vector<int> seen;
  bool is_ended = false;
  Started coroutine;
};

}  // namespace

TEST_CASE("next: values that are there come at once, later ones resume the coroutine, the end gives null") {
  Numbers numbers;
  numbers.arrive(1);
  numbers.arrive(2);
  const Collector collector(numbers);
  CHECK(collector.seen == std::vector<int>{1, 2});
  numbers.arrive(3);
  CHECK(collector.seen == std::vector<int>{1, 2, 3});
  CHECK_FALSE(collector.is_ended);
  numbers.end();
  CHECK(collector.is_ended);
  const int* const after = numbers.next();
  CHECK(after == nullptr);
}

TEST_CASE("next: a value is also waited for") {
  Numbers numbers;
  numbers.arrive(7);
  const int* const number = numbers.next();
  REQUIRE(number != nullptr);
  CHECK(*number == 7);
}

TEST_CASE("next: news without a value do not end the wait") {
  Numbers numbers;
  numbers.set_news_before_wait(3);
  const Collector collector(numbers);
  CHECK(numbers.is_awaited());
  numbers.wake(Status::ok());
  CHECK(numbers.is_awaited());
  CHECK_FALSE(collector.is_ended);
  numbers.arrive(1);
  CHECK(collector.seen == std::vector<int>{1});
}

TEST_CASE("next: the end of the source gives null, without another look at it") {
  auto numbers = std::make_unique<Numbers>();
  const Collector collector(*numbers);
  numbers->arrive(1);
  numbers->arrive_silently(2);
  numbers->wake(Status(StatusCode::Cancelled, "destroyed"));
  CHECK(collector.is_ended);
  CHECK(collector.seen == std::vector<int>{1});
  CHECK_FALSE(numbers->is_awaited());
}

TEST_CASE("next: a coroutine that was destroyed while it waited is not resumed") {
  Numbers numbers;
  { const Collector collector(numbers); }
  CHECK(numbers.is_awaited());
  numbers.arrive(1);
  const int* const number = numbers.next();
  REQUIRE(number != nullptr);
  CHECK(*number == 1);
}

}  // namespace fjord
