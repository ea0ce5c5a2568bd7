#include "space_gate.h"

namespace fjord::storage {

void SpaceGate::set(SpaceState space) {
  space_ = std::move(space);
  put_bytes_ = 0;
  last_bytes_ = 0;
  context_.provider->set_short_of_space(space_.stage >= SpaceStage::Throttle);
}

Status SpaceGate::check(const rpc::StorageOperation& operation) {
  if (operation.kind == rpc::OperationKind::Remove) return Status::ok();
  const std::uint64_t bytes = operation.header.size() + operation.body.size();
  // Another replica has this write already, and a merge would bring it here anyway. So the limits for merges apply.
  if (operation.is_elsewhere) return check_merge(bytes);
  const std::string node = "storage." + std::to_string(context_.options.index);
  if (Status status = space_.check_external(node); !status) {
    context_.metrics.no_space.add();
    return status;
  }
  refused_share_ += space_.refused_percent;
  if (refused_share_ >= 100) {
    refused_share_ -= 100;
  } else if (put_bytes_ == 0 || put_bytes_ + bytes <= space_.budget_bytes) {
    put_bytes_ += bytes;
    return Status::ok();
  }
  context_.metrics.throttled.add();
  return {StatusCode::Busy, node + " takes fewer writes, for its disk is nearly full: " + space_.reason};
}

Status SpaceGate::check_merge(std::uint64_t bytes) {
  Status status = space_.check_merge("storage." + std::to_string(context_.options.index));
  if (status) return status;
  if (last_bytes_ + bytes <= space_.last_bytes) {
    last_bytes_ += bytes;
    return Status::ok();
  }
  context_.metrics.no_space.add();
  return status;
}

}  // namespace fjord::storage
