#include "key_reducer.h"

#include <fmt/format.h>
#include <limits>

#include "fjord/common/check.h"
#include "fjord/document/json.h"
#include "fjord/mapreduce/one_result.h"
#include "keys.h"

namespace fjord::mapreduce {
namespace {

/// Maximum number of keys, and of bytes (approximately), in one call of BatchFunctions::reduce().
constexpr std::size_t kReduceKeys = 1000;
constexpr std::size_t kReduceBytes = std::size_t{512} << 10;

/// Copies of tuples. They stay valid when their source goes on to the next tuple.
class KeptTuples {
 public:
  void add(const Tuple& tuple) {
    lengths_.push_back({tuple.key.size(), {}});
    bytes_ += tuple.key;
    for (const std::string_view value : tuple.values) {
      lengths_.back().second.push_back(value.size());
      bytes_ += value;
    }
  }
  bool is_full() const { return lengths_.size() >= kReduceKeys || bytes_.size() >= kReduceBytes; }
  /// Returns all tuples; nothing may be added afterwards.
  const std::vector<KeyedValues>& all() {
    std::string_view rest = bytes_;
    const auto take = [&rest](std::size_t length) {
      const std::string_view taken = rest.substr(0, length);
      rest.remove_prefix(length);
      return taken;
    };
    values_.reserve(lengths_.size());
    for (const auto& [key_length, value_lengths] : lengths_) {
      const std::string_view key = take(key_length);
      std::vector<std::string_view>& values = values_.emplace_back();
      for (const std::size_t length : value_lengths) values.push_back(take(length));
      all_.push_back({key, values});
    }
    return all_;
  }

 private:
  std::string bytes_;
  std::vector<std::pair<std::size_t, std::vector<std::size_t>>> lengths_;  ///< Lengths of each key and of its values.
  std::vector<std::vector<std::string_view>> values_;
  std::vector<KeyedValues> all_;
};

Status no_result(std::string_view key, std::string_view why) {
  return Status(StatusCode::InvalidArgument,
                fmt::format("the result of the application for the key {}: {}", printable_key(key), why));
}

}  // namespace

Result<std::optional<std::string>> reduce_key(Application& application, const Tuple& tuple) {
  OneResult result;
  if (const Status status = application.reduce(tuple.key, tuple.values, result); !status) {
    return status.with_context("key " + printable_key(tuple.key));
  }
  if (result.count == 0) return std::optional<std::string>();
  if (result.count > 1) return no_result(tuple.key, "there is more than one");
  // A JSON writer made the rows of aggregations, so they need no check.
  if (application.is_aggregation()) return std::optional<std::string>(std::move(result.value));
  if (const Status json = check_json(result.value); !json) return no_result(tuple.key, json.message());
  return std::optional<std::string>(std::move(result.value));
}

Result<bool> KeyReducer::next(std::string& key, std::string& json) {
  while (ready_.empty() && !is_over_) {
    if (batches_ != nullptr) {
      FJORD_TRY(reduce_many());
      continue;
    }
    FJORD_TRY_ASSIGN(const bool more, source_.next(tuple_));
    is_over_ = !more;
    if (is_over_) break;
    FJORD_TRY_ASSIGN(auto result, reduce_key(application_, tuple_));
    if (!result) continue;
    key = tuple_.key;
    json = std::move(*result);
    return true;
  }
  if (ready_.empty()) return false;
  key = std::move(ready_.front().first);
  json = std::move(ready_.front().second);
  ready_.pop_front();
  return true;
}

Status KeyReducer::reduce_many() {
  KeptTuples kept;
  while (!kept.is_full() && !is_over_) {
    FJORD_TRY_ASSIGN(const bool more, source_.next(tuple_));
    is_over_ = !more;
    if (more) kept.add(tuple_);
  }
  const std::vector<KeyedValues>& keys = kept.all();
  if (keys.empty()) return Status::ok();
  FJORD_TRY_ASSIGN(auto results, batches_->reduce(keys));
  FJORD_CHECK(results.size() == keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!results[i]) continue;
    if (const Status json = check_json(*results[i]); !json) return no_result(keys[i].key, json.message());
    ready_.emplace_back(keys[i].key, std::move(*results[i]));
  }
  return Status::ok();
}

}  // namespace fjord::mapreduce
