#include "direct_reduce.h"

#include <algorithm>

#include "fjord/common/free_memory.h"
#include "fjord/common/hash.h"

namespace fjord::mapreduce {
namespace {

constexpr unsigned kTableBits = 4;
/// Least number of tuples or groups for which other threads are used.
constexpr std::size_t kParallelMin = 1000;
/// If the tables took more than this, in bytes, the memory that they have freed goes back to the system before the rows
/// are sorted.
constexpr std::size_t kLargeTables = std::size_t{8} << 20;

}  // namespace

DirectReduce::DirectReduce(Application& application, BulkExecutor& bulk) : application_(application), bulk_(bulk) {
  if (auto own = application.make_accumulator(); own != nullptr) {
    table_bits_ = kTableBits;
    tables_.push_back(std::move(own));
    while (tables_.size() < (std::size_t{1} << table_bits_)) tables_.push_back(application.make_accumulator());
  } else {
    tables_.push_back(make_accumulator(application));  // one table: its application may be used by one thread only
  }
  tuples_.resize(tables_.size());
}

Status DirectReduce::for_each_table(std::size_t work, const std::function<Status(std::size_t)>& f) {
  std::vector<Status> statuses(tables_.size());
  const auto one = [&](std::size_t i) { statuses[i] = f(i); };
  if (work >= kParallelMin) {
    bulk_.for_each(tables_.size(), one);
  } else {
    for (std::size_t i = 0; i < tables_.size(); ++i) one(i);
  }
  for (const Status& status : statuses) FJORD_TRY(status);
  return Status::ok();
}

Status DirectReduce::on_chunk(BucketId bucket, std::string bytes) {
  FJORD_TRY_ASSIGN(const TupleChunk chunk, TupleChunk::decode(bytes));
  // `bucket` is the one in whose name a unit's chunks are sent. If it sends a new unit, its task was restarted, and the
  // earlier unit will never be complete.
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
  totals_.sent_bytes += report.sent_bytes;
  totals_.busy_us += report.busy_us;
  totals_.processor_us += report.processor_us;
  totals_.reused += report.reused;
  totals_.dead_letters.insert(totals_.dead_letters.end(), report.dead_letters.begin(), report.dead_letters.end());
}

Status DirectReduce::add(std::string_view chunk) {
  FJORD_TRY_ASSIGN(const TupleChunk decoded, TupleChunk::decode(chunk));
  std::size_t count = 0;
  for (auto& tuples : tuples_) tuples.clear();
  FJORD_TRY(for_each_tuple(decoded.tuples, [&](std::string_view key, std::string_view value) {
    const std::uint64_t hash = hash64(key);
    const std::size_t table = table_bits_ == 0 ? 0 : static_cast<std::size_t>(hash >> (64 - table_bits_));
    tuples_[table].push_back({hash, key, value});
    ++count;
    return Status::ok();
  }));
  FJORD_TRY(for_each_table(count, [this](std::size_t i) { return tables_[i]->merge(tuples_[i]); }));
  table_bytes_ = 0;
  for (const auto& table : tables_) table_bytes_ += table->bytes();
  return Status::ok();
}

Status DirectReduce::on_bucket(BucketId bucket, const TaskReport& report) {
  if (report.unit == 0) {  // only an empty bucket belongs to no unit
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
    FJORD_TRY(add(chunk));
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

Status DirectReduce::add_group_of_nothing() {
  const bool is_empty = std::all_of(tables_.begin(), tables_.end(), [](const auto& t) { return t->groups() == 0; });
  const auto tuple = is_empty ? application_.tuple_of_nothing() : std::nullopt;
  return tuple ? tables_.front()->merge(tuple->first, tuple->second) : Status::ok();
}

Result<JobRows> DirectReduce::finish(std::size_t bytes_max, std::stop_token stop) {
  tuples_ = {};
  FJORD_TRY(add_group_of_nothing());
  RowBudget budget(bytes_max, std::move(stop));
  std::size_t groups = 0;
  for (const auto& table : tables_) groups += table->groups();
  std::vector<JobRows> rows_of_tables(tables_.size());
  FJORD_TRY(for_each_table(groups, [&](std::size_t i) {
    const Status reduced = tables_[i]->reduce(application_, budget, rows_of_tables[i]);
    // Frees each table early, so that not all rows and tables are in memory together.
    tables_[i]->clear();
    return reduced;
  }));
  if (table_bytes_ >= kLargeTables) return_free_memory();
  JobRows rows = JobRows::merge(rows_of_tables, bulk_);
  FJORD_TRY(application_.arrange(rows));
  return rows;
}

}  // namespace fjord::mapreduce
