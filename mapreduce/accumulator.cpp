#include "accumulator.h"

#include <limits>
#include <utility>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "task.h"
#include "tuple_table.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

class TableSource final : public TupleSource {
 public:
  TableSource(const TupleTable& table, std::uint32_t destinations)
      : table_(table), keys_(table.sorted_keys(std::max(1u, destinations))) {}

  Result<bool> next(Tuple& tuple) override {
    if (at_ == keys_.size()) return false;
    const TupleTable::Key& key = keys_[at_++];
    tuple.destination = key.destination;
    tuple.key = key.key;
    table_.sorted_values(key, tuple.values);
    return true;
  }

 private:
  const TupleTable& table_;
  std::vector<TupleTable::Key> keys_;
  std::size_t at_ = 0;
};

/// What applications emit, in a TupleTable.
class TableAccumulator final : public Accumulator, private Emitter {
 public:
  TableAccumulator(Application& application, std::function<bool()> cancelled)
      : application_(application),
        is_cancelled_(std::move(cancelled)),
        table_(std::make_unique<TupleTable>(application, kNoLimit)) {}

  Status map(const DocumentView& document) override {
    // Nothing of a document counts if map() fails on it.
    emitted_.clear();
    emitted_tuples_ = 0;
    FJORD_TRY(application_.map(document, *this));
    tuples_ += emitted_tuples_;
    ByteReader in(emitted_);
    while (in.remaining() > 0) {
      const std::string_view key = in.string();
      FJORD_TRY(table_->add(key, in.string()));
    }
    return Status::ok();
  }
  Status map_alone(const DocumentView& document, std::string& tuples) override {
    emitted_.clear();
    emitted_tuples_ = 0;
    FJORD_TRY(application_.map(document, *this));
    tuples_ += emitted_tuples_;
    tuples += emitted_;
    return Status::ok();
  }
  using Accumulator::merge;
  Status merge(std::string_view key, std::string_view value) override { return table_->add(key, value); }
  std::uint64_t tuples() const override { return tuples_; }
  std::size_t groups() const override { return table_->keys(); }
  std::size_t bytes() const override { return table_->bytes(); }
  void clear() override { table_ = std::make_unique<TupleTable>(application_, kNoLimit); }
  std::unique_ptr<TupleSource> drain(std::uint32_t destinations) override {
    return std::make_unique<TableSource>(*table_, destinations);
  }

 private:
  void emit(std::string_view key, std::string_view value) override {
    ++emitted_tuples_;
    put_string(emitted_, key);
    put_string(emitted_, value);
  }
  bool cancelled() const override { return is_cancelled_ && is_cancelled_(); }

  Application& application_;
  std::function<bool()> is_cancelled_;
  std::unique_ptr<TupleTable> table_;
  std::uint64_t tuples_ = 0;
  std::string emitted_;  ///< By map() for the present document.
  std::uint64_t emitted_tuples_ = 0;
};

}  // namespace

std::uint32_t destination_of(std::string_view key, std::uint32_t destinations) {
  return static_cast<std::uint32_t>(hash64(key) % destinations);
}

Status RowBudget::take(const Rows::value_type& row) {
  const std::size_t bytes = row.first.size() + row.second.size() + sizeof(row);
  if (bytes_.fetch_add(bytes) + bytes <= bytes_max_) return Status::ok();
  return Status(StatusCode::TooLarge, "the results need more than " + std::to_string(bytes_max_) +
                                          " bytes; the limit is the setting mapreduce.job_memory_bytes");
}

Status Accumulator::merge(std::span<const HashedTuple> tuples) {
  for (const HashedTuple& tuple : tuples) FJORD_TRY(merge(tuple.key, tuple.value));
  return Status::ok();
}

Result<std::size_t> Accumulator::reduce(Application& application, RowBudget& budget, std::span<Rows::value_type> rows) {
  std::size_t used = 0;
  Tuple tuple;
  const auto source = drain(0);
  for (;;) {
    FJORD_TRY_ASSIGN(const bool more, source->next(tuple));
    if (!more) return used;
    FJORD_TRY_ASSIGN(auto value, reduce_key(application, tuple));
    if (!value) continue;
    FJORD_TRY_ASSIGN(const std::string key, application.key_text(tuple.key));
    rows[used] = {printable_key(key), std::move(*value)};
    FJORD_TRY(budget.take(rows[used]));
    ++used;
  }
}

std::unique_ptr<Accumulator> make_accumulator(Application& application, std::function<bool()> cancelled) {
  auto own = application.make_accumulator();
  return own != nullptr ? std::move(own) : std::make_unique<TableAccumulator>(application, std::move(cancelled));
}

std::unique_ptr<Accumulator> Application::make_accumulator() { return nullptr; }

}  // namespace fjord::mapreduce
