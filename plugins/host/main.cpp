// fjord-plugin-host: runs one library of visitors and applications in a process that may be lost. Started by nodes,
// which talk to it over a socket (plugin_protocol.h).

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "application_host.h"
#include "fjord/common/executor.h"
#include "fjord/common/fatal_signals.h"
#include "fjord/plugins/child_process.h"
#include "fjord/plugins/plugin.h"
#include "fjord/version/version.h"
#include "plugin_protocol.h"

namespace fjord::plugins {
namespace {

using visitors::BucketResult;
using visitors::Mailbox;
using visitors::VisitContext;
using visitors::Visitor;

/// The visitor's executor: runs tasks on the thread that waits for the visitor's outcome.
class WaitingExecutor final : public Executor {
 public:
  void post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }
  /// Plugins rarely need delays, so each delayed task gets a thread.
  void post_after(Duration delay, Task task) override {
    std::thread([this, delay, task = std::move(task)]() mutable {
      std::this_thread::sleep_for(delay);
      post(std::move(task));
    }).detach();
  }
  bool is_current() const override { return std::this_thread::get_id() == thread_; }

  template <typename Condition>
  void run_until(Condition is_over) {
    std::unique_lock lock(mutex_);
    while (!is_over()) {
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
};

void answer(const HostAnswer& what) {
  if (!child_socket::send(encode(what))) std::_Exit(0);  // send() fails if the node has ended; then the host ends, too.
}

HostAnswer outcome(Status status) {
  HostAnswer result;
  result.status = std::move(status);
  return result;
}

class Host final : public VisitContext {
 public:
  Host(std::string library, const PluginRegistry& registry)
      : library_(std::move(library)), registry_(registry), application_(registry) {}

  const std::shared_ptr<const DocumentTypeRepo>& types() const override { return types_; }
  Mailbox mailbox() const override { return mailbox_; }
  void send(BucketId bucket, std::string docblock) override {
    HostAnswer documents;
    documents.bucket = bucket;
    documents.docblock = std::move(docblock);
    answer(documents);
  }
  /// Always false: a cancelled visit ends this process.
  bool cancelled() const override { return false; }

  HostAnswer handle(HostRequest& request) {
    try {
      return run(request);
    } catch (const std::exception& thrown) {
      return outcome(Status(StatusCode::InvalidArgument, "plugin " + library_ + ": " + name_of(request.call) +
                                                             " threw an exception: " + thrown.what()));
    } catch (...) {
      return outcome(Status(StatusCode::InvalidArgument,
                            "plugin " + library_ + ": " + name_of(request.call) + " threw something"));
    }
  }

 private:
  static std::string name_of(Call call) {
    switch (call) {
      case Call::Describe:
        return "registering";
      case Call::Create:
        return "making the visitor";
      case Call::BeginBucket:
        return "begin_bucket()";
      case Call::Visit:
        return "visit()";
      case Call::EndBucket:
        return "end_bucket()";
      case Call::AbandonBucket:
        return "abandon_bucket()";
      case Call::CreateApplication:
        return "making the application";
      case Call::Map:
      case Call::MapApart:
        return "map()";
      case Call::Combine:
        return "combine()";
      case Call::Reduce:
        return "reduce()";
    }
    return "a call";
  }

  HostAnswer run(HostRequest& request) {
    if (request.call == Call::Describe) return describe();
    if (request.call == Call::Create) return outcome(create(request));
    if (request.call >= Call::CreateApplication) return application_.handle(request);
    if (visitor_ == nullptr) return outcome(Status(StatusCode::InvalidArgument, "there is no visitor yet"));
    switch (request.call) {
      case Call::BeginBucket:
        return outcome(visitor_->begin_bucket(request.bucket));
      case Call::Visit:
        return outcome(visitor_->visit(request.bucket, std::move(request.docblock)));
      case Call::EndBucket:
        return end_bucket(request.bucket);
      case Call::AbandonBucket:
        visitor_->abandon_bucket(request.bucket);
        return {};
      default:
        return outcome(Status(StatusCode::InvalidArgument, "no such call"));
    }
  }

  HostAnswer describe() const {
    HostAnswer result;
    for (const auto& [name, entry] : registry_.entries()) result.described.emplace_back(name, entry.help);
    for (const auto& [name, entry] : registry_.applications()) {
      result.applications.push_back({name, entry.version, entry.help, entry.parameters});
    }
    return result;
  }

  Status create(const HostRequest& request) {
    const auto entry = registry_.entries().find(request.name);
    if (entry == registry_.entries().end()) return {StatusCode::InvalidArgument, "no visitor " + request.name};
    FJORD_TRY_ASSIGN(types_, DocumentTypeRepo::build(request.schemas));
    FJORD_TRY_ASSIGN(visitor_, entry->second.factory(*this, request.parameters));
    if (visitor_ == nullptr) return {StatusCode::InvalidArgument, "the factory made no visitor"};
    return Status::ok();
  }

  HostAnswer end_bucket(BucketId bucket) {
    auto done = std::make_shared<std::optional<BucketResult>>();
    visitor_->end_bucket(bucket, [this, done](BucketResult result) {
      executor_.post(
          [done, result = std::make_shared<BucketResult>(std::move(result))] { *done = std::move(*result); });
    });
    executor_.run_until([&] { return done->has_value(); });
    HostAnswer result = outcome((*done)->status);
    result.result = std::move((*done)->result);
    return result;
  }

  std::string library_;
  const PluginRegistry& registry_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  WaitingExecutor executor_;
  Mailbox mailbox_{executor_};
  std::unique_ptr<Visitor> visitor_;
  ApplicationHost application_;
};

/// Returns why the library cannot be used; empty if it can.
std::string load(const char* file, PluginRegistry& registry) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::string("cannot be loaded: ") + ::dlerror();
  const auto* const interface = static_cast<const std::uint32_t*>(::dlsym(library, "fjord_plugin_interface"));
  if (interface == nullptr) return "is not a plugin: it does not define fjord_plugin_interface (FJORD_PLUGIN)";
  if (*interface != kPluginInterface)
    return "was built for plugin interface " + std::to_string(*interface) + "; this is " +
           std::to_string(kPluginInterface);
  using Register = void (*)(PluginRegistry&);
  const auto enter = reinterpret_cast<Register>(::dlsym(library, "fjord_plugin_register"));
  if (enter == nullptr) return "is not a plugin: it does not define fjord_plugin_register (FJORD_PLUGIN)";
  try {
    enter(registry);
  } catch (const std::exception& thrown) {
    return std::string("threw an exception while it registered: ") + thrown.what();
  }
  for (const auto& [name, entry] : registry.applications()) {
    if (entry.version.empty()) return "offers the application " + name + " without a version";
  }
  return registry.entries().empty() && registry.applications().empty() ? "offers no visitor and no application" : "";
}

void limit_itself(const char* memory_bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  const rlim_t memory = std::strtoull(memory_bytes, nullptr, 10);
  const rlimit space{memory, memory};
  const rlimit nothing{0, 0};
  if (memory > 0) ::setrlimit(RLIMIT_AS, &space);
  ::setrlimit(RLIMIT_CORE, &nothing);
}

int serve(const char* file) {
  PluginRegistry registry;
  const std::string problem = load(file, registry);
  Host host(std::string(file).substr(std::string_view(file).rfind('/') + 1), registry);
  while (const auto message = child_socket::receive()) {
    std::optional<HostRequest> request = decode_request(*message);
    if (!request) return 1;
    answer(problem.empty() ? host.handle(*request) : outcome(Status(StatusCode::InvalidArgument, problem)));
  }
  return 0;
}

}  // namespace
}  // namespace fjord::plugins

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    return std::fputs(fjord::version_text("fjord-plugin-host").append("\n").c_str(), stdout) < 0 ? 1 : 0;
  }
  if (argc != 5 || std::strcmp(argv[1], "--library") != 0 || std::strcmp(argv[3], "--memory-bytes") != 0) {
    std::fprintf(stderr, "fjord-plugin-host runs a visitor or a task of a plugin for a node, which starts it.\n");
    return 2;
  }
  fjord::report_fatal_signals("fjord-plugin-host");
  fjord::plugins::limit_itself(argv[4]);
  return fjord::plugins::serve(argv[2]);
}
