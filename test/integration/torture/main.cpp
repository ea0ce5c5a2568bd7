// fjord-torture: clients that record the answers of a cluster while another program injects faults.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "fjord/client/connect.h"
#include "fjord/common/fatal_signals.h"
#include "record.h"
#include "workers.h"

namespace {

using namespace fjord;
using namespace fjord::torture;

int fail(std::string_view text) {
  fmt::print(stderr, "fjord-torture: {}\n", text);
  return 1;
}

/// Writes a line for each register: its id and its possible values.
bool write_possible(const Record& record, std::size_t registers, const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  if (!file) return false;
  for (std::size_t index = 0; index < registers; ++index) {
    fmt::print(file.get(), "{}", register_id(index));
    for (const Value& value : record.possible(index)) fmt::print(file.get(), " {}", to_text(value));
    fmt::print(file.get(), "\n");
  }
  return true;
}

void answer(std::string_view line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// Carries out commands from standard input until it ends.
int serve(Workers& workers, Record& record, const Options& options) {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line == "start") {
      workers.start();
      answer("{}");
    } else if (line == "stop") {
      workers.stop();
      answer(record.summary());
    } else if (line == "check") {
      workers.check();
      answer(record.summary());
    } else if (line == "status") {
      answer(record.summary());
    } else if (line.starts_with("possible ")) {
      if (!write_possible(record, options.registers, line.substr(9))) return fail("cannot write " + line.substr(9));
      answer("{}");
    } else {
      return fail("unknown command: " + line);
    }
  }
  return 0;
}

int run(const std::string& cluster, const Options& options, const std::string& log_path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> log(nullptr, &std::fclose);
  if (!log_path.empty()) {
    log.reset(std::fopen(log_path.c_str(), "w"));
    if (!log) return fail("cannot write " + log_path);
  }
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<AsyncClient*> clients;
  for (std::size_t i = 0; i < options.clients; ++i) {
    auto connection = open_connection(cluster);
    if (!connection) return fail(connection.error().to_string());
    clients.push_back(&(*connection)->client());
    connections.push_back(std::move(*connection));
  }
  Record record(options.registers, options.counters, log.get());
  Workers workers(options, std::move(clients), record);
  if (Status status = workers.make_counters(); !status) return fail(status.to_string());
  answer("ready");
  return serve(workers, record, options);
}

}  // namespace

int main(int argc, char** argv) {
  fjord::report_fatal_signals("fjord-torture");
  CLI::App app(
      "Puts, removes, reads and raises documents of type `item` and keeps the record of what was acknowledged. "
      "Commands on "
      "standard input, one line of JSON as the answer to each: start, stop, check, status, possible FILE.",
      "fjord-torture");
  std::string cluster;
  std::string log;
  Options options;
  app.add_option("--cluster", cluster, "Addresses of distributors")->envname("FJORD_CLUSTER")->required();
  app.add_option("--seed", options.seed, "Of the random choices")->capture_default_str();
  app.add_option("--clients", options.clients, "Clients with connections of their own")->capture_default_str();
  app.add_option("--registers", options.registers, "Documents with one writer each")->capture_default_str();
  app.add_option("--writers", options.writers, "Threads that write and read these; not more than registers");
  app.add_option("--counters", options.counters, "Documents that everybody raises by test-and-set")
      ->capture_default_str();
  app.add_option("--raisers", options.raisers, "Threads that do so")->capture_default_str();
  app.add_option("--timeout-min-ms", options.timeout_min_ms, "Deadlines of operations are drawn from here")
      ->capture_default_str();
  app.add_option("--timeout-max-ms", options.timeout_max_ms, "up to here")->capture_default_str();
  app.add_option("--pause-max-ms", options.pause_max_ms, "Of a thread after each operation")->capture_default_str();
  app.add_option("--log", log,
                 "File with a line for each operation: start and end in microseconds, id, what, outcome, "
                 "status, attempts, timestamp");
  CLI11_PARSE(app, argc, argv);
  return run(cluster, options, log);
}
