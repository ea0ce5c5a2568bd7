#pragma once

#include <cstddef>
#include <iterator>

namespace fjord {

/// Input iterator over the values of `Source::next()` until it returns null: for (const T& value : source).
template <typename Source, typename T>
class NextIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = const T*;
  using reference = const T&;

  NextIterator() = default;
  explicit NextIterator(Source* source) : source_(source) { ++*this; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_; }
  NextIterator& operator++() {
    value_ = source_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const NextIterator& a, const NextIterator& b) { return a.value_ == b.value_; }

 private:
  Source* source_ = nullptr;
  const T* value_ = nullptr;
};

}  // namespace fjord
