#include "result_store.h"

#include <algorithm>
#include <utility>

namespace fjord::gateway {

void ResultStore::get(const std::string& key, rpc::JobStatus job, Arrange arrange, Done done) {
  if (give_kept(key, done)) return;
  waiting_.push_back({key, std::move(job), std::move(arrange), std::move(done)});
  read_next();
}

bool ResultStore::give_kept(const std::string& key, const Done& done) {
  const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.key == key; });
  if (at == kept_.end()) return false;
  at->used = context_.clock.now();
  std::rotate(kept_.begin(), at, at + 1);
  done(kept_.front().rows);
  return true;
}

void ResultStore::read_next() {
  while (!is_reading_ && !waiting_.empty()) {
    Read read = std::move(waiting_.front());
    waiting_.pop_front();
    if (give_kept(read.key, read.done)) continue;
    is_reading_ = true;
    const auto bytes_max = static_cast<std::uint64_t>(bytes_max_.value());
    context_.workers.run(
        [this, client = &context_.client(), bytes_max, read = std::make_shared<Read>(std::move(read))] {
          auto rows = std::make_shared<Result<Rows>>(read_results(client->core().connection(), read->job, bytes_max));
          if (*rows && read->arrange) {
            if (const Status arranged = read->arrange(**rows); !arranged) *rows = arranged;
          }
          context_.inbox->post([this, read, rows] { on_read(*read, std::move(*rows)); });
        });
  }
}

void ResultStore::on_read(const Read& read, Result<Rows> rows) {
  is_reading_ = false;
  if (!rows) {
    read.done(rows.error());
    return read_next();
  }
  Kept kept{read.key, std::make_shared<const Rows>(std::move(*rows)), 0, context_.clock.now()};
  for (const auto& [key, value] : *kept.rows) kept.bytes += static_cast<std::int64_t>(key.size() + value.size());
  kept_.push_front(kept);
  std::int64_t bytes = 0;
  for (const Kept& one : kept_) bytes += one.bytes;
  while (kept_.size() > 1 && bytes > bytes_max_.value()) {
    bytes -= kept_.back().bytes;
    kept_.pop_back();
  }
  read.done(kept.rows);
  read_next();
}

void ResultStore::end_idle() {
  const MonotonicTime oldest = context_.clock.now() - milliseconds(context_.idle_timeout.value());
  std::erase_if(kept_, [&](const Kept& one) { return one.used < oldest; });
}

}  // namespace fjord::gateway
