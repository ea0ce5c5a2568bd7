#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fjord/client/connect.h"
#include "fjord/common/random.h"
#include "record.h"

namespace fjord::torture {

struct Options {
  std::uint64_t seed = 1;
  std::size_t clients = 3;
  std::size_t registers = 200;
  std::size_t writers = 10;
  std::size_t counters = 6;
  std::size_t raisers = 6;
  std::int64_t timeout_min_ms = 1000;
  std::int64_t timeout_max_ms = 20000;
  std::int64_t pause_max_ms = 10;
};

/// Threads that put, remove and read registers and raise counters until stop(), each through one of a few clients.
///
/// Threading: one thread.
/// Lifetime: `record` and `clients` outlive it.
class Workers {
 public:
  Workers(const Options& options, std::vector<AsyncClient*> clients, Record& record);
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Sets all counters to zero. Errors: that of the first failed operation.
  Status make_counters();
  void start();
  /// Ends the threads; returns when every operation has ended.
  void stop();
  /// Reads all registers and counters and passes the values to the record. Call it when all faults are over.
  void check();

 private:
  /// The state of one thread.
  struct Worker {
    std::size_t number;
    AsyncClient& client;
    Random random;
  };

  void run(std::size_t number, const std::function<void(Worker&)>& step);
  void write_or_read(Worker& worker);
  void raise(Worker& worker);
  OperationOutcome execute(Worker& worker, rpc::Operation operation, std::string_view what);
  Duration draw_timeout(Worker& worker) const;

  const Options options_;
  const std::vector<AsyncClient*> clients_;
  Record& record_;
  Random random_;
  std::atomic<std::uint64_t> next_value_ = 1;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fjord::torture
