#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <functional>

#include "commands.h"
#include "feed_run.h"
#include "feed_source.h"
#include "fjord/client/connect.h"
#include "import_source.h"
#include "parquet.h"

namespace fjord::cli {
namespace {

using Open = std::function<Result<std::unique_ptr<RecordSource>>(std::unique_ptr<InputFile>,
                                                                 std::shared_ptr<const DocumentTypeRepo>)>;

int run_feeds(const FeedArgs& args, const Open& open) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  AsyncClient& client = (*connection)->client();
  if (Status status = (*connection)->sync().refresh_schemas(); !status) return report(status);
  const auto types = client.snapshot()->types();

  FeedRunOptions options;
  options.timeout = args.common.timeout();
  options.errors_shown = args.errors_shown;
  options.window_operations = args.in_flight;
  if (args.background) options.priority = rpc::Priority::Background;
  options.progress = Progress::when(args.progress);
  options.resume_file = args.resume_file;
  FeedRun run(client, options);
  if (!args.resume_file.empty()) {
    if (Status status = run.load_progress(args.files.front()); !status) return report(status);
  }
  for (const std::string& path : args.files) {
    auto file = InputFile::open(path);
    if (!file) {
      run.fail(file.error());
      continue;
    }
    auto source = open(std::move(*file), types);
    if (!source) {
      run.fail(source.error());
      continue;
    }
    run.feed(**source);
  }
  print_line(run.finish());
  return run.exit_code();
}

bool is_jsonl(const std::string& path) {
  std::string_view name = path;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name.ends_with(".jsonl") || name.ends_with(".json") || name.ends_with(".ndjson");
}

}  // namespace

int run_feed(const FeedArgs& args) {
  if (std::any_of(args.files.begin(), args.files.end(), is_parquet)) {
    complain("a feed is JSON; `fjord import` reads Parquet");
    return kUsage;
  }
  return run_feeds(args, [](std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types) {
    return Result<std::unique_ptr<RecordSource>>(std::make_unique<FeedSource>(std::move(file), std::move(types)));
  });
}

namespace {

/// A temporary file with the rows of a Parquet file as JSON lines, in the same folder. The destructor removes it.
class ParquetLines {
 public:
  explicit ParquetLines(const std::string& parquet) : path_(parquet + ".import.jsonl") {
    status_ = check_parquet();
    if (status_) status_ = parquet_to_jsonl(parquet, path_);
  }
  ~ParquetLines() { std::remove(path_.c_str()); }
  ParquetLines(const ParquetLines&) = delete;
  ParquetLines& operator=(const ParquetLines&) = delete;
  const Status& status() const { return status_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Status status_;
};

}  // namespace

int run_import(const FeedArgs& args) {
  if (args.files.size() > 1 && !args.resume_file.empty()) {
    complain("--resume keeps how far one file is, not several");
    return kUsage;
  }
  if (std::any_of(args.files.begin(), args.files.end(), is_parquet)) {
    FeedArgs lines = args;
    std::vector<std::unique_ptr<ParquetLines>> made;
    for (std::string& file : lines.files) {
      if (!is_parquet(file)) continue;
      made.push_back(std::make_unique<ParquetLines>(file));
      if (!made.back()->status()) return report(made.back()->status());
      file = made.back()->path();
    }
    return run_import(lines);
  }
  // Lines that `fjord export` wrote contain the ids, so no type is needed.
  if (args.type.empty() && std::all_of(args.files.begin(), args.files.end(), is_jsonl)) return run_feed(args);
  if (args.type.empty()) {
    complain("--type is needed for a table; without, FILE.jsonl or FILE.parquet as `fjord export` writes them");
    return kUsage;
  }
  if (args.id_row && args.files.size() > 1) {
    complain("--id-row numbers the rows of one file; with several files their documents would have the same ids");
    return kUsage;
  }
  const ImportOptions options{args.type, args.id_field, args.namespace_};
  return run_feeds(args,
                   [&](std::unique_ptr<InputFile> file,
                       std::shared_ptr<const DocumentTypeRepo> types) -> Result<std::unique_ptr<RecordSource>> {
                     if (is_jsonl(file->name())) {
                       FJORD_TRY_ASSIGN(auto source, JsonImport::open(std::move(file), std::move(types), options));
                       return std::unique_ptr<RecordSource>(std::move(source));
                     }
                     std::vector<std::string> warnings;
                     auto source = CsvImport::open(std::move(file), std::move(types), options, warnings);
                     for (const std::string& warning : warnings) complain("warning: " + warning);
                     if (!source) return source.error();
                     return std::unique_ptr<RecordSource>(std::move(*source));
                   });
}

}  // namespace fjord::cli
