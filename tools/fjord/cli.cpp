#include "cli.h"

#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <iostream>
#include <system_error>
#include <unistd.h>

#include "output/progress.h"
#include "output/terminal_text.h"
#include "output/yaml_text.h"

namespace fjord::cli {

int exit_code(const Status& status) {
  switch (status.code()) {
    case StatusCode::Ok:
      return kOk;
    case StatusCode::InvalidId:
    case StatusCode::InvalidField:
    case StatusCode::InvalidSelection:
    case StatusCode::InvalidArgument:
      return kUsage;
    case StatusCode::UnknownType:
    case StatusCode::NotFound:
      return kNotFound;
    case StatusCode::TestAndSetFailed:
      return kConditionFalse;
    case StatusCode::Timeout:
      return kTimeout;
    default:
      return kFailed;
  }
}

int failure_code(const Status& status) {
  const int code = exit_code(status);
  return code == kUsage ? static_cast<int>(kFailed) : code;
}

void complain(const std::string& message) {
  hide_progress();
  std::fprintf(stderr, "fjord: %s\n", terminal_text(message).c_str());
}

int report(const Status& status) {
  complain(status.to_string());
  return exit_code(status);
}

int report_failure(const Status& status) {
  complain(status.to_string());
  return failure_code(status);
}

Result<std::map<std::string, std::string>> parse_assignments(const std::string& option,
                                                             const std::vector<std::string>& texts) {
  std::map<std::string, std::string> values;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Status(StatusCode::InvalidArgument, fmt::format("{} {}: expected NAME=VALUE", option, text));
    }
    values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return values;
}

namespace {

/// Returns the message for people that says why there is no connection, and what to do.
Status connection_error(const Status& error, const Common& common) {
  if (error.code() == StatusCode::InvalidArgument) return error.with_context("--cluster");
  const char* const remedy =
      common.cluster == kDefaultCluster
          ? "`fjord local start` or `fjord dev` starts a cluster, --cluster or FJORD_CLUSTER names another one"
          : "is the cluster running, and are these the distributors that --cluster or FJORD_CLUSTER has to name?";
  // The same code for a refused connection and a timeout: either way the cluster is unreachable.
  return Status(StatusCode::Unavailable, fmt::format("{}; {}", error.message(), remedy));
}

}  // namespace

Client client_of(const Common& common) {
  ClientSettings settings;
  settings.timeout = common.timeout();
  return connect(common.cluster, settings);
}

Status ready(Client& client, const Common& common) {
  const Status status = client.ping();
  return status ? status : connection_error(status, common);
}

namespace {

bool is_yaml_wanted = false;  // Set once, while the command line is parsed.
int output_errno = 0;         // The errno of the first write to standard output that failed. One thread prints.
bool is_output_told = false;  // A caller has got the error, to report it.

void note_output_error() {
  if (output_errno == 0) output_errno = errno != 0 ? errno : EIO;
}

void write_out(const std::string& text) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  const std::string shown = is_terminal ? terminal_text(text) : std::string();
  const std::string& written = is_terminal ? shown : text;
  errno = 0;
  if (std::fwrite(written.data(), 1, written.size(), stdout) != written.size()) note_output_error();
}

}  // namespace

void print_json_as_yaml() { is_yaml_wanted = true; }

void print_line(const std::string& line) {
  print(line + "\n");
  errno = 0;
  if (std::fflush(stdout) != 0) note_output_error();
}

void print(const std::string& text) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (is_terminal && !text.empty()) hide_progress();
  write_out(is_yaml_wanted ? yaml_of_json_lines(text) : text);
}

Status output_status() {
  if (output_errno == 0) return Status::ok();
  is_output_told = true;
  return {StatusCode::IoError, "standard output cannot be written: " + std::generic_category().message(output_errno)};
}

Status flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_output_error();
  return output_status();
}

int exit_code_after_output(int code) {
  errno = 0;
  std::cout.flush();  // Help and the version are printed by CLI11.
  if (std::cout.bad()) note_output_error();
  const bool was_told = is_output_told;
  const Status status = flush_output();
  if (status) return code;
  return was_told ? code : report(status);
}

}  // namespace fjord::cli
