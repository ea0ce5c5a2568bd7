#include "workers.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <utility>

#include "fjord/client/sync_client.h"

namespace fjord::torture {
namespace {

constexpr unsigned kSettleTriesMax = 6;

/// Returns the text that is stored beside the number. Another text would show a torn or mixed document.
std::string text_of(std::string_view id, std::uint64_t value) {
  const std::string part = fmt::format("{}={} ", id, value);
  std::string text;
  for (std::uint64_t i = 0; i <= value % 40; ++i) text += part;
  return text;
}

std::string fields_of(std::string_view id, std::uint64_t value) {
  return fmt::format(R"({{"n": {}, "text": "{}"}})", value, text_of(id, value));
}

/// The number in {"put": id, "fields": {...}}, and whether the text does not match it.
struct Parsed {
  std::uint64_t value = 0;
  bool torn = false;
};
std::optional<Parsed> parse(const std::string& id, const std::string& json, bool with_text) {
  rapidjson::Document document;
  document.Parse(json.c_str());
  if (document.HasParseError() || !document.IsObject() || !document.HasMember("fields")) return std::nullopt;
  const auto& fields = document["fields"];
  if (!fields.IsObject() || !fields.HasMember("n") || !fields["n"].IsUint64()) return std::nullopt;
  Parsed parsed{fields["n"].GetUint64(), false};
  if (with_text) {
    parsed.torn = !fields.HasMember("text") || !fields["text"].IsString() ||
                  fields["text"].GetString() != text_of(id, parsed.value);
  }
  return parsed;
}

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Workers::Workers(const Options& options, std::vector<AsyncClient*> clients, Record& record)
    : options_(options), clients_(std::move(clients)), record_(record), random_(options.seed) {}

Status Workers::make_counters() {
  for (std::size_t counter = 0; counter < options_.counters; ++counter) {
    const OperationOutcome outcome =
        SyncClient(*clients_[0], seconds(60)).put_json(counter_id(counter), R"({"n": 0, "text": ""})");
    if (!outcome.is_ok()) return outcome.status;
  }
  return Status::ok();
}

void Workers::start() {
  stopping_ = false;
  for (std::size_t number = 0; number < options_.writers; ++number) {
    threads_.emplace_back([this, number] { run(number, [this](Worker& worker) { write_or_read(worker); }); });
  }
  for (std::size_t number = 0; number < options_.raisers; ++number) {
    threads_.emplace_back([this, number] { run(number, [this](Worker& worker) { raise(worker); }); });
  }
}

void Workers::stop() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::run(std::size_t number, const std::function<void(Worker&)>& step) {
  // The seed differs between threads and starts. Chance decides in any case which operation meets which fault.
  Worker worker{number, *clients_[number % clients_.size()],
                Random(options_.seed * 1000003 + next_value_.fetch_add(1) * 101 + number)};
  while (!stopping_) {
    step(worker);
    if (options_.pause_max_ms == 0) continue;
    const auto pause_us = worker.random.below(static_cast<std::uint64_t>(options_.pause_max_ms) * 1000);
    std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
  }
}

Duration Workers::draw_timeout(Worker& worker) const {
  const auto range = static_cast<std::uint64_t>(options_.timeout_max_ms - options_.timeout_min_ms + 1);
  return milliseconds(options_.timeout_min_ms + static_cast<std::int64_t>(worker.random.below(range)));
}

OperationOutcome Workers::execute(Worker& worker, rpc::Operation operation, std::string_view what) {
  const Duration timeout = draw_timeout(worker);
  const std::string id = operation.id;
  const std::int64_t start = now_us();
  OperationOutcome outcome = SyncClient(worker.client, timeout).execute(std::move(operation));
  record_.log(fmt::format("{} {} {} {} {} {} {} {}", start, now_us(), id, what, to_string(outcome.outcome),
                          to_string(outcome.status.code()), outcome.attempts, outcome.timestamp_us));
  return outcome;
}

void Workers::write_or_read(Worker& worker) {
  // Register n belongs to writer n % writers.
  const std::size_t mine = (options_.registers - 1 - worker.number) / options_.writers + 1;
  const std::size_t index = worker.number + worker.random.below(mine) * options_.writers;
  const std::string id = register_id(index);
  const double draw = worker.random.uniform();
  if (draw < 0.55) {
    const std::uint64_t value = next_value_.fetch_add(1);
    record_.written(index, value,
                    execute(worker, put_json_operation(id, fields_of(id, value)), fmt::format("put {}", value)));
  } else if (draw < 0.7) {
    record_.written(index, Value(), execute(worker, remove_operation(id), "remove"));
  } else {
    const OperationOutcome outcome = execute(worker, get_json_operation(id), "get");
    if (outcome.status.code() == StatusCode::NotFound) {
      record_.read(index, Value(), "read meanwhile");
    } else if (outcome.is_ok()) {
      const auto parsed = parse(id, outcome.json, true);
      if (!parsed || parsed->torn) return record_.violation(fmt::format("{} is torn: {}", id, outcome.json));
      record_.read(index, parsed->value, "read meanwhile");
    }
  }
}

void Workers::raise(Worker& worker) {
  const std::size_t counter = worker.random.below(options_.counters);
  const std::string id = counter_id(counter);
  const OperationOutcome got = execute(worker, get_json_operation(id), "get");
  if (got.status.code() == StatusCode::NotFound) return record_.violation(fmt::format("{} is gone", id));
  if (!got.is_ok()) return;
  const auto parsed = parse(id, got.json, false);
  if (!parsed) return record_.violation(fmt::format("{} is torn: {}", id, got.json));
  const std::uint64_t from = parsed->value;
  record_.counter_read(counter, from);
  rpc::Operation operation = worker.random.chance(0.5)
                                 ? put_json_operation(id, fmt::format(R"({{"n": {}, "text": ""}})", from + 1))
                                 : update_json_operation(id, R"({"n": {"increment": 1}})");
  operation.condition = fmt::format("item.n == {}", from);
  rpc::Operation again = operation;
  OperationOutcome outcome = execute(worker, std::move(operation), fmt::format("raise {}", from));
  // Half of the operations in doubt are retried with their idempotency key, the others stay in doubt.
  if (worker.random.chance(0.5)) {
    for (unsigned tries = 0; tries < kSettleTriesMax && outcome.outcome == Outcome::InDoubt; ++tries) {
      again.token = outcome.token;
      const OperationOutcome settled = execute(worker, again, fmt::format("settle {}", from));
      // An attempt that never reached a replica says nothing about earlier attempts.
      const bool known = settled.outcome == Outcome::Applied || settled.status.code() == StatusCode::TestAndSetFailed;
      if (known) outcome = settled;
    }
  }
  record_.raised(counter, from, outcome);
}

void Workers::check() {
  SyncClient client(*clients_[0], seconds(60));
  for (std::size_t index = 0; index < options_.registers; ++index) {
    const std::string id = register_id(index);
    const OperationOutcome outcome = client.get_json(id);
    if (outcome.status.code() == StatusCode::NotFound) {
      record_.read(index, Value(), "at the end");
      continue;
    }
    const auto parsed = outcome.is_ok() ? parse(id, outcome.json, true) : std::nullopt;
    if (!parsed || parsed->torn) {
      record_.violation(fmt::format("{} cannot be read: {} {}", id, outcome.status.to_string(), outcome.json));
    } else {
      record_.read(index, parsed->value, "at the end");
    }
  }
  for (std::size_t counter = 0; counter < options_.counters; ++counter) {
    const std::string id = counter_id(counter);
    const OperationOutcome outcome = client.get_json(id);
    const auto parsed = outcome.is_ok() ? parse(id, outcome.json, false) : std::nullopt;
    if (!parsed) {
      record_.violation(fmt::format("{} cannot be read: {} {}", id, outcome.status.to_string(), outcome.json));
    } else {
      record_.counter_final(counter, parsed->value);
    }
  }
}

}  // namespace fjord::torture
