#include "store_fixture.h"

#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fjord/common/env.h"
#include "fjord/common/random.h"
#include "fjord/fleetcontroller/leveldb_state_store.h"
#include "fjord/fleetcontroller/memory_state_store.h"
#include "fjord/fleetcontroller/zookeeper_state_store.h"

namespace fjord::fleetcontroller::test {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "fjord-store-XXXXXX").string();
    FJORD_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

class MemoryFixture final : public StoreFixture {
 public:
  std::unique_ptr<ClusterStateStore> make_member() override { return std::make_unique<MemoryStateStore>(ensemble_); }
  bool has_elections() const override { return true; }

 private:
  SystemClock clock_;
  // Long, because on a busy machine a thread may not run for a while, and no session may end by itself.
  MemoryStateEnsemble ensemble_{clock_, {.session_timeout = seconds(4), .latency = microseconds(100)}};
};

class LevelDbFixture final : public StoreFixture {
 public:
  std::unique_ptr<ClusterStateStore> make_member() override {
    auto opened = LevelDbStateStore::open(*env_, folder_.path());
    FJORD_CHECK_MSG(opened.has_value(), opened.status().to_string());
    return std::move(*opened);
  }
  bool has_elections() const override { return false; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Env> env_ = make_posix_env();
};

/// Returns a port that is probably free: the one of a socket that was just closed. It is below those that the system
/// gives to outgoing connections, as the server starts there again.
int free_port() {
  constexpr int kLowest = 20'000;
  constexpr int kPast = 32'000;
  Random random = Random::from_system();
  while (true) {
    const int port = kLowest + static_cast<int>(random.below(kPast - kLowest));
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool is_free = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    ::close(socket);
    if (is_free) return port;
  }
}

bool accepts(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool accepted = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(socket);
  return accepted;
}

/// A server process, which is ended by its process id.
class ZooKeeperServer {
 public:
  static bool is_installed() { return fs::exists("/usr/share/java/zookeeper.jar") && fs::exists("/usr/bin/java"); }

  ZooKeeperServer() : port_(free_port()) {
    const std::string config = folder_.path() + "/zoo.cfg";
    std::ofstream(config) << fmt::format(
        "tickTime=200\ndataDir={}/data\nclientPort={}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
        "maxClientCnxns=0\n4lw.commands.whitelist=\nforceSync=no\n",
        folder_.path(), port_);
    const std::string log = folder_.path() + "/log";
    std::vector<std::string> words = {
        "/usr/bin/java", "-Xmx128m", "-cp", "/usr/share/java/*", "org.apache.zookeeper.server.ZooKeeperServerMain",
        config};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    FJORD_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      if (std::freopen(log.c_str(), "w", stdout) == nullptr || std::freopen(log.c_str(), "a", stderr) == nullptr)
        ::_exit(127);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    for (int i = 0; i < 600 && !accepts(port_); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    FJORD_CHECK_MSG(accepts(port_), "ZooKeeper does not listen");
  }
  ~ZooKeeperServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  TemporaryFolder folder_;
  int port_;
  pid_t pid_ = 0;
};

class ZooKeeperFixture final : public StoreFixture {
 public:
  explicit ZooKeeperFixture(std::string root) : root_(std::move(root)) {}
  std::unique_ptr<ClusterStateStore> make_member() override {
    ZooKeeperOptions options;
    options.servers = server().address();
    options.root = root_;
    options.session_timeout = seconds(4);
    return std::make_unique<ZooKeeperStateStore>(options, Random(++members_ + std::hash<std::string>()(root_)));
  }
  bool has_elections() const override { return true; }

  /// Returns the server that all cases share, because a Java program starts slowly. Each case has its own root path.
  static ZooKeeperServer& server() {
    static ZooKeeperServer made;
    return made;
  }

 private:
  std::string root_;
  std::uint64_t members_ = 0;
};

}  // namespace

std::unique_ptr<StoreFixture> make_memory_fixture() { return std::make_unique<MemoryFixture>(); }
std::unique_ptr<StoreFixture> make_leveldb_fixture() { return std::make_unique<LevelDbFixture>(); }
std::unique_ptr<StoreFixture> make_zookeeper_fixture() {
  if (!ZooKeeperServer::is_installed()) {
    std::fprintf(stderr, "SKIPPED: the cases on ZooKeeper need Debian's package zookeeper\n");
    return nullptr;
  }
  static int roots = 0;
  return std::make_unique<ZooKeeperFixture>(fmt::format("/fjord/test-{}", ++roots));
}

}  // namespace fjord::fleetcontroller::test
