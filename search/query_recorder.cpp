#include "query_recorder.h"

#include <utility>

#include "fjord/common/log.h"

namespace fjord::search {

QueryRecorder::QueryRecorder(TunableRegistry& tunables, MetricRegistry& metrics, Random& random, Executor& executor,
                             visitors::Mailbox mailbox, std::unique_ptr<QueryLogSink> sink)
    : percent_(tunables.declare("search.log_part")),
      queries_max_(tunables.declare("search.log_queries_max")),
      recorded_(metrics.counter("fjord_search_recorded_total", "Queries recorded for training")),
      dropped_(metrics.counter("fjord_search_recorded_dropped_total",
                               "Queries not recorded because earlier ones could not be stored")),
      executor_(executor),
      mailbox_(std::move(mailbox)),
      sink_(std::move(sink)),
      random_(sink_ == nullptr ? Random(0) : random.fork()) {}

std::uint64_t QueryRecorder::places() const {
  return (static_cast<std::uint64_t>(queries_max_.value()) + kBlockQueries - 1) / kBlockQueries;
}

void QueryRecorder::record(std::string_view query) {
  if (sink_ == nullptr || percent_.value() == 0) return;
  if (!random_.chance(static_cast<double>(percent_.value()) / 100.0)) return;
  if (is_full()) {
    if (written_ < count_) return dropped_.add();
    place_ = (*place_ + 1) % places();
    text_.clear();
    count_ = written_ = 0;
  }
  // A broker that restarts often must not write into its first places only.
  if (!place_) place_ = random_.below(places());
  text_ += query;
  text_ += '\n';
  ++count_;
  recorded_.add();
  if (is_full()) return write();
  write_later();
}

void QueryRecorder::write_later() {
  if (is_waiting_) return;
  is_waiting_ = true;
  executor_.post_after(kWriteAfter, [this] {
    is_waiting_ = false;
    write();
  });
}

void QueryRecorder::write() {
  if (is_writing_ || written_ == count_) return;
  is_writing_ = true;
  sink_->write(*place_, text_, [this, mailbox = mailbox_, count = count_](Status status) {
    mailbox.post([this, count, status = std::move(status)] { on_written(status, count); });
  });
}

void QueryRecorder::on_written(const Status& status, std::size_t count) {
  is_writing_ = false;
  if (!status) {
    log::warning("search", "recorded queries cannot be stored: {}", status.to_string());
    return write_later();
  }
  written_ = count;
  if (written_ == count_) return;
  if (is_full()) return write();
  write_later();
}

}  // namespace fjord::search
