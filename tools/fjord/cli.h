#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/library/admin.h"
#include "fjord/library/client.h"

/// Functions that the commands share. Data goes to standard output, messages to standard error.
namespace fjord::cli {

/// The exit codes of every command.
enum Exit : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kNotFound = 3,
  kConditionFalse = 4,
  kPartial = 5,
  kTimeout = 6,
  kInDoubt = 7,
  kRefused = 8,
};

/// The distributor of a cluster that `fjord local` or `fjord dev` starts on the usual ports.
inline constexpr const char* kDefaultCluster = "127.0.0.1:19100";

/// Options of every command that talks to a cluster.
struct Common {
  std::string cluster;
  std::string output = "text";
  double timeout_s = 30;

  bool json() const { return output == "json"; }
  Duration timeout() const { return Duration(static_cast<std::int64_t>(timeout_s * 1e6)); }
};

/// Returns the exit code of `status`, the same in every command: kUsage if no cluster could execute the command line,
/// kNotFound if an object named on it does not exist.
int exit_code(const Status& status);
/// Returns the exit code of a valid request that failed, such as a job or a document in a file: never kUsage.
int failure_code(const Status& status);
/// Prints "fjord: <message>" to standard error.
void complain(const std::string& message);
/// Prints the message and the code of `status` to standard error. Returns exit_code().
int report(const Status& status);
/// Prints the message and the code of `status` to standard error. Returns failure_code().
int report_failure(const Status& status);

/// Parses texts NAME=VALUE. Errors: InvalidArgument that quotes the text behind `option`.
Result<std::map<std::string, std::string>> parse_assignments(const std::string& option,
                                                             const std::vector<std::string>& texts);

/// Returns a client of the cluster of the options. It connects at its first use.
Client client_of(const Common& common);
/// Waits until a distributor has answered. Errors: InvalidArgument if the addresses are malformed; Unavailable if no
/// distributor answers.
Status ready(Client& client, const Common& common);

/// Connects to the cluster of the options and calls `use(Admin)`. Returns its exit code.
template <typename F>
int with_admin(const Common& common, F use) {
  Client client = client_of(common);
  if (const Status status = ready(client, common); !status) return report(status);
  return use(client.admin());
}

/// From then on the functions below print lines of JSON as YAML.
void print_json_as_yaml();
/// Prints one line to standard output and flushes it.
void print_line(const std::string& line);
/// Prints `text`, which consists of whole lines, to standard output. An error is kept for output_status().
void print(const std::string& text);

/// Returns the first error of standard output so far, or OK: a full disk, a closed pipe. Text that is still buffered
/// counts as printed. Errors: IoError.
Status output_status();
/// As output_status(), after everything that was printed has been handed to the system. A command that remembers how
/// far it has come calls it before it does.
Status flush_output();
/// Flushes standard output at the end of the program. Returns `code`, or kFailed with a message if something that was
/// printed has been lost.
int exit_code_after_output(int code);

}  // namespace fjord::cli
