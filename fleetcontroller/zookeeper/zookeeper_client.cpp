#include "zookeeper_client.h"

#include <array>
#include <utility>

namespace fjord::fleetcontroller {

/// The part of the client that calls in flight keep alive.
struct ZooKeeperClient::Shared {
  Shared(Executor& e, OnEvent event) : executor(e), on_event(std::move(event)) {}

  template <typename F>
  void post(F f) {
    std::lock_guard lock(mutex);
    if (!closed) executor.post(std::move(f));
  }

  Executor& executor;
  const OnEvent on_event;
  std::mutex mutex;
  bool closed FJORD_GUARDED_BY(mutex) = false;
  zhandle_t* handle FJORD_GUARDED_BY(mutex) = nullptr;
  std::weak_ptr<Shared>* watcher = nullptr;  ///< Context of watches; freed when no watch can fire any more.
};

/// The context of one call in the library, which hands it back exactly once.
struct ZooKeeperClient::Call {
  std::shared_ptr<Shared> shared;
  Done done;
  ZooKeeperAnswer answer;
  std::array<zoo_op_result_t, 2> results = {};
  Stat stat = {};
  std::array<char, 8> path_buffer = {};
  bool is_multi = false;

  static void finish(const void* data, int code) {
    std::unique_ptr<Call> self(static_cast<Call*>(const_cast<void*>(data)));
    self->answer.code = code;
    if (self->is_multi) self->answer.codes = {self->results[0].err, self->results[1].err};
    Shared& shared = *self->shared;
    shared.post(
        [done = std::move(self->done), answer = std::move(self->answer)]() mutable { done(std::move(answer)); });
  }
  static Call& of(const void* data) { return *static_cast<Call*>(const_cast<void*>(data)); }
};

ZooKeeperClient::ZooKeeperClient(Executor& executor, OnEvent on_event)
    : shared_(std::make_shared<Shared>(executor, std::move(on_event))) {}

ZooKeeperClient::~ZooKeeperClient() { close(); }

bool ZooKeeperClient::connect(const std::string& servers, Duration session_timeout) {
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  shared_->watcher = new std::weak_ptr<Shared>(shared_);
  const int timeout_ms = static_cast<int>(std::chrono::duration_cast<milliseconds>(session_timeout).count());
  std::lock_guard lock(shared_->mutex);
  shared_->handle = zookeeper_init(servers.c_str(), &on_watch, timeout_ms, nullptr, shared_->watcher, 0);
  return shared_->handle != nullptr;
}

void ZooKeeperClient::close() {
  zhandle_t* handle = nullptr;
  {
    std::lock_guard lock(shared_->mutex);
    shared_->closed = true;
    handle = std::exchange(shared_->handle, nullptr);
  }
  // This waits for the library's threads, which post nothing because of `closed`.
  if (handle != nullptr) zookeeper_close(handle);
  delete std::exchange(shared_->watcher, nullptr);
}

Duration ZooKeeperClient::agreed_timeout() {
  std::lock_guard lock(shared_->mutex);
  return shared_->handle == nullptr ? Duration(0) : milliseconds(zoo_recv_timeout(shared_->handle));
}

void ZooKeeperClient::on_watch(zhandle_t*, int type, int state, const char*, void* context) {
  auto shared = static_cast<std::weak_ptr<Shared>*>(context)->lock();
  if (shared == nullptr) return;
  Shared& target = *shared;
  target.post([shared = std::move(shared), type, state] { shared->on_event(type, state); });
}

void ZooKeeperClient::on_string(int code, const char* value, const void* data) {
  if (value != nullptr) Call::of(data).answer.value = value;
  Call::finish(data, code);
}

void ZooKeeperClient::on_data(int code, const char* value, int size, const Stat* stat, const void* data) {
  ZooKeeperAnswer& answer = Call::of(data).answer;
  if (value != nullptr && size > 0) answer.value.assign(value, static_cast<std::size_t>(size));
  if (stat != nullptr) answer.version = stat->version;
  Call::finish(data, code);
}

void ZooKeeperClient::on_stat(int code, const Stat* stat, const void* data) {
  if (stat != nullptr) Call::of(data).answer.version = stat->version;
  Call::finish(data, code);
}

void ZooKeeperClient::on_strings(int code, const String_vector* strings, const void* data) {
  if (strings != nullptr) Call::of(data).answer.children.assign(strings->data, strings->data + strings->count);
  Call::finish(data, code);
}

void ZooKeeperClient::on_void(int code, const void* data) { Call::finish(data, code); }

template <typename Start>
void ZooKeeperClient::call(std::unique_ptr<Call> made, Start start) {
  made->shared = shared_;
  Call* context = made.release();
  int code = ZINVALIDSTATE;
  {
    std::lock_guard lock(shared_->mutex);
    if (shared_->handle != nullptr) code = start(shared_->handle, context);
  }
  if (code != ZOK) Call::finish(context, code);
}

void ZooKeeperClient::create(const std::string& path, const std::string& value, int mode, Done done) {
  auto made = std::make_unique<Call>();
  made->done = std::move(done);
  call(std::move(made), [&](zhandle_t* handle, Call* context) {
    return zoo_acreate(handle, path.c_str(), value.data(), static_cast<int>(value.size()), &ZOO_OPEN_ACL_UNSAFE, mode,
                       &on_string, context);
  });
}

void ZooKeeperClient::get(const std::string& path, bool watch, Done done) {
  auto made = std::make_unique<Call>();
  made->done = std::move(done);
  call(std::move(made), [&](zhandle_t* handle, Call* context) {
    return zoo_aget(handle, path.c_str(), watch ? 1 : 0, &on_data, context);
  });
}

void ZooKeeperClient::children(const std::string& path, Done done) {
  auto made = std::make_unique<Call>();
  made->done = std::move(done);
  call(std::move(made), [&](zhandle_t* handle, Call* context) {
    return zoo_aget_children(handle, path.c_str(), 1, &on_strings, context);
  });
}

void ZooKeeperClient::set(const std::string& path, const std::string& value, std::int32_t version, Done done) {
  auto made = std::make_unique<Call>();
  made->done = std::move(done);
  call(std::move(made), [&](zhandle_t* handle, Call* context) {
    return zoo_aset(handle, path.c_str(), value.data(), static_cast<int>(value.size()), version, &on_stat, context);
  });
}

void ZooKeeperClient::remove(const std::string& path, Done done) {
  auto made = std::make_unique<Call>();
  made->done = std::move(done);
  call(std::move(made),
       [&](zhandle_t* handle, Call* context) { return zoo_adelete(handle, path.c_str(), -1, &on_void, context); });
}

void ZooKeeperClient::write_if(const std::string& guard, std::int32_t guard_version, const std::string& path,
                               std::int32_t version, const std::string& value, Done done) {
  auto made = std::make_unique<Call>();
  made->done = std::move(done);
  made->is_multi = true;
  call(std::move(made), [&](zhandle_t* handle, Call* context) {
    std::array<zoo_op_t, 2> parts = {};
    zoo_check_op_init(&parts[0], guard.c_str(), guard_version);
    const int size = static_cast<int>(value.size());
    if (version < 0) {
      zoo_create_op_init(&parts[1], path.c_str(), value.data(), size, &ZOO_OPEN_ACL_UNSAFE, 0,
                         context->path_buffer.data(), static_cast<int>(context->path_buffer.size()));
    } else {
      zoo_set_op_init(&parts[1], path.c_str(), value.data(), size, version, &context->stat);
    }
    return zoo_amulti(handle, static_cast<int>(parts.size()), parts.data(), context->results.data(), &on_void, context);
  });
}

}  // namespace fjord::fleetcontroller
