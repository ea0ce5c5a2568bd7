#include "fjord/common/retry.h"

namespace fjord {

RetryClass retry_class(StatusCode code) {
  if (is_transient(code)) return RetryClass::Transient;
  switch (code) {
    case StatusCode::Ok:
      return RetryClass::Done;
    case StatusCode::Timeout:
    case StatusCode::Unknown:  // an answer without a status
      return RetryClass::InDoubt;
    case StatusCode::InvalidId:
    case StatusCode::UnknownType:
    case StatusCode::InvalidField:
    case StatusCode::InvalidSelection:
    case StatusCode::TooLarge:
    case StatusCode::NoSpace:
    case StatusCode::Unauthorized:
    case StatusCode::InvalidArgument:
    case StatusCode::TestAndSetFailed:
    case StatusCode::NotFound:
    case StatusCode::AlreadyExists:
    case StatusCode::NotImplemented:
      return RetryClass::Permanent;
    default:
      return RetryClass::Broken;
  }
}

bool is_permanent_for_read(StatusCode code) {
  const bool is_of_write =
      code == StatusCode::NoSpace || code == StatusCode::TestAndSetFailed || code == StatusCode::AlreadyExists;
  return retry_class(code) == RetryClass::Permanent && code != StatusCode::NotFound && !is_of_write;
}

}  // namespace fjord
