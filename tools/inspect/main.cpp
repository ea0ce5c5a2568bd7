// fjord-inspect: shows and verifies the files of the slotfile engine, without a running node.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/core.h>
#include <memory>

#include "fjord/common/fatal_signals.h"
#include "fjord/version/version.h"
#include "report.h"

namespace fjord::inspect {

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

/// Adds the store in `path`, or all stores in folders below it.
Status add_directory(Env& env, const std::string& path, const std::vector<std::string>& names,
                     const InspectOptions& options, Findings& findings) {
  const bool is_store = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    constexpr std::size_t kSlotfileNameLength = 13;  // "0000001f.slot"; names of version 1 are longer
    return name.starts_with("catalog-") || name.starts_with("journal-") ||
           (name.ends_with(".slot") && name.size() == kSlotfileNameLength);
  });
  if (is_store) {
    FJORD_TRY_ASSIGN(StoreReport report, inspect_store(env, path, options));
    findings.stores.push_back(std::move(report));
    return Status::ok();
  }
  for (const std::string& name : names) {
    const std::string child = path + "/" + name;
    const Result<std::vector<std::string>> grandchildren = env.list_directory(child);
    if (grandchildren) FJORD_TRY(add_directory(env, child, *grandchildren, options, findings));
  }
  return Status::ok();
}

Status add_path(Env& env, const std::string& path, const InspectOptions& options, Findings& findings) {
  if (const Result<std::vector<std::string>> names = env.list_directory(path)) {
    return add_directory(env, path, *names, options, findings);
  }
  FJORD_TRY_ASSIGN(StoreReport report, inspect_store_file(env, path, options));
  findings.stores.push_back(std::move(report));
  return Status::ok();
}

int run(bool dump, const std::vector<std::string>& paths, const std::string& format) {
  const std::unique_ptr<Env> env = make_posix_env();
  Findings findings;
  for (const std::string& path : paths) {
    if (const Status status = add_path(*env, path, {.entries = dump}, findings); !status) {
      fmt::print(stderr, "fjord-inspect: {}\n", status.to_string());
      return kExitFailed;
    }
  }
  if (findings.stores.empty()) {
    fmt::print(stderr, "fjord-inspect: no files of an engine there\n");
    return kExitFailed;
  }
  if (dump) {
    fmt::print("{}", format == "json" ? to_json(findings) : to_text(findings));
    return 0;
  }
  for (const StoreReport& store : findings.stores) {
    for (const InspectFinding& finding : store.findings) {
      const bool problem = finding.severity == InspectFinding::Severity::Problem;
      fmt::print(problem ? stdout : stderr, "{}{}\n", problem ? "" : "note: ", to_string(finding));
    }
  }
  fmt::print(stderr, "{} slotfiles with {} entries, {} journal segments with {} records, {} problems\n",
             findings.slotfile_count(), findings.entry_count(), findings.segment_count(), findings.record_count(),
             findings.problem_count());
  return findings.problem_count() == 0 ? 0 : kExitFailed;
}

}  // namespace

}  // namespace fjord::inspect

int main(int argc, char** argv) {
  fjord::report_fatal_signals("fjord-inspect");
  CLI::App app(
      "Shows and verifies the files of the slotfile engine. PATH is the folder of an engine, a folder with such "
      "folders\n"
      "in it, as that of a storage node, or a single catalog, journal segment or slotfile. Nothing is changed. The "
      "node\n"
      "should not be running.\n",
      "fjord-inspect");
  app.footer(
      "Examples:\n"
      "  fjord-inspect verify /var/lib/fjord/storage-0\n"
      "  fjord-inspect dump -o json /var/lib/fjord/storage-0/buckets/0000001f.slot\n"
      "Exit status: 0 if all is well, 1 if something is damaged or cannot be read, 2 for wrong usage.");
  app.set_version_flag("--version", fjord::version_text("fjord-inspect"), "Prints the version and exits");
  app.require_subcommand(1);
  std::vector<std::string> paths;
  std::string format = "text";
  CLI::App* dump = app.add_subcommand("dump", "Prints catalogs, buckets, journal records and metadata entries");
  dump->add_option("-o,--output", format, "text or json")->check(CLI::IsMember({"text", "json"}));
  dump->add_option("PATH", paths, "What to show")->required();
  CLI::App* verify = app.add_subcommand("verify", "Checks every checksum; prints what is wrong and where");
  verify->add_option("PATH", paths, "What to check")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : fjord::inspect::kExitUsage;
  }
  const int code = fjord::inspect::run(dump->parsed(), paths, format);
  // Findings that were not printed must not look like none.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "fjord-inspect: standard output cannot be written\n");
  return fjord::inspect::kExitFailed;
}
