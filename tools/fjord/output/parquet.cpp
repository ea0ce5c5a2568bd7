#include "output/parquet.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "output/python.h"
#include "output/visit_text.h"

namespace fjord::cli {
namespace {

/// The arguments of `python3 -m fjord`.
class TwinCall {
 public:
  TwinCall(const char* command, const Common& common, const std::string& progress) : words_{"-m", "fjord", command} {
    // One word with its value, which may begin with a hyphen.
    add("--cluster", common.cluster).add("--timeout", fmt::format("{}", common.timeout_s)).add("--progress", progress);
  }
  /// Leaves out an empty value.
  TwinCall& add(const char* option, const std::string& value) {
    if (!value.empty()) words_.push_back(fmt::format("{}={}", option, value));
    return *this;
  }
  TwinCall& add(const char* option, std::uint64_t value) { return add(option, fmt::format("{}", value)); }
  TwinCall& add_flag(const char* option, bool is_set) {
    if (is_set) words_.emplace_back(option);
    return *this;
  }
  int run(const std::vector<std::string>& files) {
    if (run_python({"-m", "fjord", "check"}, true) == 0) {
      words_.emplace_back("--");
      words_.insert(words_.end(), files.begin(), files.end());
      become_python(std::move(words_));
    }
    return report(
        {StatusCode::NotImplemented,
         "Parquet needs a python3 on the PATH with the packages fjord and pyarrow (docs/python/README.md), or "
         "use .jsonl or .csv, both also with .gz"});
  }

 private:
  std::vector<std::string> words_;
};

/// What parse_part() sets.
struct Part {
  Timestamp from{0};
  Timestamp to{0};
  std::optional<VisitSlice> slice;
};

}  // namespace

bool is_parquet(const std::string& path) { return path.ends_with(".parquet"); }

int export_parquet(const ExportArgs& args) {
  Part part;
  if (const Status parsed = parse_part(args, part); !parsed) return report(parsed);
  TwinCall call("export", args.common, args.progress);
  call.add("--type", args.type).add("--selection", args.selection).add("--fields", args.fields);
  call.add("--slice", args.slice).add("--priority", args.priority);
  if (!args.from.empty()) call.add("--since", part.from.us);
  if (!args.to.empty()) call.add("--until", part.to.us);
  call.add("--visitors-per-node", args.visitors_per_node).add("--buckets-at-once", args.buckets_at_once);
  call.add("--buckets-per-visitor", args.buckets_per_visitor);
  call.add_flag("--snapshot", args.snapshot).add_flag("--resume", args.resume);
  return call.add_flag("--overwrite", args.overwrite).run({args.file});
}

int import_parquet(const FeedArgs& args) {
  TwinCall call("import", args.common, args.progress);
  call.add("--type", args.type).add("--id-field", args.id_field).add_flag("--id-row", args.id_row);
  call.add("--namespace", args.namespace_).add("--cursor", args.cursor_file);
  call.add_flag("--create-only", args.create_only);
  call.add("--errors-shown", args.errors_shown).add_flag("--background", args.background);
  if (args.in_flight != 0) call.add("--in-flight", args.in_flight);
  return call.run(args.files);
}

}  // namespace fjord::cli
