#include "fjord/fleetcontroller/memory_state_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace fjord::fleetcontroller {

void MemoryStateEnsemble::end_session(const std::string& name) {
  std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Session& session) { return session.name == name; });
  elect();
}

void MemoryStateEnsemble::disconnect(const std::string& name) {
  std::lock_guard lock(mutex_);
  if (!is_disconnected(name)) disconnected_.push_back(name);
}

void MemoryStateEnsemble::connect(const std::string& name) {
  std::lock_guard lock(mutex_);
  std::erase(disconnected_, name);
}

Leadership MemoryStateEnsemble::leadership() const {
  std::lock_guard lock(mutex_);
  return {term_, queue_.empty() ? "" : queue_.front().name, false};
}

void MemoryStateEnsemble::set_records(Records records) {
  std::lock_guard lock(mutex_);
  queue_.clear();
  leading_session_ = 0;
  records_ = std::move(records.records);
  term_ = records.term;
}

MemoryStateEnsemble::Records MemoryStateEnsemble::copy_records() const {
  std::lock_guard lock(mutex_);
  return {records_, term_};
}

std::uint64_t MemoryStateEnsemble::writes() const {
  std::lock_guard lock(mutex_);
  return writes_;
}

std::uint64_t MemoryStateEnsemble::open_session(const std::string& name) {
  std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Session& session) { return session.name == name; });
  queue_.push_back({next_session_++, name, clock_.now()});
  elect();
  return queue_.back().id;
}

void MemoryStateEnsemble::close_session(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Session& session) { return session.id == id; });
  elect();
}

bool MemoryStateEnsemble::touch(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  const MonotonicTime now = clock_.now();
  bool is_open = false;
  for (Session& session : queue_) {
    if (session.id != id) continue;
    is_open = now - session.heard <= options_.session_timeout;
    if (is_open) session.heard = now;
  }
  std::erase_if(queue_, [&](const Session& session) { return now - session.heard > options_.session_timeout; });
  elect();
  return is_open;
}

bool MemoryStateEnsemble::is_connected(const std::string& name) const {
  std::lock_guard lock(mutex_);
  return !is_disconnected(name);
}

bool MemoryStateEnsemble::leads(std::uint64_t id, std::uint64_t term) const {
  std::lock_guard lock(mutex_);
  return leading_session_ == id && term_ == term;
}

Leadership MemoryStateEnsemble::seen_by(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  if (queue_.empty()) return {};
  return {term_, queue_.front().name, leading_session_ == id};
}

StoredRecord MemoryStateEnsemble::read(std::string_view record) const {
  std::lock_guard lock(mutex_);
  const auto found = records_.find(record);
  return found == records_.end() ? StoredRecord{} : found->second;
}

Result<std::uint64_t> MemoryStateEnsemble::write(std::uint64_t id, std::uint64_t term, std::string_view record,
                                                 std::uint64_t expected, std::string content) {
  std::lock_guard lock(mutex_);
  if (leading_session_ != id || term_ != term) {
    return Status(StatusCode::WrongDistribution,
                  "term " + std::to_string(term) + " is over; the newest is " + std::to_string(term_));
  }
  StoredRecord& stored = records_[std::string(record)];
  if (stored.revision != expected) {
    return Status(StatusCode::TestAndSetFailed, "record " + std::string(record) + " has revision " +
                                                    std::to_string(stored.revision) + ", not " +
                                                    std::to_string(expected));
  }
  ++writes_;
  ++stored.revision;
  stored.content = std::move(content);
  return stored.revision;
}

void MemoryStateEnsemble::elect() {
  const std::uint64_t first = queue_.empty() ? 0 : queue_.front().id;
  if (first == leading_session_) return;
  leading_session_ = first;
  if (first != 0) ++term_;
}

bool MemoryStateEnsemble::is_disconnected(const std::string& name) const {
  return std::find(disconnected_.begin(), disconnected_.end(), name) != disconnected_.end();
}

/// Shared with the tasks on the executor, so that a task that runs after leave() does nothing.
struct MemoryStateStore::Member : std::enable_shared_from_this<MemoryStateStore::Member> {
  explicit Member(MemoryStateEnsemble& e) : ensemble(e) {}

  void begin() {
    session = ensemble.open_session(name);
    beat();
  }

  /// Keeps the session alive and reports changes of the leadership.
  void beat() {
    if (left) return;
    if (ensemble.is_connected(name)) {
      if (!ensemble.touch(session)) session = ensemble.open_session(name);
      tell(ensemble.seen_by(session));
    }
    executor->post_after(ensemble.options_.session_timeout / 8, [self = shared_from_this()] { self->beat(); });
  }

  void tell(Leadership now) {
    if (is_reported && now == last_reported) return;
    is_reported = true;
    last_reported = now;
    on_change(now);
  }

  /// Answers after the latency, unless this member has left by then.
  template <typename Done, typename Answer>
  void answer(Done done, Answer with) {
    executor->post_after(ensemble.options_.latency,
                         [self = shared_from_this(), done = std::move(done), with = std::move(with)]() mutable {
                           if (!self->left) done(std::move(with));
                         });
  }
  Status unreachable() const { return {StatusCode::Unavailable, "the store cannot be reached"}; }

  MemoryStateEnsemble& ensemble;
  std::string name;
  Executor* executor = nullptr;
  OnLeadership on_change;
  std::atomic<std::uint64_t> session{0};
  std::atomic<bool> left{false};
  bool is_reported = false;
  Leadership last_reported;
};

MemoryStateStore::MemoryStateStore(MemoryStateEnsemble& ensemble) : member_(std::make_shared<Member>(ensemble)) {}

MemoryStateStore::~MemoryStateStore() { leave(); }

void MemoryStateStore::campaign(const std::string& name, Executor& executor, OnLeadership on_change) {
  member_->name = name;
  member_->executor = &executor;
  member_->on_change = std::move(on_change);
  executor.post([member = member_] {
    if (!member->left) member->begin();
  });
}

void MemoryStateStore::resign() {
  if (!member_->ensemble.is_connected(member_->name)) return;
  member_->ensemble.close_session(member_->session);
  member_->session = member_->ensemble.open_session(member_->name);
  member_->executor->post([member = member_] {
    if (!member->left) member->tell(member->ensemble.seen_by(member->session));
  });
}

void MemoryStateStore::leave() {
  if (member_->left.exchange(true)) return;
  if (member_->executor == nullptr || !member_->ensemble.is_connected(member_->name)) return;
  member_->ensemble.close_session(member_->session);
}

void MemoryStateStore::confirm(std::uint64_t term, OnConfirmed done) {
  MemoryStateEnsemble& ensemble = member_->ensemble;
  if (!ensemble.is_connected(member_->name)) return member_->answer(std::move(done), member_->unreachable());
  const bool leads = ensemble.touch(member_->session) && ensemble.leads(member_->session, term);
  member_->answer(
      std::move(done),
      leads ? Status::ok() : Status(StatusCode::WrongDistribution, "term " + std::to_string(term) + " is over"));
}

Duration MemoryStateStore::session_timeout() const { return member_->ensemble.options_.session_timeout; }

void MemoryStateStore::read(std::string_view record, OnRead done) {
  MemoryStateEnsemble& ensemble = member_->ensemble;
  Result<StoredRecord> answer = member_->unreachable();
  if (ensemble.is_connected(member_->name)) answer = ensemble.read(record);
  member_->answer(std::move(done), std::move(answer));
}

void MemoryStateStore::write(std::uint64_t term, std::string_view record, std::uint64_t expected, std::string content,
                             OnWritten done) {
  MemoryStateEnsemble& ensemble = member_->ensemble;
  Result<std::uint64_t> answer = member_->unreachable();
  if (ensemble.is_connected(member_->name)) {
    answer = ensemble.write(member_->session, term, record, expected, std::move(content));
  }
  member_->answer(std::move(done), std::move(answer));
}

}  // namespace fjord::fleetcontroller
