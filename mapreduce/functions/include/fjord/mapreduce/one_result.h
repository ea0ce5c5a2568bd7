#pragma once

#include <string>
#include <utility>

#include "fjord/mapreduce/job_functions.h"

namespace fjord::mapreduce {

/// Keeps the last result of a key, and counts the results: a caller of reduce() refuses more than one.
class OneResult final : public ResultEmitter {
 public:
  void emit(std::string json) override {
    ++count;
    value = std::move(json);
  }
  int count = 0;
  std::string value;
};

}  // namespace fjord::mapreduce
