#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"

namespace fjord {

/// A program that runs beside this process and may be lost. The two talk over a socket, its descriptor `kSocket`, in
/// frames of a four-byte little-endian length and a message. Ends with this object, at the latest.
///
/// What processors work for it counts for the thread that hears of it (add_processor_time()): with each message that it
/// receives, and when the program ends.
///
/// Threading: one thread at a time; calls block.
class ChildProcess {
 public:
  static constexpr int kSocket = 3;
  using Deadline = std::chrono::steady_clock::time_point;
  using IsCancelled = std::function<bool()>;

  struct Options {
    std::string name;     ///< In messages: "plugin libcount.so".
    std::string program;  ///< Its path.
    std::vector<std::string> arguments;
  };

  /// Its environment is empty. Errors: IoError if it cannot be started.
  static Result<std::unique_ptr<ChildProcess>> start(const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// The path of a program in the folder of the one that runs.
  static std::string beside_this_program(std::string_view program);
  /// A message with its length in front.
  static std::string framed(std::string_view message);

  /// Both ask `is_cancelled` ten times a second. Errors: InvalidArgument, which says how, when the program ended, took
  /// longer than `deadline` or sent nonsense; Cancelled. The program is gone then, and every later call says the same.
  Status send(std::string_view frame, Deadline deadline, const IsCancelled& is_cancelled);
  /// A message, without its length.
  Result<std::string> receive(Deadline deadline, const IsCancelled& is_cancelled);
  /// Ends the program; this is what every later call says.
  Status give_up(StatusCode code, const std::string& why);
  /// OK while it has not been given up.
  const Status& gone() const { return gone_; }

 private:
  ChildProcess(std::string name, pid_t pid, int socket) : name_(std::move(name)), pid_(pid), socket_(socket) {}

  Status wait_for(short events, Deadline deadline, const IsCancelled& is_cancelled);
  Status receive(char* to, std::size_t bytes, Deadline deadline, const IsCancelled& is_cancelled);
  std::string how_it_ended();
  void end();
  /// Waits for the end of the program; how it ended, or nothing.
  std::optional<int> reap();
  /// Of what the program has used in all, what is new.
  void count(Duration used_in_all);

  std::string name_;
  pid_t pid_;  ///< -1: reaped.
  int socket_;
  Status gone_;
  Duration counted_{0};
};

/// The other end: what the program itself does with its socket. Blocks.
namespace child_socket {

/// The next message; none at the end of the connection, or if it is no message.
std::optional<std::string> receive();
/// False if the one that started this program has gone.
bool send(std::string_view message);

}  // namespace child_socket

}  // namespace fjord
