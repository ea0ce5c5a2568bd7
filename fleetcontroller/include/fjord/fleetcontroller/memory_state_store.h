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

/// The state of a coordination service in memory: records, sessions, the queue of candidates. For simulation and tests.
/// It survives the end of controllers, but not of this object.
///
/// Threading: any thread. Lifetime: outlives its stores.
class MemoryStateEnsemble {
 public:
  struct Options {
    Duration session_timeout = seconds(2);
    /// Time between a call and its answer.
    Duration latency = milliseconds(1);
  };

  /// `clock` measures the timeouts of sessions.
  MemoryStateEnsemble(const Clock& clock, Options options) : clock_(clock), options_(options) {}
  explicit MemoryStateEnsemble(const Clock& clock) : MemoryStateEnsemble(clock, Options()) {}

  /// Fault injection: ends the session of the member with this name at once. The member notices with its next call.
  void end_session(const std::string& name);
  /// Fault injection: cuts this member off until connect(). Its session ends after its timeout.
  void disconnect(const std::string& name);
  void connect(const std::string& name);

  /// All records and the newest term.
  struct Records {
    std::map<std::string, StoredRecord, std::less<>> records;
    std::uint64_t term = 0;
  };
  /// Fault injection: deletes all records and ends all sessions.
  void lose_records() { set_records({}); }
  /// Fault injection: replaces all records, for example by an older copy of them, and ends all sessions.
  void set_records(Records records);
  Records copy_records() const;

  /// Returns the newest term and its leader; without a leader the name is empty.
  Leadership leadership() const;
  /// Returns the number of successful writes.
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
  /// Renews the session; returns false if it is over. Ends all sessions whose timeout has passed.
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
  std::vector<Session> queue_ FJORD_GUARDED_BY(mutex_);  ///< Candidates; the first one leads.
  std::vector<std::string> disconnected_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t next_session_ FJORD_GUARDED_BY(mutex_) = 1;
  std::uint64_t leading_session_ FJORD_GUARDED_BY(mutex_) = 0;
  std::uint64_t term_ FJORD_GUARDED_BY(mutex_) = 0;
  std::uint64_t writes_ FJORD_GUARDED_BY(mutex_) = 0;
  std::map<std::string, StoredRecord, std::less<>> records_ FJORD_GUARDED_BY(mutex_);
};

/// One controller's membership in an ensemble. A new member ends the session of an earlier one with the same name, so
/// that a restarted process need not wait for the session's timeout.
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
