#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "fjord/mapreduce/application.h"
#include "tuple.h"

namespace fjord::mapreduce {

/// Returns the result of one key, a JSON value, or nullopt if it has none. Errors: those of JobFunctions::reduce(),
/// with the key; InvalidArgument if the application emits more than one result, or one that check_json() refuses.
Result<std::optional<std::string>> reduce_key(Application& application, const Tuple& tuple);

/// Reduces the keys of a source, one by one, or in batches if the application has BatchFunctions. Lifetime:
/// `application` and `source` outlive it.
class KeyReducer {
 public:
  KeyReducer(Application& application, TupleSource& source)
      : application_(application), source_(source), batches_(application.batches()) {}

  /// Finds the next key that has a result and stores both; returns false at the end. Errors: those of the source and of
  /// reduce_key().
  Result<bool> next(std::string& key, std::string& json);

 private:
  Status reduce_many();

  Application& application_;
  TupleSource& source_;
  BatchFunctions* batches_;
  Tuple tuple_;
  std::deque<std::pair<std::string, std::string>> ready_;  ///< Keys and results that reduce_many() made.
  bool is_over_ = false;
};

}  // namespace fjord::mapreduce
