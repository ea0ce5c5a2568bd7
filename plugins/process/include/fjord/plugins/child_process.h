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

/// A program that runs as a child of this process, so that its crash does no harm to this process. Both talk over a
/// socket, descriptor `kSocket` of the child, in frames of a four-byte little-endian length and a message. The child
/// ends with this object at the latest.
///
/// The child's CPU time counts for the calling thread (add_processor_time()): with each message received, and when the
/// program ends.
///
/// Threading: one thread at a time; calls block.
class ChildProcess {
 public:
  static constexpr int kSocket = 3;
  using Deadline = std::chrono::steady_clock::time_point;
  using IsCancelled = std::function<bool()>;

  struct Options {
    std::string name;     ///< Name in error messages: "plugin libcount.so".
    std::string program;  ///< Path of the program.
    std::vector<std::string> arguments;
  };

  /// Starts the program with an empty environment. Errors: IoError if it cannot be started.
  static Result<std::unique_ptr<ChildProcess>> start(const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Returns the path of a program in the folder of the running program.
  static std::string beside_this_program(std::string_view program);
  /// Returns a frame: the message with its length in front.
  static std::string framed(std::string_view message);

  /// Sends a frame. Like receive(), it calls `is_cancelled` ten times a second. Errors: InvalidArgument with the reason
  /// if the program ended, exceeded `deadline` or sent a malformed message; Cancelled. The program is ended then, and
  /// every later call returns the same error.
  Status send(std::string_view frame, Deadline deadline, const IsCancelled& is_cancelled);
  /// Returns a message without its length.
  Result<std::string> receive(Deadline deadline, const IsCancelled& is_cancelled);
  /// Ends the program. Every later call returns `code` and `why` as its error.
  Status give_up(StatusCode code, const std::string& why);
  /// Returns OK until the program was given up or has ended; then the error.
  const Status& gone() const { return gone_; }

 private:
  ChildProcess(std::string name, pid_t pid, int socket) : name_(std::move(name)), pid_(pid), socket_(socket) {}

  Status wait_for(short events, Deadline deadline, const IsCancelled& is_cancelled);
  Status receive(char* to, std::size_t bytes, Deadline deadline, const IsCancelled& is_cancelled);
  std::string how_it_ended();
  void end();
  /// Waits for the end of the program. Returns its exit status, or nullopt if the wait fails.
  std::optional<int> reap();
  /// Passes the part of the program's total CPU time `used_in_all` that was not reported yet to add_processor_time().
  void count(Duration used_in_all);

  std::string name_;
  pid_t pid_;  ///< -1 after the process was reaped.
  int socket_;
  Status gone_;
  Duration counted_{0};
};

/// The child's end of the socket. Calls block.
namespace child_socket {

/// Returns the next message; nullopt at the end of the connection or if the frame is malformed.
std::optional<std::string> receive();
/// Sends a message. Returns false if the parent has closed the socket.
bool send(std::string_view message);

}  // namespace child_socket

}  // namespace fjord
