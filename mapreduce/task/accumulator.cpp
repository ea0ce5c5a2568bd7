#include "accumulator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "columns/column_cache.h"
#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "key_reducer.h"
#include "keys.h"
#include "tuple_table.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
/// Approximate bytes of values per BatchFunctions::combine() call.
constexpr std::size_t kCombineTogether = std::size_t{512} << 10;

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

/// A source that only returns the error for which the tuples could not be made.
class FailedSource final : public TupleSource {
 public:
  explicit FailedSource(Status why) : why_(std::move(why)) {}
  Result<bool> next(Tuple&) override { return why_; }

 private:
  Status why_;
};

/// The tuples that an application emits, in a TupleTable. With BatchFunctions the table also holds values that wait to
/// be combined. All are combined before tuples come out, so that the tuples do not depend on earlier calls of
/// combine().
class TableAccumulator final : public Accumulator, private Emitter {
 public:
  TableAccumulator(Application& application, std::function<bool()> cancelled, std::size_t combine_from)
      : application_(application),
        is_cancelled_(std::move(cancelled)),
        table_(std::make_unique<TupleTable>(application, kNoLimit)),
        combine_from_min_(combine_from) {}

  Status map(const DocumentView& document) override {
    if (recorder_ != nullptr) {
      record_values(document);
      return Status::ok();
    }
    // If map() fails on a document, the tuples that it had emitted for the document are dropped here.
    emitted_.clear();
    emitted_tuples_ = 0;
    FJORD_TRY(application_.map(document, *this));
    tuples_ += emitted_tuples_;
    return add_all(emitted_);
  }
  std::vector<std::string> values() const override {
    std::vector<std::string> texts;
    if (ValueFunctions* const functions = application_.by_values(); functions != nullptr) {
      for (const ValueExpression& value : functions->values()) texts.push_back(value.to_string());
    }
    return texts;
  }
  void record(ColumnsBuilder* columns) override { recorder_ = columns; }
  Status map_columns(const FoundColumns& columns) override {
    const std::size_t documents = columns.columns->documents;
    const std::size_t count = application_.by_values()->values().size();
    if (count == 1 && columns.of(0).has_dictionary()) return map_dictionary(columns.of(0), documents);
    values_.resize(count);
    for (std::size_t row = 0; row < documents; ++row) {
      for (std::size_t i = 0; i < count; ++i) values_[i] = columns.of(i).at(row);
      emit_for(values_);
      tuples_ += emitted_tuples_;
      FJORD_TRY(add_all(emitted_));
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
  bool takes_many() const override { return application_.batches() != nullptr; }
  Result<MappedDocuments> map_many(std::span<const DocumentView> documents) override {
    FJORD_TRY_ASSIGN(MappedDocuments mapped, application_.batches()->map(documents, is_cancelled_));
    tuples_ += mapped.tuples;
    FJORD_TRY(add_all(mapped.emitted));
    mapped.emitted.clear();
    FJORD_TRY(combine_if_large());
    return mapped;
  }
  Result<MappedDocuments> map_many_alone(std::span<const DocumentView> documents) override {
    Result<MappedDocuments> mapped = application_.batches()->map_apart(documents, is_cancelled_);
    if (mapped) tuples_ += mapped->tuples;
    return mapped;
  }
  using Accumulator::merge;
  Status merge(std::string_view key, std::string_view value) override {
    FJORD_TRY(table_->add(key, value));
    return combine_if_large();
  }
  std::uint64_t tuples() const override { return tuples_; }
  std::size_t groups() const override { return table_->keys(); }
  std::size_t bytes() const override { return table_->bytes(); }
  void clear() override {
    table_ = std::make_unique<TupleTable>(application_, kNoLimit);
    combine_from_ = combine_from_min_;
  }
  std::unique_ptr<TupleSource> drain(std::uint32_t destinations) override {
    if (Status status = combine_values(); !status) return std::make_unique<FailedSource>(std::move(status));
    return std::make_unique<TableSource>(*table_, destinations);
  }

 private:
  void emit(std::string_view key, std::string_view value) override {
    ++emitted_tuples_;
    put_string(emitted_, key);
    put_string(emitted_, value);
  }
  bool cancelled() const override { return is_cancelled_ && is_cancelled_(); }

  /// Adds keys and values, as emit() writes them, to the table.
  Status add_all(std::string_view tuples) {
    ByteReader in(tuples);
    while (in.remaining() > 0) {
      const std::string_view key = in.string();
      FJORD_TRY(table_->add(key, in.string()));
    }
    return Status::ok();
  }

  /// Adds the values of a document to the columns.
  void record_values(const DocumentView& document) {
    ValueExpression::clear(scratch_);
    std::size_t column = 0;
    for (const ValueExpression& value : application_.by_values()->values()) {
      recorder_->add(column++, canonical(value.evaluate(document, scratch_)));
    }
  }

  /// Stores the tuples of a document with these values in `emitted_`.
  void emit_for(std::span<const ScalarView> values) {
    emitted_.clear();
    emitted_tuples_ = 0;
    application_.by_values()->map_values(values, *this);
  }

  /// Equal values emit the same tuples, so these are made once for each different value.
  Status map_dictionary(const Column& column, std::size_t documents) {
    std::vector<std::uint32_t> rows(column.dictionary().size());
    for (std::size_t row = 0; row < documents; ++row) ++rows[column.code(row)];
    for (std::size_t code = 0; code < rows.size(); ++code) {
      emit_for({&column.dictionary()[code].value, 1});
      tuples_ += emitted_tuples_ * rows[code];
      for (std::uint32_t row = 0; row < rows[code]; ++row) FJORD_TRY(add_all(emitted_));
    }
    return Status::ok();
  }

  Status combine_if_large() { return table_->bytes() < combine_from_ ? Status::ok() : combine_values(); }

  Status combine_values() {
    BatchFunctions* const batches = application_.batches();
    if (batches == nullptr || !combines_) return Status::ok();
    auto combined = std::make_unique<TupleTable>(application_, kNoLimit);
    // Keys with several values, which wait for the next call of combine(), and the values of each.
    std::vector<std::vector<std::string_view>> values;
    std::vector<std::string_view> keys;
    std::size_t bytes = 0, before = 0, after = 0;
    const auto flush = [&]() -> Status {
      std::vector<KeyedValues> together;
      for (std::size_t i = 0; i < keys.size(); ++i) together.push_back({keys[i], values[i]});
      Status added;
      FJORD_TRY(batches->combine(together, [&](std::size_t key, std::string_view value) {
        ++after;
        if (added) added = combined->add(keys[key], value);
      }));
      keys.clear();
      values.clear();
      bytes = 0;
      return added;
    };
    std::vector<std::string_view> of_key;
    for (const TupleTable::Key& key : table_->sorted_keys(1)) {
      table_->sorted_values(key, of_key);
      if (of_key.size() == 1) {
        FJORD_TRY(combined->add(key.key, of_key[0]));
        continue;
      }
      before += of_key.size();
      for (const std::string_view value : of_key) bytes += value.size();
      bytes += key.key.size();
      keys.push_back(key.key);
      values.push_back(of_key);
      if (bytes >= kCombineTogether) FJORD_TRY(flush());
    }
    if (!keys.empty()) FJORD_TRY(flush());
    // If combine() returned as many values as it was given, the application does not combine, and is not asked again.
    combines_ = before == 0 || after < before;
    table_ = std::move(combined);
    combine_from_ = combines_ ? std::max(combine_from_min_, 2 * table_->bytes()) : kNoLimit;
    return Status::ok();
  }

  Application& application_;
  std::function<bool()> is_cancelled_;
  std::unique_ptr<TupleTable> table_;
  std::uint64_t tuples_ = 0;
  std::string emitted_;  ///< Tuples that map() emitted for the current document.
  std::uint64_t emitted_tuples_ = 0;
  ColumnsBuilder* recorder_ = nullptr;
  ValueExpression::Scratch scratch_;
  std::vector<ScalarView> values_;  ///< Values of the current row of columns.
  bool combines_ = true;            ///< False once combine() has proved to do nothing.
  const std::size_t combine_from_min_;
  std::size_t combine_from_ = combine_from_min_;
};

}  // namespace

std::uint32_t destination_of(std::string_view key, std::uint32_t destinations) {
  return static_cast<std::uint32_t>(hash64(key) % destinations);
}

Status RowBudget::take(const JobRows& rows, std::size_t& counted) {
  if (stop_.stop_requested()) return {StatusCode::Cancelled, "the job does not wait for the rows any more"};
  const std::size_t bytes = rows.bytes_while_sorted() - counted;
  counted += bytes;
  if (bytes_.fetch_add(bytes) + bytes <= bytes_max_) return Status::ok();
  return Status(StatusCode::TooLarge,
                "the results need more than " + std::to_string(bytes_max_) +
                    " bytes; the limit is the setting mapreduce.job_memory_bytes",
                {.limit = std::to_string(bytes_max_), .setting = "mapreduce.job_memory_bytes"});
}

Status Accumulator::map_columns(const FoundColumns&) {
  return Status(StatusCode::NotImplemented, "this accumulator takes no columns");
}

Result<MappedDocuments> Accumulator::map_many(std::span<const DocumentView>) {
  return Status(StatusCode::NotImplemented, "this accumulator takes documents one by one");
}

Result<MappedDocuments> Accumulator::map_many_alone(std::span<const DocumentView> documents) {
  return map_many(documents);
}

Status Accumulator::merge(std::span<const HashedTuple> tuples) {
  for (const HashedTuple& tuple : tuples) FJORD_TRY(merge(tuple.key, tuple.value));
  return Status::ok();
}

Status Accumulator::reduce(Application& application, RowBudget& budget, JobRows& rows) {
  std::size_t counted = 0;
  const auto source = drain(0);
  KeyReducer reducer(application, *source);
  std::string key, value;
  for (;;) {
    FJORD_TRY_ASSIGN(const bool more, reducer.next(key, value));
    if (!more) return Status::ok();
    FJORD_TRY_ASSIGN(const std::string text, application.key_text(key));
    const std::string shown = printable_key(text);
    rows.add(shown, value);
    FJORD_TRY(budget.take(rows, counted));
  }
}

std::unique_ptr<Accumulator> make_accumulator(Application& application, std::function<bool()> cancelled,
                                              std::size_t combine_from) {
  auto own = application.make_accumulator();
  if (own != nullptr) return own;
  return std::make_unique<TableAccumulator>(application, std::move(cancelled), combine_from);
}

std::unique_ptr<Accumulator> Application::make_accumulator() { return nullptr; }

}  // namespace fjord::mapreduce
