#pragma once

#include <fmt/format.h>
#include <functional>
#include <string>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/document/document_format.h"
#include "fjord/sim/history.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// Schema of the documents that the workload puts.
inline constexpr const char* kOperationsSchema = R"(document item {
  field value type string { header }
  field filler type string { body }
}
)";

/// Clients that work on a few documents until they are told to stop.
class OperationsWorkload {
 public:
  OperationsWorkload(SimCluster& cluster, unsigned clients, unsigned keys) : cluster_(cluster), keys_(keys) {
    for (unsigned i = 0; i < clients; ++i) clients_.push_back(&cluster.add_client());
  }

  void start() {
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      for (int lane = 0; lane < 3; ++lane) next(i);
    }
  }
  void stop() { stopped_ = true; }
  bool idle() const { return under_way_ == 0; }
  const History& history() const { return history_; }

  /// Reads every document once.
  bool read_all() {
    std::size_t left = keys_;
    bool ok = true;
    for (unsigned key = 0; key < keys_; ++key) {
      read(*clients_.front(), id(key), [&](Outcome outcome) {
        ok = ok && outcome == Outcome::Applied;
        --left;
      });
    }
    return cluster_.run_until([&] { return left == 0; }, seconds(60)) && ok;
  }

 private:
  static std::string id(unsigned key) { return fmt::format("id:sim:item::{}", key); }

  void next(std::size_t client) {
    if (stopped_) return;
    Random& random = cluster_.random();
    std::string key = id(static_cast<unsigned>(random.below(keys_)));
    std::uint64_t dice = random.below(10);
    ++under_way_;
    auto again = [this, client](Outcome) {
      --under_way_;
      cluster_.scheduler().outside().post_after(Duration(cluster_.random().below(100'000)),
                                                [this, client] { next(client); });
    };
    if (dice < 4) {
      read(*clients_[client], key, again);
    } else {
      write(*clients_[client], key, dice < 8, again);
    }
  }

  void write(AsyncClient& client, const std::string& key, bool put, std::function<void(Outcome)> done) {
    MonotonicTime now = cluster_.scheduler().clock().now();
    Duration timeout = seconds(2 + static_cast<std::int64_t>(cluster_.random().below(20)));
    std::string value = put ? fmt::format("v{}", ++values_) : "";
    std::size_t event = history_.begin(put ? History::Kind::Put : History::Kind::Remove, key, value, now);
    auto finish = [this, event, done](OperationOutcome outcome) {
      history_.end(event, outcome.outcome, "", cluster_.scheduler().clock().now(), outcome.status.to_string());
      done(outcome.outcome);
    };
    if (put) {
      std::string filler(cluster_.random().below(400), 'x');
      client.put_json(key, fmt::format(R"({{"value": "{}", "filler": "{}"}})", value, filler), timeout, finish);
    } else {
      client.remove(key, timeout, finish);
    }
  }

  void read(AsyncClient& client, const std::string& key, std::function<void(Outcome)> done) {
    std::size_t event = history_.begin(History::Kind::Get, key, "", cluster_.scheduler().clock().now());
    client.get(key, seconds(20), [this, event, key, done, &client](OperationOutcome got) {
      Outcome outcome = got.outcome;
      std::string value;
      if (got.is_ok()) {
        Result<DocumentView> view = DocumentView::open(*client.snapshot()->types(), got.header, got.body);
        value = view && view->id() == key ? std::string(view->field("value")->as_string_view()) : "malformed";
        outcome = Outcome::Applied;
      } else if (got.status.code() == StatusCode::NotFound) {
        outcome = Outcome::Applied;
      }
      history_.end(event, outcome, value, cluster_.scheduler().clock().now(), got.status.to_string());
      done(outcome);
    });
  }

  SimCluster& cluster_;
  unsigned keys_;
  std::vector<AsyncClient*> clients_;
  History history_;
  std::uint64_t values_ = 0;
  std::size_t under_way_ = 0;
  bool stopped_ = false;
};

/// Returns the document and the error of the last read that failed.
inline std::string last_unread(const History& history) {
  for (auto event = history.events().rbegin(); event != history.events().rend(); ++event) {
    if (event->kind == History::Kind::Get && event->outcome != Outcome::Applied) return event->key + ", " + event->note;
  }
  return "it was never answered";
}

}  // namespace fjord::sim
