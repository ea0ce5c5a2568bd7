#include "operation_inbox.h"

#include <utility>

namespace fjord {

bool OperationInbox::add(rpc::Operation operation, Duration timeout, AsyncClient::OperationDone done) {
  auto pending = std::make_shared<PendingOperation>();
  Result<DocumentId> id = DocumentId::parse(operation.id);
  if (id) {
    pending->gid = id->gid();
  } else {
    pending->invalid = id.error();
  }
  if (operation.kind == rpc::OperationKind::Unknown) {
    pending->invalid = Status(StatusCode::InvalidArgument, "an operation of unknown kind on " + operation.id);
  }
  pending->operation = std::move(operation);
  count(*pending);
  pending->started = clock_.now();
  pending->deadline = pending->started + (timeout > Duration(0) ? timeout : options_.default_timeout);
  pending->done = std::move(done);
  std::lock_guard lock(mutex_);
  incoming_.push_back(std::move(pending));
  return !std::exchange(is_awaited_, true);
}

void OperationInbox::count(PendingOperation& pending) {
  pending.size = pending.bytes();
  const std::size_t before = pending_.fetch_add(1, std::memory_order_relaxed);
  const std::size_t bytes_before = pending_bytes_.fetch_add(pending.size, std::memory_order_relaxed);
  const bool is_too_much =
      before >= options_.pending_operations_max || bytes_before + pending.size > options_.pending_bytes_max;
  if (before == 0 || !is_too_much || !pending.invalid) return;
  pending.invalid = Status(StatusCode::Busy,
                           std::to_string(before) + " operations of " + std::to_string(bytes_before) +
                               " bytes are pending in this client (pending_operations_max, pending_bytes_max)",
                           {.limit = std::to_string(options_.pending_operations_max)});
  pending.operation.header = {};
  pending.operation.body = {};
  pending.operation.json = {};
  pending.operation.update = {};
}

std::vector<PendingPtr> OperationInbox::take() {
  std::lock_guard lock(mutex_);
  is_awaited_ = false;
  return std::exchange(incoming_, {});
}

void OperationInbox::ended(std::size_t bytes) {
  pending_.fetch_sub(1, std::memory_order_relaxed);
  pending_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace fjord
