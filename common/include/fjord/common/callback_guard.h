#pragma once

#include <memory>
#include <utility>

namespace fjord {

/// Guards a callback against the end of the object that it works for. Returns a callback that calls `f(object,
/// arguments...)` if the object exists and is not over, and does nothing otherwise. The object stays alive while `f`
/// runs, so `f` may give up the last reference to it.
///
/// An object that ends before it is destroyed, for example when it is cancelled, has a member `bool is_over() const`.
/// An object that is a member of another object passes an aliasing pointer to itself, which keeps the whole alive.
///
/// Threading: the callback runs on the executor that the object is confined to. README.md ("Callbacks") tells how to
/// guard against the end of an executor or a transport.
template <typename T, typename F>
auto while_alive(std::weak_ptr<T> object, F f) {
  return [object = std::move(object), f = std::move(f)](auto&&... arguments) mutable {
    const std::shared_ptr<T> self = object.lock();
    if (self == nullptr) return;
    if constexpr (requires { self->is_over(); }) {
      if (self->is_over()) return;
    }
    f(*self, std::forward<decltype(arguments)>(arguments)...);
  };
}

/// Lets callbacks notice that an object has ended which no shared_ptr owns: `while_alive(guard_.of(*this), f)`. It is
/// the last member of the object, so that it is destroyed first. The object is destroyed, or calls end(), on the
/// executor on which the callbacks run.
class CallbackGuard {
 public:
  template <typename T>
  std::weak_ptr<T> of(T& object) const {
    return std::shared_ptr<T>(token_, &object);
  }
  /// Callbacks do nothing from now on.
  void end() { token_.reset(); }
  /// Callbacks that were made before do nothing from now on; later ones run.
  void begin_again() { token_ = std::make_shared<const bool>(true); }

 private:
  std::shared_ptr<const bool> token_ = std::make_shared<const bool>(true);
};

}  // namespace fjord
