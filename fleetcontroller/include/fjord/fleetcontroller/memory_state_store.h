#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "fjord/fleetcontroller/cluster_state_store.h"

namespace fjord::fleetcontroller {

class MemoryStateStore;

/// What a coordination service keeps: records, sessions, the queue of candidates. For simulation and tests; it lasts as
/// long as the object, whatever happens to the controllers.
///
/// Threading: every thread. Lifetime: outlives its stores.
class MemoryStateEnsemble {
 public:
  struct Options {
    Duration session_timeout = seconds(2);
    /// Between a question and its answer.
    Duration latency = milliseconds(1);
  };

  /// `clock` decides which sessions are over.
  MemoryStateEnsemble(const Clock& clock, Options options) : clock_(clock), options_(options) {}
  explicit MemoryStateEnsemble(const Clock& clock) : MemoryStateEnsemble(clock, Options()) {}

  /// Faults, by the name under which a member takes part. Ends its session at once; it hears of it when it asks next.
  void end_session(const std::string& name);
  /// Nothing goes to or from that member until connect(); its session ends after its timeout.
  void disconnect(const std::string& name);
  void connect(const std::string& name);

  /// What is kept, and where its terms are.
  struct Records {
    std::map<std::string, StoredRecord, std::less<>> records;
    std::uint64_t term = 0;
  };
  /// Everything is forgotten, or as it was when it was copied. All sessions end.
  void lose_records() { set_records({}); }
  void set_records(Records records);
  Records copy_records() const;

  /// The newest term, and who has it (empty: nobody).
  Leadership leadership() const;
  /// How often anything was written.
  std::uint64_t writes() const;

 private:
  friend class MemoryStateStore;
  struct Session {
    std::uint64_t id = 0;
    std::string name;
    MonotonicTime heard;
  };
  std::uint64_t open_session(const std::string& name);
  void close_session(std::uint64_t id);
  /// False if the session is over. Also finds out which others are.
  bool touch(std::uint64_t id);
  bool is_connected(const std::string& name) const;
  bool leads(std::uint64_t id, std::uint64_t term) const;
  Leadership seen_by(std::uint64_t id) const;
  StoredRecord read(std::string_view record) const;
  Result<std::uint64_t> write(std::uint64_t id, std::uint64_t term, std::string_view record, std::uint64_t expected,
                              std::string content);
  void elect() FJORD_REQUIRES(mutex_);
  bool is_disconnected(const std::string& name) const FJORD_REQUIRES(mutex_);

  const Clock& clock_;
  const Options options_;
  mutable std::mutex mutex_;
  std::vector<Session> queue_ FJORD_GUARDED_BY(mutex_);  ///< The first leads.
  std::vector<std::string> disconnected_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t next_session_ FJORD_GUARDED_BY(mutex_) = 1;
  std::uint64_t leading_session_ FJORD_GUARDED_BY(mutex_) = 0;
  std::uint64_t term_ FJORD_GUARDED_BY(mutex_) = 0;
  std::uint64_t writes_ FJORD_GUARDED_BY(mutex_) = 0;
  std::map<std::string, StoredRecord, std::less<>> records_ FJORD_GUARDED_BY(mutex_);
};

/// One controller's part in an ensemble. A new one of the same name ends the session of the former: a process that has
/// started anew need not wait until it is forgotten.
class MemoryStateStore final : public ClusterStateStore {
 public:
  explicit MemoryStateStore(MemoryStateEnsemble& ensemble);
  ~MemoryStateStore() override;

  void campaign(const std::string& name, Executor& executor, OnLeadership on_change) override;
  void resign() override;
  void leave() override;
  void confirm(std::uint64_t term, OnConfirmed done) override;
  Duration session_timeout() const override;
  void read(std::string_view record, OnRead done) override;
  void write(std::uint64_t term, std::string_view record, std::uint64_t expected, std::string content,
             OnWritten done) override;

 private:
  struct Member;
  std::shared_ptr<Member> member_;
};

}  // namespace fjord::fleetcontroller
