#pragma once

#include <string>
#include <string_view>

#include "fjord/common/unique_function.h"

namespace fjord::rpc {

/// Answers Thrift calls that are not messages of `rpc` (messages.h): calls of a service with types of its own.
/// Threading: as for Service.
class FrameService {
 public:
  /// Receives the frame of the only answer, on any thread. An answer must be given even if the call fails.
  using Answer = UniqueFunction<void(std::string frame)>;

  virtual ~FrameService() = default;
  /// Takes a call and returns true. If the service does not know the call, returns false and leaves `answer` untouched.
  /// `frame` is one Thrift message without its length, valid during the call only.
  virtual bool handle(std::string_view frame, Answer& answer) = 0;
};

}  // namespace fjord::rpc
