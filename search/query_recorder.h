#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/executor.h"
#include "fjord/common/metrics.h"
#include "fjord/common/random.h"
#include "fjord/common/tunable.h"
#include "fjord/search/broker_documents.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::search {

/// Records a part of a broker's queries, so that voting tables can be trained from them: the setting search.log_part
/// says which part, search.log_queries_max how many are kept. Queries are collected in blocks; a block is a document,
/// and a new one replaces the oldest. Memory is bounded by one block: while a full block cannot be written, further
/// queries are counted and dropped.
///
/// Threading: confined to the broker's executor. Lifetime: the mailbox is closed, and the executor's tasks have ended,
/// before this ends.
class QueryRecorder {
 public:
  static constexpr std::size_t kBlockQueries = 1000;
  static constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
  /// A block that is not full is written after this time.
  static constexpr Duration kWriteAfter = seconds(10);

  /// `sink` may be null: then nothing is recorded.
  QueryRecorder(TunableRegistry& tunables, MetricRegistry& metrics, Random& random, Executor& executor,
                visitors::Mailbox mailbox, std::unique_ptr<QueryLogSink> sink);

  /// Records the query, or leaves it out, by chance. `query` has no line break.
  void record(std::string_view query);

 private:
  bool is_full() const { return count_ >= kBlockQueries || text_.size() >= kBlockBytes; }
  std::uint64_t places() const;
  void write();
  void write_later();
  void on_written(const Status& status, std::size_t count);

  Tunable& percent_;
  Tunable& queries_max_;
  Counter& recorded_;
  Counter& dropped_;
  Executor& executor_;
  visitors::Mailbox mailbox_;
  std::unique_ptr<QueryLogSink> sink_;
  Random random_;
  std::optional<std::uint64_t> place_;  // Where the block is in the log; empty: nothing was recorded yet.
  std::string text_;
  std::size_t count_ = 0;
  std::size_t written_ = 0;  ///< Queries of the block that are stored.
  bool is_writing_ = false;
  bool is_waiting_ = false;
};

}  // namespace fjord::search
