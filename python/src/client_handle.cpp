#include "client_handle.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include "errors.h"
#include "fjord/library/detail/client_core.h"

namespace fjord::python {

namespace {

/// How long the end of the interpreter waits for calls of other threads.
constexpr std::chrono::seconds kExitTimeout{2};

/// The clients of the process. The interpreter lock protects it.
std::vector<ClientHandle*>& all_clients() {
  static std::vector<ClientHandle*> clients;
  return clients;
}

/// The process that this code runs in. A fork changes it in the child: getpid() would ask the kernel for each document.
std::atomic<pid_t>& current_process() {
  static std::atomic<pid_t> process = [] {
    pthread_atfork(nullptr, nullptr, [] { current_process() = getpid(); });
    return getpid();
  }();
  return process;
}

[[noreturn]] void raise_invalid(std::string message) { raise(Status(StatusCode::InvalidArgument, std::move(message))); }

[[noreturn]] void raise_state(const char* name, const std::string& message) {
  raise_object(run_python([&]() -> nb::object {
    return nb::module_::import_("fjord.errors").attr(name)(nb::str(message.c_str(), message.size()));
  }));
}

}  // namespace

bool DeleteInOwnProcess::is_own_process(pid_t owner) { return current_process() == owner; }

void DeleteInOwnProcess::check_own_process(pid_t owner) {
  if (is_own_process(owner)) return;
  raise_state("ForkedProcess", fmt::format("this client was connected in process {}; make another one in process {}, "
                                           "after the fork",
                                           owner, current_process().load()));
}

ClientHandle::ClientHandle(std::string addresses, ClientSettings settings)
    : addresses_(std::move(addresses)), settings_(settings) {
  all_clients().push_back(this);
}

ClientHandle::~ClientHandle() {
  std::erase(all_clients(), this);
  stoppables_.clear();  // A stream of Arrow goes on without the client that it came from.
  close();
}

std::shared_ptr<Client> ClientHandle::use() {
  check_open();
  if (client_ == nullptr) {
    static bool is_registered = false;
    if (!is_registered) {
      nb::module_::import_("atexit").attr("register")(nb::module_::import_("fjord._core").attr("_close_all"));
      is_registered = true;
    }
    owner_ = current_process();
    client_ = std::shared_ptr<Client>(new Client(connect(addresses_, settings_)), DeleteInOwnProcess{owner_});
    check(client_->core().settings_error());
  }
  return client_;
}

std::shared_ptr<Client> ClientHandle::use_connected() {
  std::shared_ptr<Client> client = use();
  if (!is_connected()) {
    check(run([client] { return client->ping(); }));
  }
  return client;
}

bool ClientHandle::is_connected() const {
  return client_ != nullptr && DeleteInOwnProcess::is_own_process(owner_) && client_->core().settings_error() &&
         client_->core().client().snapshot() != nullptr;
}

std::uint64_t ClientHandle::state_version() const {
  return is_connected() ? client_->core().client().snapshot()->state().version() : 0;
}

void ClientHandle::check_open() const {
  if (is_closed_) raise_state("ClientClosed", "the client was closed");
  if (client_ != nullptr) DeleteInOwnProcess::check_own_process(owner_);
}

void ClientHandle::stop_with_client(std::weak_ptr<Stoppable> object) {
  std::erase_if(stoppables_, [](const auto& one) { return one.expired(); });
  const std::shared_ptr<Stoppable> present = is_closed_ ? object.lock() : nullptr;
  if (present != nullptr) present->stop();
  stoppables_.push_back(std::move(object));
}

void ClientHandle::close() {
  is_closed_ = true;
  std::shared_ptr<Client> client = std::exchange(client_, nullptr);
  if (client == nullptr || !DeleteInOwnProcess::is_own_process(owner_)) return;
  for (const auto& one : std::exchange(stoppables_, {})) {
    if (const auto object = one.lock()) object->stop();
  }
  const Unlocked unlocked;
  client.reset();
}

void ClientHandle::close_all() {
  for (ClientHandle* const handle : std::vector<ClientHandle*>(all_clients())) {
    const auto& clients = all_clients();
    if (std::find(clients.begin(), clients.end(), handle) != clients.end()) handle->close();
  }
  // The waits of other threads end now. They take the interpreter lock before it is too late.
  const auto deadline = std::chrono::steady_clock::now() + kExitTimeout;
  while (WaitingThread::count() > 0 && std::chrono::steady_clock::now() < deadline) {
    const Unlocked unlocked;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Duration to_duration(std::optional<double> seconds, std::string_view name) {
  if (!seconds) return Duration(0);
  if (!(*seconds > 0)) raise_invalid(fmt::format("{} is {}: expected a number of seconds above 0", name, *seconds));
  constexpr double kSecondsMax = 1e9;
  return Duration(std::max<std::int64_t>(1, std::llround(std::min(*seconds, kSecondsMax) * 1e6)));
}

Duration duration_argument(nb::handle seconds, std::string_view name) {
  if (seconds.is_none()) return Duration(0);
  const bool is_number = PyFloat_Check(seconds.ptr()) || (PyIndex_Check(seconds.ptr()) && !PyBool_Check(seconds.ptr()));
  if (!is_number) raise_wrong_type(name, "a number of seconds", seconds);
  const double number = PyFloat_AsDouble(seconds.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return to_duration(number, name);
}

ClientPriority to_priority(std::string_view name) {
  if (name == "default") return ClientPriority::Default;
  if (name == "high") return ClientPriority::High;
  if (name == "normal") return ClientPriority::Normal;
  if (name == "background") return ClientPriority::Background;
  raise_invalid(fmt::format("priority is \"{}\": expected default, high, normal or background", name));
}

ReadConsistency to_consistency(std::string_view name) {
  if (name == "default") return ReadConsistency::Default;
  if (name == "linearizable") return ReadConsistency::Linearizable;
  raise_invalid(fmt::format("consistency is \"{}\": expected default or linearizable", name));
}

WriteDurability to_durability(std::string_view name) {
  if (name == "default") return WriteDurability::Default;
  if (name == "process") return WriteDurability::Process;
  if (name == "sync") return WriteDurability::Sync;
  raise_invalid(fmt::format("durability is \"{}\": expected default, process or sync", name));
}

}  // namespace fjord::python
