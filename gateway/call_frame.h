#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <thrift/TBase.h>

#include "fjord/common/result.h"

/// The envelope of calls, in Thrift's compact or binary protocol. No function here throws.
namespace fjord::gateway {

/// The part of a call that its answer repeats.
struct CallHeader {
  std::string method;
  std::int32_t seqid = 0;
  bool is_compact = true;
};

/// Errors: Corruption if the frame is not a call.
Result<CallHeader> read_header(std::string_view frame);
/// Reads the call's only argument. A list or map may have at most 1000 elements, so that a small frame cannot claim
/// much memory. Errors: InvalidArgument if the argument is malformed.
Status read_argument(std::string_view frame, apache::thrift::TBase& argument);
/// Returns the frame that answers the call.
std::string write_reply(const CallHeader& call, const apache::thrift::TBase& reply);
/// Returns the frame that answers the call with a Thrift exception.
std::string write_failure(const CallHeader& call, const std::string& message);

}  // namespace fjord::gateway
