#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/library/client.h"
#include "fjord/rpc/messages.h"

namespace fjord {
class Connection;
}

/// What the commands share. Data goes to standard output, messages to standard error.
namespace fjord::cli {

/// The exit codes of every command.
enum Exit : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kNotFound = 3,
  kPartial = 5,
  kTimeout = 6,
  kInDoubt = 7,
  kRefused = 8,
};

/// Options of every command that talks to a cluster.
struct Common {
  std::string cluster;
  std::string output = "text";
  double timeout_s = 30;

  bool json() const { return output == "json"; }
  Duration timeout() const { return Duration(static_cast<std::int64_t>(timeout_s * 1e6)); }
};

/// The exit code that says `status`, the same in every command: kUsage for what the command line says and no cluster
/// could do, kNotFound for what it names and is not there.
int exit_code(const Status& status);
/// The same for something that was understood and then failed, such as a job or a document in a file: never kUsage.
int failure_code(const Status& status);
/// "fjord: <message>" on standard error.
void complain(const std::string& message);
/// The message of the status and its code on standard error; returns the exit code.
int report(const Status& status);
/// The same with failure_code().
int report_failure(const Status& status);

/// The values of --param. Errors: InvalidArgument for what is not NAME=VALUE.
Result<std::vector<rpc::Parameter>> parse_parameters(const std::vector<std::string>& texts);

/// A connection to the cluster of the options, once a distributor has answered. Errors: InvalidArgument for what is no
/// list of addresses; Unavailable if no distributor answers.
Result<std::unique_ptr<Connection>> connect_to(const Common& common);

/// A client of the cluster of the options, which connects when it is first used.
Client client_of(const Common& common);
/// Waits until a distributor of the client has answered. Errors: as connect_to().
Status ready(Client& client, const Common& common);

/// One line to standard output, at once.
void print_line(const std::string& line);
/// To standard output as it is.
void print(const std::string& text);

}  // namespace fjord::cli
