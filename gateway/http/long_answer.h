#pragma once

#include <string>
#include <string_view>

#include "http/reply.h"

namespace fjord::gateway {

/// A body that is sent while it is made. Only on a thread that may wait: a slow reader slows it down.
class LongAnswer {
 public:
  /// Begins the answer, with status 200.
  LongAnswer(HttpReply reply, std::string content_type);

  /// Adds a part, and sends what has come together if it is enough. Returns false if the client is away.
  bool add(std::string_view part);
  /// Sends what has come together. Returns false if the client is away.
  bool flush();
  /// Ends the body as complete. Without it the client sees that the body is not.
  void end();
  /// False once the client is away.
  bool is_open() const { return is_open_; }

 private:
  const HttpReply reply_;
  std::string text_;
  bool is_open_ = true;
};

}  // namespace fjord::gateway
