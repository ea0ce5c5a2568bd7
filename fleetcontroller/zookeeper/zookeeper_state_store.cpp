#include "fjord/fleetcontroller/zookeeper_state_store.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fmt/format.h>
#include <mutex>

#include "fjord/common/callback_guard.h"
#include "fjord/common/log.h"
#include "zookeeper_client.h"

namespace fjord::fleetcontroller {
namespace {

constexpr std::size_t kSequenceDigits = 10;

Status from(int code, std::string_view what) {
  if (code == ZOK) return Status::ok();
  const bool may_have_happened = code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT;
  return {may_have_happened ? StatusCode::Timeout : StatusCode::Unavailable, fmt::format("{}: {}", what, zerror(code))};
}

/// Returns the number at the end of a sequential node's name; 0 if there is none.
std::uint64_t sequence_of(std::string_view name) {
  if (name.size() < kSequenceDigits) return 0;
  std::uint64_t number = 0;
  const std::string_view digits = name.substr(name.size() - kSequenceDigits);
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

/// Threading: confined to the executor, except leave().
class ZooKeeperStateStore::Member : public std::enable_shared_from_this<ZooKeeperStateStore::Member> {
 public:
  Member(ZooKeeperOptions options, Random random) : options_(std::move(options)), random_(random) {}

  void begin(std::string name, Executor& executor, OnLeadership on_change) {
    name_ = std::move(name);
    executor_ = &executor;
    on_change_ = std::move(on_change);
    executor_->post([self = shared_from_this()] { self->connect(); });
  }

  void leave() {
    left_ = true;
    std::shared_ptr<ZooKeeperClient> client;
    {
      std::lock_guard lock(mutex_);
      client = std::move(client_);
    }
    if (client != nullptr) client->close();
  }

  void resign() {
    const auto client = this->client();
    if (client == nullptr || own_.empty()) return;
    client->remove(election() + "/" + std::exchange(own_, {}), [](const ZooKeeperAnswer&) {});
    forget_term();
    take_part();
  }

  void confirm(std::uint64_t term, OnConfirmed done) {
    auto shared = std::make_shared<OnConfirmed>(std::move(done));
    const auto client = this->client();
    if (client == nullptr || own_.empty() || term != term_) {
      return post([shared, term] {
        (*shared)({StatusCode::WrongDistribution, "term " + std::to_string(term) + " is over"});
      });
    }
    // A write, because a server that is cut off from the ensemble cannot confirm one.
    client->set(election() + "/" + own_, name_, -1, guarded([shared, term](const ZooKeeperAnswer& answer) {
                  if (answer.code == ZNONODE) {
                    (*shared)({StatusCode::WrongDistribution, "term " + std::to_string(term) + " is over"});
                  } else {
                    (*shared)(from(answer.code, "confirming the leadership"));
                  }
                }));
  }

  void read(std::string_view record, OnRead done) {
    auto shared = std::make_shared<OnRead>(std::move(done));
    const auto client = this->client();
    if (client == nullptr) return post([shared] { (*shared)(unreachable()); });
    client->get(path_of(record), false, guarded([shared](ZooKeeperAnswer answer) {
                  if (answer.code == ZNONODE) return (*shared)(StoredRecord{});
                  if (answer.code != ZOK) return (*shared)(from(answer.code, "reading a record"));
                  (*shared)(StoredRecord{static_cast<std::uint64_t>(answer.version) + 1, std::move(answer.value)});
                }));
  }

  void write(std::uint64_t term, std::string_view record, std::uint64_t expected, const std::string& content,
             OnWritten done) {
    auto shared = std::make_shared<OnWritten>(std::move(done));
    const auto client = this->client();
    if (client == nullptr) return post([shared] { (*shared)(unreachable()); });
    if (term != term_) return post([shared, term] { (*shared)(over(term)); });
    const auto version = static_cast<std::int32_t>(expected) - 1;
    client->write_if(fence(), fence_version_, path_of(record), version, content,
                     guarded([shared, term, expected](const ZooKeeperAnswer& answer) {
                       if (answer.code == ZOK) return (*shared)(expected + 1);
                       const bool is_fenced = !answer.codes.empty() && answer.codes[0] == ZBADVERSION;
                       const int part = answer.codes.size() > 1 ? answer.codes[1] : ZOK;
                       if (is_fenced) return (*shared)(over(term));
                       if (part == ZBADVERSION || part == ZNODEEXISTS || part == ZNONODE) {
                         return (*shared)(Status(StatusCode::TestAndSetFailed, "the record has another revision"));
                       }
                       (*shared)(from(answer.code, "writing a record"));
                     }));
  }

  Duration session_timeout() const { return Duration(agreed_us_.load()); }
  bool is_over() const { return left_; }

 private:
  static Status unreachable() { return {StatusCode::Unavailable, "ZooKeeper is not connected"}; }
  static Status over(std::uint64_t term) {
    return {StatusCode::WrongDistribution, "term " + std::to_string(term) + " is over"};
  }
  std::string election() const { return options_.root + "/election"; }
  std::string fence() const { return options_.root + "/fence"; }
  std::string path_of(std::string_view record) const { return options_.root + "/records/" + std::string(record); }

  std::shared_ptr<ZooKeeperClient> client() {
    std::lock_guard lock(mutex_);
    return client_;
  }
  template <typename F>
  void post(F f) {
    executor_->post([self = shared_from_this(), f = std::move(f)] {
      if (!self->left_) f();
    });
  }
  /// Wraps `f` so that it does nothing after leave().
  template <typename F>
  ZooKeeperClient::Done guarded(F f) {
    return while_alive(weak_from_this(),
                       [f = std::move(f)](Member&, ZooKeeperAnswer answer) mutable { f(std::move(answer)); });
  }
  /// Wraps `f` so that it does nothing after leave() or in a later session.
  template <typename F>
  ZooKeeperClient::Done of_session(F f) {
    return guarded([this, session = session_, f = std::move(f)](ZooKeeperAnswer answer) {
      if (session == session_) f(std::move(answer));
    });
  }

  void connect() {
    if (left_) return;
    ++session_;
    own_.clear();
    forget_term();
    char id[17];
    *fmt::format_to_n(id, 16, "{:016x}", random_.next()).out = 0;
    prefix_ = std::string("m-") + id + "-";
    auto made = std::make_shared<ZooKeeperClient>(*executor_,
                                                  [weak = weak_from_this(), session = session_](int type, int state) {
                                                    const auto self = weak.lock();
                                                    if (self != nullptr && !self->left_ && session == self->session_)
                                                      self->on_event(type, state);
                                                  });
    {
      std::lock_guard lock(mutex_);
      client_ = made;
    }
    if (left_) return made->close();
    if (!made->connect(options_.servers, options_.session_timeout)) {
      log::error("controller", "ZooKeeper: not a list of servers: \"{}\"", options_.servers);
      again(options_.session_timeout, [this] { connect(); });
    }
  }

  void on_event(int type, int state) {
    if (type == ZOO_SESSION_EVENT && state == ZOO_EXPIRED_SESSION_STATE) {
      log::warning("controller", "the session with ZooKeeper is over");
      tell({});
      // close() joins the session's threads. This is quick, because the session is over.
      if (const auto old = client()) old->close();
      connect();
    } else if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) {
      if (const auto open = client()) agreed_us_ = open->agreed_timeout().count();
      make_paths();
    } else if (type == ZOO_CHILD_EVENT) {
      look();
    }
  }

  void make_paths() {
    const auto client = this->client();
    if (client == nullptr) return;
    std::string path;
    const auto ignore = [](const ZooKeeperAnswer&) {};
    std::string_view rest = options_.root;
    while (!rest.empty()) {
      const std::size_t end = rest.find('/', 1);
      path += rest.substr(0, end);
      client->create(path, "", 0, ignore);
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end);
    }
    client->create(election(), "", 0, ignore);
    client->create(options_.root + "/records", "", 0, ignore);
    client->create(fence(), "0", 0, of_session([this](const ZooKeeperAnswer& answer) {
                     if (answer.code == ZOK || answer.code == ZNODEEXISTS) return look();
                     again(seconds(1), [this] { make_paths(); });
                   }));
  }

  void take_part() {
    if (const auto client = this->client()) {
      client->create(election() + "/" + prefix_, name_, ZOO_EPHEMERAL | ZOO_SEQUENCE,
                     of_session([this](const ZooKeeperAnswer&) { look(); }));
    }
  }

  /// Looks up the leader. The last answer counts, because answers come in the order of the calls.
  void look() {
    const auto client = this->client();
    if (client == nullptr) return;
    client->children(election(), of_session([this](const ZooKeeperAnswer& answer) {
                       if (answer.code != ZOK) return again(seconds(1), [this] { look(); });
                       std::string first;
                       std::string mine;
                       for (const std::string& child : answer.children) {
                         if (first.empty() || sequence_of(child) < sequence_of(first)) first = child;
                         const bool is_newer = mine.empty() || sequence_of(child) > sequence_of(mine);
                         if (child.starts_with(prefix_) && is_newer) mine = child;
                       }
                       if (mine.empty()) {
                         if (!own_.empty()) tell({});
                         own_.clear();
                         forget_term();
                         return take_part();
                       }
                       own_ = mine;
                       first == mine ? raise_fence() : follow(first);
                     }));
  }

  void follow(const std::string& first) {
    forget_term();
    if (const auto client = this->client()) {
      client->get(election() + "/" + first, false, of_session([this, first](const ZooKeeperAnswer& answer) {
                    if (answer.code == ZOK) tell({sequence_of(first) + 1, answer.value, false});
                  }));
    }
  }

  /// Writes this member's term into the fence. Once the fence has the newer version, writes of older terms fail.
  void raise_fence() {
    const std::uint64_t term = sequence_of(own_) + 1;
    const auto client = this->client();
    if (term == term_ || term == raising_ || client == nullptr) return;
    raising_ = term;
    client->set(fence(), std::to_string(term), -1, of_session([this, term](const ZooKeeperAnswer& answer) {
                  raising_ = 0;
                  if (own_.empty() || sequence_of(own_) + 1 != term) return;
                  if (answer.code != ZOK) return again(seconds(1), [this] { look(); });
                  term_ = term;
                  fence_version_ = answer.version;
                  tell({term, name_, true});
                }));
  }

  void forget_term() {
    term_ = 0;
    raising_ = 0;
    fence_version_ = -1;
  }

  void tell(const Leadership& now) {
    if (has_told_ && now == told_) return;
    has_told_ = true;
    told_ = now;
    on_change_(now);
  }

  template <typename F>
  void again(Duration pause, F f) {
    executor_->post_after(pause, [self = shared_from_this(), session = session_, f = std::move(f)] {
      if (!self->left_ && session == self->session_) f();
    });
  }

  const ZooKeeperOptions options_;
  Random random_;
  std::string name_;
  Executor* executor_ = nullptr;
  OnLeadership on_change_;
  std::uint64_t session_ = 0;  ///< Number of the session; answers and events of an older session are dropped.
  std::string prefix_;         ///< Prefix of this member's node name, to recognise the node after a lost answer.
  std::string own_;            ///< Name of this member's node in the election; empty: none known.
  std::uint64_t term_ = 0;     ///< Term in which this member leads; 0: it does not lead.
  std::uint64_t raising_ = 0;  ///< Term that is being written into the fence; 0: none.
  std::int32_t fence_version_ = -1;
  bool has_told_ = false;
  Leadership told_;
  std::atomic<std::int64_t> agreed_us_{options_.session_timeout.count()};
  std::atomic<bool> left_{false};
  std::mutex mutex_;
  std::shared_ptr<ZooKeeperClient> client_ FJORD_GUARDED_BY(mutex_);
};

ZooKeeperStateStore::ZooKeeperStateStore(ZooKeeperOptions options, Random random)
    : member_(std::make_shared<Member>(std::move(options), random)) {}
ZooKeeperStateStore::~ZooKeeperStateStore() { leave(); }

void ZooKeeperStateStore::campaign(const std::string& name, Executor& executor, OnLeadership on_change) {
  member_->begin(name, executor, std::move(on_change));
}
void ZooKeeperStateStore::resign() { member_->resign(); }
void ZooKeeperStateStore::leave() {
  if (!member_->is_over()) member_->leave();
}
void ZooKeeperStateStore::confirm(std::uint64_t term, OnConfirmed done) { member_->confirm(term, std::move(done)); }
Duration ZooKeeperStateStore::session_timeout() const { return member_->session_timeout(); }
void ZooKeeperStateStore::read(std::string_view record, OnRead done) { member_->read(record, std::move(done)); }
void ZooKeeperStateStore::write(std::uint64_t term, std::string_view record, std::uint64_t expected,
                                std::string content, OnWritten done) {
  member_->write(term, record, expected, content, std::move(done));
}

}  // namespace fjord::fleetcontroller
