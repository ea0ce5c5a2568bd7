#include "direct_reduce.h"

#include <algorithm>

namespace fjord::mapreduce {

Status DirectReduce::on_chunk(BucketId bucket, std::string bytes) {
  FJORD_TRY_ASSIGN(const TupleChunk chunk, TupleChunk::decode(bytes));
  if (count_at_once_) FJORD_TRY(add(bytes));
  // The same bucket under another unit was begun again: what its former one has sent will not be completed.
  for (auto it = units_.begin(); it != units_.end();) {
    const auto current = it++;
    if (current->second.carrier == bucket && current->first != chunk.unit && current->second.done.empty()) {
      forget(current);
    }
  }
  Unit& unit = units_[chunk.unit];
  unit.carrier = bucket;
  waiting_bytes_ += bytes.size();
  unit.chunks.push_back(std::move(bytes));
  return Status::ok();
}

void DirectReduce::forget(std::map<std::uint64_t, Unit>::iterator unit) {
  for (const std::string& chunk : unit->second.chunks) waiting_bytes_ -= chunk.size();
  units_.erase(unit);
}

void DirectReduce::count(const TaskReport& report) {
  ++buckets_;
  totals_.documents += report.documents;
  totals_.bytes += report.bytes;
  totals_.tuples += report.tuples;
  totals_.spilled_bytes += report.spilled_bytes;
}

Status DirectReduce::add(std::string_view chunk) {
  FJORD_TRY_ASSIGN(const TupleChunk decoded, TupleChunk::decode(chunk));
  return for_each_tuple(decoded.tuples,
                        [this](std::string_view key, std::string_view value) { return table_->merge(key, value); });
}

Status DirectReduce::on_bucket(BucketId bucket, const TaskReport& report) {
  if (report.unit == 0) {  // nothing is there
    count(report);
    return Status::ok();
  }
  const auto it = units_.try_emplace(report.unit).first;
  Unit& unit = it->second;
  unit.done[bucket] = report;
  if (unit.chunks.size() != report.unit_chunks) {
    return Status(StatusCode::Corruption, bucket.to_string() + " was said to be done with " +
                                              std::to_string(report.unit_chunks) + " chunks of tuples, " +
                                              std::to_string(unit.chunks.size()) + " have come");
  }
  if (unit.done.size() < report.unit_buckets) return Status::ok();
  for (const std::string& chunk : unit.chunks) {
    if (!count_at_once_) FJORD_TRY(add(chunk));
  }
  for (const auto& [done, one] : unit.done) count(one);
  forget(it);
  return Status::ok();
}

std::vector<BucketId> DirectReduce::take_lost() {
  std::vector<BucketId> lost;
  for (const auto& [id, unit] : units_) {
    for (const auto& [bucket, report] : unit.done) lost.push_back(bucket);
  }
  units_.clear();
  waiting_bytes_ = 0;
  std::sort(lost.begin(), lost.end());
  return lost;
}

Result<std::vector<std::pair<std::string, std::string>>> DirectReduce::finish(std::size_t bytes_max) {
  std::vector<std::pair<std::string, std::string>> results;
  std::size_t bytes = 0;
  Tuple tuple;
  const auto source = table_->drain(0);
  for (;;) {
    FJORD_TRY_ASSIGN(const bool more, source->next(tuple));
    if (!more) break;
    FJORD_TRY_ASSIGN(auto value, reduce_key(application_, tuple));
    if (!value) continue;
    FJORD_TRY_ASSIGN(const std::string key, application_.key_text(tuple.key));
    results.emplace_back(printable_key(key), std::move(*value));
    bytes += results.back().first.size() + results.back().second.size() + sizeof(results.back());
    if (bytes > bytes_max) {
      return Status(StatusCode::TooLarge, "the results need more than " + std::to_string(bytes_max) +
                                              " bytes; the limit is the setting mapreduce.job_memory_bytes");
    }
  }
  std::sort(results.begin(), results.end());
  FJORD_TRY(application_.arrange(results));
  return results;
}

}  // namespace fjord::mapreduce
