#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <rapidjson/document.h>

#include "commands/commands.h"
#include "commands/job_client.h"
#include "fjord/library/detail/aggregate_run.h"
#include "fjord/library/detail/csv_cell.h"
#include "fjord/library/detail/input_file.h"
#include "output/json_text.h"
#include "output/progress.h"
#include "output/text_table.h"

namespace fjord::cli {
namespace {

using mapreduce::AggregateColumn;
using mapreduce::AggregateJob;
using mapreduce::AggregatePlan;
using mapreduce::AggregateSpec;
using mapreduce::ColumnKind;
using mapreduce::KeyedResult;

constexpr std::size_t kSpecBytesMax = std::size_t{1} << 20;

/// Reads the job from the file and the command line, which has precedence. Its options apply to the first pass, but
/// --into applies to the last one.
Result<AggregateJob> job_of(const AggregateArgs& args) {
  AggregateJob job;
  job.passes.emplace_back();
  if (!args.spec_file.empty()) {
    FJORD_TRY_ASSIGN(auto file, InputFile::open(args.spec_file));
    FJORD_TRY_ASSIGN(const std::string text, file->read_all(kSpecBytesMax));
    auto read = AggregateJob::from_json(text);
    if (!read) return read.error().with_context(file->name());
    job = std::move(*read);
  }
  const auto take_text = [](const std::string& given, std::string& into) {
    if (!given.empty()) into = given;
  };
  const auto take_list = [](const std::vector<std::string>& given, std::vector<std::string>& into) {
    if (!given.empty()) into.clear();
    for (const std::string& text : given) {
      for (std::string& part : mapreduce::split_list(text)) into.push_back(std::move(part));
    }
  };
  AggregateSpec& first = job.passes.front();
  take_text(args.type, first.type);
  take_text(args.selection, first.selection);
  take_text(args.having, first.having);
  take_list(args.group_by, first.group_by);
  take_list(args.aggregates, first.aggregates);
  take_list(args.order_by, first.order_by);
  if (args.limit != 0) first.limit = args.limit;
  if (first.type.empty()) return Status(StatusCode::InvalidArgument, "--type is missing: which documents?");
  for (const std::string& text : args.then) {
    auto pass = AggregateSpec::from_json(text, false);
    if (!pass) return pass.error().with_context("--then");
    if (!pass->type.empty()) {
      return Status(StatusCode::InvalidArgument, "--then: it reads the rows so far, so it has no \"type\"");
    }
    job.passes.push_back(std::move(*pass));
  }
  take_text(args.into, job.passes.back().into);
  return job;
}

/// Returns a cell as text for people. An estimate is shown as `mark` and its number.
std::string shown(std::string_view json, const char* null, const char* mark) {
  if (json == "null") return null;
  if (json.starts_with('"')) {
    rapidjson::Document text;
    text.Parse(json.data(), json.size());
    return text.IsString() ? std::string(text.GetString(), text.GetStringLength()) : std::string(json);
  }
  return json.starts_with('{') ? mark + estimate_of(json) : std::string(json);
}

class Table {
 public:
  explicit Table(const AggregateEnd& end) : end_(end), plan_(*end.plans.back()) {}

  Status write(const std::string& format) {
    if (format == "json") return write_json();
    return format == "csv" ? write_csv() : write_text();
  }

 private:
  /// Calls `f(cells)` for each row. Errors: Corruption.
  template <typename F>
  Status for_each(F f) const {
    for (const auto& [key, row] : end_.rows) {
      FJORD_TRY_ASSIGN(const std::vector<std::string_view> cells, mapreduce::row_cells(row));
      if (cells.size() != plan_.columns().size()) return Status(StatusCode::Corruption, "a malformed row: " + row);
      f(cells);
    }
    return Status::ok();
  }

  Status write_json() const {
    std::string out;
    FJORD_TRY(for_each([&](const std::vector<std::string_view>& cells) {
      JsonText json;
      json.begin_object();
      for (std::size_t i = 0; i < cells.size(); ++i) json.key(plan_.columns()[i].name).raw(cells[i]);
      out += json.end_object().str() + "\n";
    }));
    print(out);
    return Status::ok();
  }

  Status write_csv() const {
    std::string out = csv_header(plan_);
    FJORD_TRY(for_each_row(end_, [&](std::span<const std::string> cells) {
      out += csv_row(cells);
      return true;
    }));
    print(out);
    return Status::ok();
  }

  Status write_text() const {
    std::vector<TableColumn> columns;
    for (const AggregateColumn& column : plan_.columns()) {
      const bool is_number = column.kind == ColumnKind::Integer || column.kind == ColumnKind::Number;
      columns.push_back({column.name, is_number});
    }
    std::vector<std::vector<std::string>> lines;
    FJORD_TRY(for_each([&](const std::vector<std::string_view>& cells) {
      auto& line = lines.emplace_back();
      for (const std::string_view cell : cells) line.push_back(shown(cell, "-", "~"));
    }));
    print(table_text(columns, std::move(lines)));
    return Status::ok();
  }

  const AggregateEnd& end_;
  const AggregatePlan& plan_;
};

std::string put_text(const JobPassInfo& pass) {
  if (pass.into.type.empty()) return {};
  std::string text = fmt::format("; {} documents of type {} were put", pass.documents_put, pass.into.type);
  if (pass.documents_removed != 0) {
    text += fmt::format(", {} of an earlier run were removed", pass.documents_removed);
  }
  return text;
}

std::string coverage(const JobInfo& job, std::size_t rows) {
  const JobPassInfo& pass = job.current();
  const double seconds = static_cast<double>(job.finished_unix_us - job.submitted_unix_us) / 1e6;
  const std::string missing =
      job.dead_letters == 0
          ? std::string("nothing is missing")
          : fmt::format("{} of them are dead letters and not in the result (fjord job dead-letters {})",
                        job.dead_letters, job.id);
  std::string text =
      fmt::format("{} documents ({} bytes) read in {} of {} buckets, {}; {} rows; {:.3f} s", pass.documents_read,
                  pass.bytes_read, pass.map_tasks_done, pass.map_tasks, missing, rows, seconds);
  if (pass.documents_reused != 0) {
    text += fmt::format("; {} of the documents were known from an earlier run", pass.documents_reused);
  }
  if (pass.tasks_repeated != 0) text += fmt::format("; {} buckets were read again", pass.tasks_repeated);
  text += fmt::format("; shuffle {}", to_string(pass.shuffle));
  if (pass.spilled_bytes != 0) text += fmt::format(", {} bytes spilled to disk", pass.spilled_bytes);
  return text;
}

/// Prints one line about each pass before the last one.
void complain_of_passes(const JobInfo& job) {
  for (std::size_t i = 0; i < std::min(job.passes_done, job.passes.size() - 1); ++i) {
    const JobPassInfo& pass = job.passes[i];
    std::string text =
        fmt::format("pass {}: {} documents read in {} of {} buckets, {} rows; shuffle {}", i + 1, pass.documents_read,
                    pass.map_tasks_done, pass.map_tasks, pass.results, to_string(pass.shuffle));
    if (pass.dead_letters != 0) text += fmt::format("; {} dead letters", pass.dead_letters);
    complain(text + put_text(pass));
  }
}

Result<AggregateRun> run_of(const AggregateArgs& args, AggregateJob job) {
  AggregateRun run;
  run.job = std::move(job);
  run.into_namespace = args.into_namespace;
  run.name = args.name;
  run.shuffle = job_shuffle_from_string(args.shuffle);
  run.incremental = args.incremental;
  FJORD_TRY_ASSIGN(run.settings, parse_assignments("--set", args.settings));
  return run;
}

Result<AggregateEnd> run_with_progress(ClientCore& core, const AggregateArgs& args, AggregateRun run) {
  Progress progress("aggregate", "docs", Progress::when(args.progress));
  const auto passes = static_cast<double>(run.job.passes.size());
  run.on_progress = [&](const JobInfo& job) {
    const JobPassInfo& now = job.current();
    const double part =
        now.map_tasks == 0 ? 0 : static_cast<double>(now.map_tasks_done) / static_cast<double>(now.map_tasks);
    progress.update((static_cast<double>(job.passes_done) + part) / passes, now.documents_read, job.phase);
  };
  return fjord::run_aggregate(core, std::move(run));
}

int aggregate(ClientCore& core, const AggregateArgs& args, AggregateJob written) {
  const bool puts = !written.passes.back().into.empty();
  auto run = run_of(args, std::move(written));
  if (!run) return report(run.error());
  const auto end = run_with_progress(core, args, std::move(*run));
  if (!end) return report(end.error());
  const JobInfo& job = end->job;
  const JobPassInfo& last = job.current();
  if (job.state != JobState::Done) {
    complain_of_passes(job);
    complain(fmt::format("{} {}: {}; {} documents in {} of {} buckets were read", job.id, job.phase,
                         job.error.to_string(), last.documents_read, last.map_tasks_done, last.map_tasks));
    return job.error.is_ok() ? static_cast<int>(kFailed) : failure_code(job.error);
  }
  const Status written_out = Table(*end).write(args.common.output);
  if (!written_out) return report(written_out);
  complain_of_passes(job);
  complain(coverage(job, end->rows.size()));
  if (puts) complain(put_text(last).substr(2));
  return exit_code_of_done(job);
}

}  // namespace

int run_aggregate(const AggregateArgs& args) {
  auto job = job_of(args);
  if (!job) return report(job.error());
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  return aggregate(client.core(), args, std::move(*job));
}

}  // namespace fjord::cli
