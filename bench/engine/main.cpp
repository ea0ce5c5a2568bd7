// fjord-bench-engine: measures storage engines side by side.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

#include "engine_report.h"
#include "engine_run.h"

namespace fjord::bench {
namespace {

constexpr std::uint64_t kSmallDocuments = 300'000;
constexpr std::uint64_t kLargeDocuments = 20'000;

struct Settings {
  std::vector<std::string> engines;
  std::vector<std::string> sizes = {"small", "large"};
  std::uint64_t documents = kSmallDocuments;
  std::uint64_t large_documents = kLargeDocuments;
  std::uint64_t seed = 1;
  unsigned repeat = 1;
  bool quick = false;
  bool list = false;
  std::string directory = std::filesystem::temp_directory_path().string();
  std::string subject = "slotfile";
  std::string csv;
  std::string markdown;
};

/// Returns an empty list, with a message, if a name is unknown.
std::vector<EngineConfiguration> chosen_engines(const std::vector<std::string>& names) {
  std::vector<EngineConfiguration> all = engine_configurations();
  if (names.empty()) return all;
  std::vector<EngineConfiguration> chosen;
  for (const std::string& name : names) {
    const std::size_t before = chosen.size();
    for (const EngineConfiguration& engine : all) {
      if (engine.name == name || engine.family == name) chosen.push_back(engine);
    }
    if (chosen.size() == before) {
      fmt::print(stderr, "fjord-bench-engine: there is no engine \"{}\"; see --list\n", name);
      return {};
    }
  }
  return chosen;
}

/// Returns false if an engine failed or returned a wrong answer; the others are still measured.
bool measure(const Settings& settings, const ReportOptions& report, const RunOptions& options, Figures& figures) {
  bool all_well = true;
  const auto check = [&](const std::string& name, const Status& status) {
    if (status) return;
    fmt::print(stderr, "fjord-bench-engine: {} failed: {}\n", name, status.to_string());
    all_well = false;
  };
  for (const DocumentSize size : report.sizes) {
    const std::uint64_t documents = size == DocumentSize::Small ? settings.documents : settings.large_documents;
    const Corpus corpus(size, documents, settings.seed);
    figures.set_document_bytes(size, corpus.document_bytes());
    for (unsigned repetition = 1; repetition <= settings.repeat; ++repetition) {
      fmt::print(stderr, "{} documents of {} bytes, repetition {} of {}\n", documents, corpus.document_bytes(),
                 repetition, settings.repeat);
      check(std::string(kPlainFile), measure_plain_file(corpus, options, figures));
      for (const EngineConfiguration& engine : report.engines) {
        check(engine.name, EngineRun(engine, corpus, options, figures).run());
      }
    }
  }
  return all_well;
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::trunc);
  out << text;
  out.close();
  if (out) return true;
  fmt::print(stderr, "fjord-bench-engine: cannot write {}\n", path);
  return false;
}

int run(const Settings& settings) {
  ReportOptions report{.subject = settings.subject, .sizes = {}, .engines = chosen_engines(settings.engines)};
  if (report.engines.empty()) return 2;
  if (settings.list) {
    for (const EngineConfiguration& engine : report.engines) fmt::print("{}: {}\n", engine.name, engine.settings);
    return 0;
  }
  for (const DocumentSize size : {DocumentSize::Small, DocumentSize::Large}) {
    if (std::count(settings.sizes.begin(), settings.sizes.end(), to_string(size)) > 0) report.sizes.push_back(size);
  }

  const std::string directory = fmt::format("{}/fjord-bench-engine.{}", settings.directory, ::getpid());
  const Result<EngineDirectory> work = EngineDirectory::make(directory);
  if (!work) {
    fmt::print(stderr, "fjord-bench-engine: {}\n", work.error().to_string());
    return 1;
  }
  RunOptions options{.directory = directory};
  if (settings.quick) options.cold_gets_max = 500;
  Figures figures;
  bool all_well = measure(settings, report, options, figures);
  fmt::print("{}", make_report(figures, report, TableStyle::Text));
  if (!settings.csv.empty()) all_well &= write_file(settings.csv, make_csv(figures, report));
  if (!settings.markdown.empty()) {
    std::string text = make_report(figures, report, TableStyle::Markdown);
    text += "\n### Settings\n\n";
    for (const EngineConfiguration& engine : report.engines) {
      text += fmt::format("- **{}**: {}\n", engine.name, engine.settings);
    }
    all_well &= write_file(settings.markdown, text);
  }
  return all_well ? 0 : 1;
}

}  // namespace
}  // namespace fjord::bench

int main(int argc, char** argv) {
  fjord::bench::Settings settings;
  CLI::App app(
      "Puts, gets, iterates and removes the same documents with several storage engines, one after the other.");
  app.option_defaults()->always_capture_default();
  app.add_option("--engines", settings.engines, "names or families of engines; all without it")->delimiter(',');
  app.add_option("--sizes", settings.sizes, "small (0.8 kB), large (155 kB)")
      ->delimiter(',')
      ->check(CLI::IsMember({"small", "large"}));
  CLI::Option* const documents =
      app.add_option("--documents", settings.documents, "small documents")->check(CLI::Range(100, 100'000'000));
  CLI::Option* const large = app.add_option("--large-documents", settings.large_documents, "large documents")
                                 ->check(CLI::Range(100, 10'000'000));
  app.add_option("--seed", settings.seed, "what the documents are made from");
  app.add_option("--repeat", settings.repeat, "repetitions; figures are medians")->check(CLI::Range(1, 100));
  app.add_option("--directory", settings.directory, "folder for the data, which is removed afterwards");
  app.add_option("--subject", settings.subject, "the engine that the targets are for");
  app.add_option("--csv", settings.csv, "file for all figures");
  app.add_option("--markdown", settings.markdown, "file for the tables");
  app.add_flag("--quick", settings.quick, "20,000 small and 400 large documents, to see that it works");
  app.add_flag("--list", settings.list, "names and settings of the engines, no more");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (settings.quick && documents->count() == 0) settings.documents = 20'000;
  if (settings.quick && large->count() == 0) settings.large_documents = 400;
  return fjord::bench::run(settings);
}
