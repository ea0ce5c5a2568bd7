#include "http/long_answer.h"

#include <utility>

namespace fjord::gateway {
namespace {

constexpr std::size_t kPieceBytes = 128 << 10;

}  // namespace

LongAnswer::LongAnswer(HttpReply reply, std::string content_type) : reply_(std::move(reply)) {
  reply_.begin({.status = 200, .content_type = std::move(content_type)});
}

bool LongAnswer::add(std::string_view part) {
  text_ += part;
  return text_.size() < kPieceBytes ? is_open_ : flush();
}

bool LongAnswer::flush() {
  if (is_open_ && !text_.empty()) is_open_ = reply_.write_and_wait(std::exchange(text_, {}));
  return is_open_;
}

void LongAnswer::end() {
  if (flush()) reply_.end();
}

}  // namespace fjord::gateway
