#pragma once

#include <fmt/format.h>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/document/document_format.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// Schema of the documents that the workload changes.
inline constexpr const char* kUpdatesSchema = R"(document tally {
  field count type long { header }
  field last type string { header }
  field members type array<string> { body }
}
)";

/// The operations of clients on one document, to check its final content against.
struct Ledger {
  std::uint64_t applied = 0;
  std::uint64_t begun = 0;
  std::uint64_t refused = 0;
  /// Operations in doubt between whose first attempt and answer a replica was damaged. The key of the first attempt may
  /// be lost, so each may have been applied once more than its answer says (docs/design/0002, "Known limits").
  std::uint64_t unsure = 0;
  // Appends and test-and-sets add an element to the document's field `members`.
  std::map<std::string, std::string> followed;   ///< Element that a test-and-set added, by the version that it was
                                                 ///< based on.
  std::set<std::string> added;                   ///< Elements that were added by operations that were applied.
  std::map<std::string, std::string> not_added;  ///< Elements of operations that were certainly not applied, with the
                                                 ///< error.
};

/// The content of a document as a get returned it.
struct Content {
  bool exists = false;
  std::int64_t count = 0;
  std::string last;
  std::vector<std::string> members;
};

inline Content content_of(const AsyncClient& client, const OperationOutcome& got) {
  Content content;
  if (!got.is_ok()) return content;  // The get failed; the client may not even have cluster information yet.
  Result<DocumentView> view = DocumentView::open(*client.snapshot()->types(), got.header, got.body);
  if (!view) return content;
  content.exists = true;
  if (std::optional<FieldSlice> count = view->field("count")) content.count = count->as_int64();
  if (std::optional<FieldSlice> last = view->field("last")) content.last = last->as_string_view();
  if (std::optional<FieldSlice> members = view->field("members")) {
    for (ElementCursor at(*members); at.next();) content.members.emplace_back(at.value().as_string_view());
  }
  return content;
}

/// Clients that increment counters and add to sets, by test-and-sets or updates. An operation in doubt is executed
/// again with its idempotency key, by any client, until its outcome is known.
class UpdatesWorkload {
 public:
  UpdatesWorkload(SimCluster& cluster, std::vector<AsyncClient*> clients, unsigned keys)
      : cluster_(cluster), clients_(std::move(clients)), ledgers_(keys) {}
  /// Restricts the workload to documents that test-and-sets change.
  void only_test_and_set() { only_test_and_set_ = true; }
  /// `told` is called with the outcome of each operation, and whether it is a test-and-set.
  void on_ended(std::function<void(Outcome, bool is_test_and_set)> told) { told_ = std::move(told); }
  void set_pause_max(Duration pause) { pause_max_ = pause; }

  void start() {
    for (int lane = 0; lane < 9; ++lane) next();
  }
  void stop() { stopped_ = true; }
  bool idle() const { return under_way_ == 0; }
  std::uint64_t begun() const { return begun_; }
  std::uint64_t applied() const { return applied_; }
  std::uint64_t settled() const { return settled_; }
  std::uint64_t refused() const { return refused_; }
  const std::string& failure() const { return failure_; }
  std::size_t clients() const { return clients_.size(); }

  /// Reads every document and compares it with the operations on it. Returns an empty string if all agree.
  std::string check_all() {
    std::size_t left = ledgers_.size();
    for (unsigned key = 0; key < ledgers_.size(); ++key) {
      AsyncClient& client = *clients_.front();
      client.get(id(key), seconds(30), [this, key, &left, &client](OperationOutcome got) {
        --left;
        if (!got.is_ok() && got.status.code() != StatusCode::NotFound) {
          fail("I16: {} could not be read when all faults were over: {}", id(key), got.status.to_string());
        } else {
          check_final(key, content_of(client, got));
        }
      });
    }
    if (!cluster_.run_until([&] { return left == 0; }, seconds(60))) fail("I16: a read never ended");
    return failure_;
  }

 private:
  enum class Kind { Increment, Append, TestAndSet };
  /// How an operation ended.
  struct End {
    bool is_applied = false;
    bool is_unsure = false;  ///< Ledger::unsure.
    Status status;
  };
  using Done = std::function<void(const End& end)>;

  static std::string id(unsigned key) { return fmt::format("id:sim:tally::{}", key); }
  /// The first third of the documents has counters, the second gets appends, the rest test-and-sets.
  Kind kind_of(unsigned key) const {
    return only_test_and_set_ ? Kind::TestAndSet : static_cast<Kind>(key * 3 / ledgers_.size());
  }
  AsyncClient& any_client() { return *clients_[cluster_.random().below(clients_.size())]; }

  template <typename... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (failure_.empty()) failure_ = fmt::format(format, std::forward<Args>(args)...);
  }

  void next() {
    if (stopped_) return;
    const auto key = static_cast<unsigned>(cluster_.random().below(ledgers_.size()));
    ++under_way_;
    if (cluster_.random().chance(0.2)) {
      look(key);
    } else if (kind_of(key) == Kind::TestAndSet) {
      test_and_set(key);
    } else {
      update(key);
    }
  }
  void over() {
    --under_way_;
    cluster_.scheduler().outside().post_after(
        Duration(cluster_.random().below(static_cast<std::uint64_t>(pause_max_.count()))), [this] { next(); });
  }
  void later(std::function<void()> task) {
    cluster_.scheduler().outside().post_after(Duration(cluster_.random().below(200'000)), std::move(task));
  }

  /// Reads a document: it has at least the changes acknowledged before the read began, and at most those begun before
  /// it ended.
  void look(unsigned key) {
    Ledger& ledger = ledgers_[key];
    const std::uint64_t at_least = ledger.applied;
    AsyncClient& client = any_client();
    client.get(id(key), seconds(20), [this, key, at_least, &client](OperationOutcome got) {
      const bool answered = got.is_ok() || got.status.code() == StatusCode::NotFound;
      const Content content = content_of(client, got);
      const std::uint64_t seen =
          kind_of(key) == Kind::Append ? content.members.size() : static_cast<std::uint64_t>(content.count);
      if (answered && (seen < at_least || seen > ledgers_[key].begun + ledgers_[key].unsure)) {
        fail("I1: {} was read as {}; {} changes were acknowledged before, {} begun", id(key), seen, at_least,
             ledgers_[key].begun);
      }
      over();
    });
  }

  void update(unsigned key) {
    const std::string member = fmt::format("m{}", ++members_);
    rpc::Operation operation =
        kind_of(key) == Kind::Increment
            ? update_json_operation(id(key), R"({"count": {"increment": 1}})")
            : update_json_operation(id(key), fmt::format(R"({{"members": {{"add": ["{}"]}}}})", member));
    operation.create = true;
    execute(key, std::move(operation), [this, key, member](const End& end) {
      note(ledgers_[key], end, member);
      over();
    });
  }

  /// Reads the set, adds a member, and puts the set back if no other client changed it meanwhile.
  void test_and_set(unsigned key) {
    AsyncClient& client = any_client();
    client.get(id(key), seconds(20), [this, key, &client](OperationOutcome got) {
      if (!got.is_ok() && got.status.code() != StatusCode::NotFound) return over();
      const Content content = content_of(client, got);
      const std::string member = fmt::format("m{}", ++members_);
      std::string members;
      for (const std::string& old : content.members) members += fmt::format(R"("{}", )", old);
      rpc::Operation operation =
          put_json_operation(id(key), fmt::format(R"({{"count": {}, "last": "{}", "members": [{}"{}"]}})",
                                                  content.count + 1, member, members, member));
      if (cluster_.random().chance(0.5)) {
        operation.required_version = content.exists ? got.timestamp_us : 0;
      } else {
        // The count would not identify the version: the version read may have been in doubt and be gone, while another
        // version has the same count.
        operation.condition = fmt::format(R"(tally.last == "{}")", content.last);
        operation.create = !content.exists;
      }
      execute(key, std::move(operation), [this, key, member, version = content.last](const End& end) {
        Ledger& ledger = ledgers_[key];
        note(ledger, end, member);
        const auto [first, is_first] =
            end.is_applied ? ledger.followed.try_emplace(version, member) : std::pair(ledger.followed.end(), true);
        if (!is_first) {
          fail("I5: two test-and-sets of {} on version '{}': {} and {}", id(key), version, first->second, member);
        }
        over();
      });
    });
  }

  static void note(Ledger& ledger, const End& end, const std::string& member) {
    if (end.is_applied) {
      ledger.added.insert(member);
    } else if (!end.is_unsure) {
      ledger.not_added.emplace(member, end.status.to_string());
    }
  }

  /// Executes the operation until it is known whether it was applied.
  void execute(unsigned key, rpc::Operation operation, Done done) {
    ++begun_;
    ++ledgers_[key].begun;
    attempt(key, std::move(operation), cluster_.damages(), std::move(done));
  }
  /// `damages`: SimCluster::damages() at the first attempt.
  void attempt(unsigned key, rpc::Operation operation, std::uint64_t damages, Done done) {
    const Duration timeout = seconds(1 + static_cast<std::int64_t>(cluster_.random().below(8)));
    rpc::Operation copy = operation;
    any_client().execute(
        std::move(copy), timeout,
        [this, key, damages, operation = std::move(operation),
         done = std::move(done)](OperationOutcome outcome) mutable {
          if (told_) told_(outcome.outcome, kind_of(key) == Kind::TestAndSet);
          if (outcome.status.code() == StatusCode::TestAndSetFailed && operation.required_version &&
              *operation.required_version == outcome.version_us) {
            fail("I5: {} is refused for its version, {}, which is the one required", id(key), outcome.version_us);
          }
          // An operation in doubt is settled only by an answer to it. A transient error of this attempt says nothing
          // about earlier attempts.
          const bool is_doubted = !operation.token.empty();
          const StatusCode code = outcome.status.code();
          const bool says_nothing = is_transient(code) || code == StatusCode::NoSpace;
          if (outcome.outcome == Outcome::InDoubt || (is_doubted && says_nothing)) {
            ++settled_;
            operation.token = outcome.token;
            later([this, key, damages, operation = std::move(operation), done = std::move(done)]() mutable {
              attempt(key, std::move(operation), damages, std::move(done));
            });
            return;
          }
          const bool applied = outcome.outcome == Outcome::Applied;
          ++(applied ? applied_ : refused_);
          ledgers_[key].applied += applied ? 1 : 0;
          ledgers_[key].refused += applied ? 0 : 1;
          const bool is_unsure = is_doubted && cluster_.damages() != damages;
          ledgers_[key].unsure += is_unsure ? 1 : 0;
          done({applied, is_unsure, outcome.status});
        });
  }

  void check_final(unsigned key, const Content& content) {
    const Ledger& ledger = ledgers_[key];
    const std::string kind = kind_of(key) == Kind::Increment ? "increments"
                             : kind_of(key) == Kind::Append  ? "appends"
                                                             : "test-and-sets";
    const auto count = static_cast<std::uint64_t>(content.count);
    if (kind_of(key) != Kind::Append && (count < ledger.applied || count > ledger.applied + ledger.unsure)) {
      std::string refused;
      for (const auto& [member, why] : ledger.not_added) refused += fmt::format("; {}: {}", member, why);
      fail("I5: {} counts {} after {} {} that were applied, {} that were not, and {} that are unsure{}", id(key), count,
           ledger.applied, kind, ledger.refused, ledger.unsure, refused);
    }
    if (kind_of(key) == Kind::Increment) return;
    std::set<std::string> seen;
    for (const std::string& member : content.members) {
      if (!seen.insert(member).second) fail("I6: {} has {} twice", id(key), member);
      if (auto refused = ledger.not_added.find(member); refused != ledger.not_added.end()) {
        fail("I6: {} has {}, which was not applied: {}", id(key), member, refused->second);
      }
    }
    for (const std::string& member : ledger.added) {
      if (!seen.contains(member)) fail("I1: {} lacks {}, one of {} {}", id(key), member, ledger.applied, kind);
    }
  }

  SimCluster& cluster_;
  std::vector<AsyncClient*> clients_;
  std::vector<Ledger> ledgers_;
  std::function<void(Outcome, bool)> told_;
  Duration pause_max_ = milliseconds(100);
  bool only_test_and_set_ = false;
  std::string failure_;
  std::uint64_t members_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t applied_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t settled_ = 0;
  std::size_t under_way_ = 0;
  bool stopped_ = false;
};

}  // namespace fjord::sim
