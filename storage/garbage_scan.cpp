#include "garbage_scan.h"

#include <algorithm>

namespace fjord::storage {
namespace {

// Limits for one step, with which it takes some milliseconds at most.
constexpr std::size_t kStepDocuments = 256;
constexpr std::size_t kStepBytes = 256 << 10;
constexpr std::uint32_t kIdsMax = 10'000;

}  // namespace

void GarbageScan::start(StripeContext& context, Executor& executor, const rpc::FindGarbage& request,
                        rpc::Responder respond) {
  std::shared_ptr<GarbageScan> scan(new GarbageScan(context, executor, request, std::move(respond)));
  if (Status opened = scan->open(); !opened) {
    scan->finish(std::move(opened));
  } else if (scan->rules_.empty()) {
    scan->finish(Status::ok());
  } else {
    scan->step();
  }
}

GarbageScan::GarbageScan(StripeContext& context, Executor& executor, const rpc::FindGarbage& request,
                         rpc::Responder respond)
    : context_(context),
      executor_(executor),
      request_(request),
      respond_(std::move(respond)),
      snapshot_(context.snapshots.get()),
      rules_(*snapshot_->types(), context.clock.wall_now().us / 1'000'000) {
  request_.max_ids = request_.max_ids == 0 ? kIdsMax : std::min(request_.max_ids, kIdsMax);
}

Status GarbageScan::open() {
  spi::IterateOptions options;
  options.types = snapshot_->types();
  options.parts = rules_.needs_body() ? spi::Parts::All : spi::Parts::HeaderOnly;
  FJORD_TRY_ASSIGN(iterator_, context_.provider->iterate(request_.bucket, options));
  return Status::ok();
}

void GarbageScan::step() {
  const MonotonicTime now = context_.clock.now();
  if (const Duration wait = context_.budget.wait(now, MaintenanceBudget::Purpose::Safety); wait > Duration(0)) {
    context_.budget.note_throttled(wait);
    executor_.post_after(wait, [self = shared_from_this()] { self->step(); });
    return;
  }
  if (Status owner = context_.check_owner(request_.state_version, request_.distributor, request_.bucket); !owner) {
    finish(std::move(owner));
    return;
  }
  const Result<bool> more = read_some();
  if (!more) {
    finish(more.error());
  } else if (*more) {
    executor_.post([self = shared_from_this()] { self->step(); });
  } else {
    finish(Status::ok());
  }
}

Result<bool> GarbageScan::read_some() {
  std::size_t documents = 0;
  std::size_t bytes = 0;
  std::uint64_t steps = 0;
  const auto look_at = [&](const EntryView& entry) {
    ++documents;
    bytes += entry.header.size() + entry.body.size();
    const Result<DocumentView> view = DocumentView::open(*snapshot_->types(), entry.header, entry.body);
    if (view && view->type() != nullptr && rules_.is_garbage(*view, &steps)) {
      reply_.ids.emplace_back(view->id());
      reply_.types.push_back(view->type()->name());
    }
    reply_.more = reply_.ids.size() >= request_.max_ids;
    return !reply_.more && documents < kStepDocuments && bytes < kStepBytes && steps < Selection::kPauseSteps;
  };
  const Result<bool> left = iterator_->visit(look_at);
  context_.budget.charge(context_.clock.now(), bytes, MaintenanceBudget::Direction::Scan,
                         MaintenanceBudget::Purpose::Safety);
  reply_.scanned += documents;
  if (!left) return left.error();
  return *left && !reply_.more;
}

void GarbageScan::finish(Status status) {
  reply_.status = std::move(status);
  respond_(std::move(reply_));
}

}  // namespace fjord::storage
