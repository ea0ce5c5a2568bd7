#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace fjord {

template <typename Signature>
class UniqueFunction;

/// A callable that can be moved but not copied, so it can own its captures (std::move_only_function, which g++ 12 lacks
/// in C++20 mode). Calling an empty one is a bug.
template <typename R, typename... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT: reads like a pointer

  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, UniqueFunction> && std::is_invocable_r_v<R, F&, Args...>)
      UniqueFunction(F&& f)
      : impl_(std::make_unique<Impl<std::decay_t<F>>>(std::forward<F>(f))) {}  // NOLINT

  R operator()(Args... args) const { return impl_->call(std::forward<Args>(args)...); }
  explicit operator bool() const { return impl_ != nullptr; }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual R call(Args&&... args) = 0;
  };
  template <typename F>
  struct Impl final : Base {
    template <typename G>
    explicit Impl(G&& g) : f(std::forward<G>(g)) {}
    R call(Args&&... args) override { return f(std::forward<Args>(args)...); }
    F f;
  };
  std::unique_ptr<Base> impl_;
};

using Task = UniqueFunction<void()>;

}  // namespace fjord
