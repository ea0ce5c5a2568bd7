#include <fmt/format.h>
#include <map>

#include "fjord/common/hash.h"
#include "fjord/document/document.h"
#include "fjord/document/document_format.h"
#include "fjord/sim/history.h"
#include "workload.h"

namespace fjord::sim {
namespace {

/// Limit of theorem 5.6: one attempt without an answer, and its retry.
constexpr Duration kServedWithin = seconds(5);

/// Returns the body of a document as a function of its value, so that a mixture of two versions shows.
std::string filler_of(const std::string& value) {
  const std::uint64_t hash = hash64(value);
  return std::string(hash % 400, static_cast<char>('a' + hash % 26));
}

class RegisterWorkload final : public Workload {
 public:
  RegisterWorkload(WorkloadContext context, bool removes)
      : context_(std::move(context)),
        removes_(removes),
        keys_(3 + static_cast<unsigned>(context_.random().below(18))) {}

  std::string name() const override { return "register"; }
  void start() override {
    for (unsigned client = 0; client < context_.clients.size(); ++client) {
      for (int lane = 0; lane < 3; ++lane) next(client);
    }
  }
  void stop() override { stopped_ = true; }
  bool is_idle() const override { return under_way_ == 0; }

  std::string check() override {
    std::size_t left = keys_;
    for (unsigned key = 0; key < keys_; ++key) {
      read(0, id(key), [&left](const std::string&, Outcome) { --left; });
    }
    if (!context_.cluster.run_until([&] { return left == 0; }, seconds(60))) return "I16: a read never ended";
    for (std::size_t i = history_.events().size() - keys_; i < history_.events().size(); ++i) {
      const History::Event& event = history_.events()[i];
      if (event.outcome != Outcome::Applied) {
        return fmt::format("I16: {} could not be read when all faults were over: {}", event.key, event.note);
      }
    }
    if (!not_served_.empty()) return not_served_;
    std::string problem = history_.check();
    if (problem.empty() && context_.strict_reads) problem = history_.check_sessions();
    if (problem.empty() && context_.strict_reads) problem = history_.check_linearizable(&undecided_);
    return problem;
  }

  std::string summary() const override {
    return fmt::format(
        "register: {} operations on {} documents ({} in doubt, {} not applied, {} undecided, slowest of a calm run {} "
        "ms)",
        history_.events().size(), keys_, history_.count(Outcome::InDoubt), history_.count(Outcome::NotApplied),
        undecided_, slowest_.count() / 1000);
  }

 private:
  using Done = std::function<void(const std::string& value, Outcome outcome)>;

  static std::string id(unsigned key) { return fmt::format("id:sim:item::r{}", key); }
  /// Every second document has only writes with idempotency keys, which cannot be applied twice.
  static bool is_once(unsigned key) { return key % 2 == 0; }

  void next(unsigned client) {
    if (stopped_) return;
    const auto key = static_cast<unsigned>(context_.random().below(keys_));
    const std::uint64_t dice = context_.random().below(100);
    ++under_way_;
    const auto over = [this, client](const std::string&, Outcome) {
      --under_way_;
      context_.later([this, client] { next(client); });
    };
    // The last client only reads: it gets no newer cluster state as long as some node answers.
    if (dice < 45 || client + 1 == context_.clients.size()) {
      read(client, id(key), over);
    } else if (dice < 70) {
      write(client, key, rpc::OperationKind::Put, over);
    } else if (dice < 77 && removes_) {
      write(client, key, rpc::OperationKind::Remove, over);
    } else {
      read(client, id(key), [this, client, key, over](const std::string& value, Outcome outcome) {
        if (outcome != Outcome::Applied) return over(value, outcome);
        test_and_set(client, key, value, over);
      });
    }
  }

  rpc::Operation put_of(unsigned key, const std::string& value) {
    return put_json_operation(id(key), fmt::format(R"({{"value": "{}", "filler": "{}"}})", value, filler_of(value)));
  }

  void write(unsigned client, unsigned key, rpc::OperationKind kind, const Done& done) {
    const bool put = kind == rpc::OperationKind::Put;
    const std::string value = put ? fmt::format("v{}", ++values_) : "";
    rpc::Operation operation = put ? put_of(key, value) : remove_operation(id(key));
    if (is_once(key)) operation.token = fmt::format("t{}", ++tokens_);
    const std::size_t event = begin(put ? History::Kind::Put : History::Kind::Remove, client, key, value);
    history_.at(event).once = is_once(key);
    execute(client, event, std::move(operation), done);
  }

  void test_and_set(unsigned client, unsigned key, const std::string& expected, const Done& done) {
    const std::string value = fmt::format("v{}", ++values_);
    rpc::Operation operation = put_of(key, value);
    operation.condition = fmt::format(R"(item.value == "{}")", expected.empty() ? "none" : expected);
    operation.create = expected.empty();
    const std::size_t event = begin(History::Kind::TestAndSet, client, key, value);
    history_.at(event).expected = expected;
    history_.at(event).once = true;
    execute(client, event, std::move(operation), done);
  }

  std::size_t begin(History::Kind kind, unsigned client, unsigned key, const std::string& value) {
    const std::size_t event = history_.begin(kind, id(key), value, context_.now());
    history_.at(event).client = client;
    return event;
  }

  void execute(unsigned client, std::size_t event, rpc::Operation operation, const Done& done) {
    const Duration timeout = milliseconds(1000 + static_cast<std::int64_t>(context_.random().below(15'000)));
    context_.clients[client]->execute(
        std::move(operation), timeout, [this, event, done](const OperationOutcome& outcome) {
          history_.end(event, outcome.outcome, "", context_.now(), outcome.status.to_string());
          History::Event& e = history_.at(event);
          e.timestamp_us = outcome.outcome == Outcome::Applied ? outcome.timestamp_us : 0;
          e.refused = outcome.outcome == Outcome::NotApplied && outcome.status.code() == StatusCode::TestAndSetFailed;
          note_exposure(e);
          check_served(e);
          done(e.value, outcome.outcome);
        });
  }

  void note_exposure(const History::Event& e) {
    if (e.outcome == Outcome::Applied) context_.exposure.note(1);
    if (e.outcome == Outcome::Applied && e.kind == History::Kind::Remove) context_.exposure.note(4);
    if (e.kind == History::Kind::TestAndSet) context_.exposure.note(5);
    if (e.outcome != Outcome::Applied && !e.refused) context_.exposure.note(6);
  }

  /// Theorem 5.6: if all nodes are up, no operation takes long because data moves.
  void check_served(const History::Event& e) {
    if (context_.transfers == nullptr) return;
    const Duration took = e.end - e.begin;
    slowest_ = std::max<Duration>(slowest_, took);
    if (context_.transfers->is_transferring()) context_.exposure.note(theorem(6));
    if ((e.outcome == Outcome::Applied || e.refused) && took <= kServedWithin) return;
    if (not_served_.empty()) {
      not_served_ = fmt::format("T5.6: an operation on {} was not served while data moved: {} after {} ms", e.key,
                                e.note, took.count() / 1000);
    }
  }

  void read(unsigned client, const std::string& key, const Done& done) {
    const std::size_t event = history_.begin(History::Kind::Get, key, "", context_.now());
    history_.at(event).client = client;
    AsyncClient& from = *context_.clients[client];
    // The reader retries soon whatever happened to the last read; it may reach only some replicas.
    const bool is_reader = client + 1 == context_.clients.size() && context_.transfers == nullptr;
    from.get(key, is_reader ? milliseconds(700) : Duration(seconds(20)),
             [this, event, key, done, &from](const OperationOutcome& got) {
               Outcome outcome = got.outcome;
               std::string value;
               if (got.is_ok()) {
                 value = value_of(from, key, got);
                 outcome = Outcome::Applied;
               } else if (got.status.code() == StatusCode::NotFound) {
                 outcome = Outcome::Applied;
               }
               history_.end(event, outcome, value, context_.now(), got.status.to_string());
               history_.at(event).timestamp_us = got.is_ok() ? got.timestamp_us : 0;
               for (const unsigned invariant : {2U, 7U, 13U}) {
                 if (outcome == Outcome::Applied) context_.exposure.note(invariant);
               }
               check_served(history_.at(event));
               done(value, outcome);
             });
  }

  /// Returns the value, or "malformed" if the document is not as written.
  static std::string value_of(const AsyncClient& client, const std::string& key, const OperationOutcome& got) {
    Result<DocumentView> view = DocumentView::open(*client.snapshot()->types(), got.header, got.body);
    if (!view || view->id() != key) return "malformed";
    const std::optional<FieldSlice> value = view->field("value");
    const std::optional<FieldSlice> filler = view->field("filler");
    if (!value) return "malformed";
    std::string text(value->as_string_view());
    if (filler_of(text) != (filler ? filler->as_string_view() : std::string_view())) return "malformed";
    return text;
  }

  WorkloadContext context_;
  bool removes_;
  unsigned keys_;
  History history_;
  std::uint64_t values_ = 0;
  std::uint64_t tokens_ = 0;
  std::size_t under_way_ = 0;
  unsigned undecided_ = 0;
  Duration slowest_{0};  ///< The longest duration of an operation in a run without failures.
  std::string not_served_;
  bool stopped_ = false;
};

/// Puts new documents, and reads the latest ones at the same time.
class InsertWorkload final : public Workload {
 public:
  explicit InsertWorkload(WorkloadContext context) : context_(std::move(context)) {}

  std::string name() const override { return "insert"; }
  void start() override {
    for (unsigned client = 0; client < context_.clients.size(); ++client) next(client);
  }
  void stop() override { stopped_ = true; }
  bool is_idle() const override { return under_way_ == 0; }

  std::string check() override {
    if (!failure_.empty()) return failure_;
    std::size_t left = inserts_.size();
    for (unsigned i = 0; i < inserts_.size(); ++i) {
      context_.clients.front()->get(id(i), seconds(60), [this, i, &left](const OperationOutcome& got) {
        --left;
        compare(i, got, "when all faults were over");
      });
    }
    if (!context_.cluster.run_until([&] { return left == 0; }, seconds(90))) return "I16: a read never ended";
    return failure_;
  }

  std::string summary() const override { return fmt::format("insert: {} documents", inserts_.size()); }

 private:
  struct Insert {
    bool ended = false;
    Outcome outcome = Outcome::InDoubt;
    std::uint64_t timestamp_us = 0;
  };

  static std::string id(unsigned number) { return fmt::format("id:sim:item::i{}", number); }

  void next(unsigned client) {
    if (stopped_) return;
    ++under_way_;
    const auto number = static_cast<unsigned>(inserts_.size());
    inserts_.emplace_back();
    const std::string value = fmt::format("i{}", number);
    context_.clients[client]->put_json(id(number),
                                       fmt::format(R"({{"value": "{}", "filler": "{}"}})", value, filler_of(value)),
                                       milliseconds(1000 + static_cast<std::int64_t>(context_.random().below(15'000))),
                                       [this, number, client](const OperationOutcome& outcome) {
                                         Insert& insert = inserts_[number];
                                         insert.ended = true;
                                         insert.outcome = outcome.outcome;
                                         insert.timestamp_us = outcome.timestamp_us;
                                         context_.exposure.note(outcome.outcome == Outcome::Applied ? 1 : 6);
                                         look_back(client);
                                       });
  }

  /// Reads one of the latest documents.
  void look_back(unsigned client) {
    const std::size_t among = std::min<std::size_t>(inserts_.size(), 10);
    const auto number = static_cast<unsigned>(inserts_.size() - 1 - context_.random().below(among));
    const bool ended = inserts_[number].ended;
    context_.clients[client]->get(id(number), seconds(20), [this, number, client, ended](const OperationOutcome& got) {
      if (ended && (got.is_ok() || got.status.code() == StatusCode::NotFound)) compare(number, got, "meanwhile");
      --under_way_;
      context_.later([this, client] { next(client); });
    });
  }

  void compare(unsigned number, const OperationOutcome& got, const char* when) {
    const Insert& insert = inserts_[number];
    std::string problem;
    if (got.is_ok() && insert.outcome == Outcome::NotApplied) {
      problem = fmt::format("I6: {} is there, which was not applied", id(number));
    } else if (got.is_ok() && insert.outcome == Outcome::Applied && got.timestamp_us < insert.timestamp_us) {
      problem = fmt::format("I2: {} is of {} and was written at {}", id(number), got.timestamp_us, insert.timestamp_us);
    } else if (got.status.code() == StatusCode::NotFound && insert.outcome == Outcome::Applied) {
      problem = fmt::format("I1: {} is not there", id(number));
    } else if (!got.is_ok() && got.status.code() != StatusCode::NotFound) {
      problem = fmt::format("I16: {} could not be read: {}", id(number), got.status.to_string());
    }
    if (!problem.empty() && failure_.empty()) failure_ = problem + " " + when;
  }

  WorkloadContext context_;
  std::vector<Insert> inserts_;
  std::string failure_;
  std::size_t under_way_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Workload> make_register_workload(WorkloadContext context, bool removes) {
  return std::make_unique<RegisterWorkload>(std::move(context), removes);
}

std::unique_ptr<Workload> make_insert_workload(WorkloadContext context) {
  return std::make_unique<InsertWorkload>(std::move(context));
}

}  // namespace fjord::sim
