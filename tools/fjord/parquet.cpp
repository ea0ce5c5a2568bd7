#include "parquet.h"

#include <fcntl.h>
#include <initializer_list>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace fjord::cli {
namespace {

constexpr const char* kCheck = "import pyarrow.parquet";

// A column whose values are not all of one plain kind holds each as JSON text, and says so in the file's schema. Two
// passes over the lines: which columns there are is known at the end only.
constexpr const char* kWrite = R"(
import json, os, sys
import pyarrow as pa
import pyarrow.parquet as pq

def rows(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            if "put" in document:
                yield {"_id": document["put"], **document["fields"]}

PLAIN = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
source, target = sys.argv[1:3]
kinds = {"_id": {str}}
for row in rows(source):
    for name, value in row.items():
        kinds.setdefault(name, set()).add(type(value))
columns = []
for name, seen in kinds.items():
    plain = PLAIN.get(next(iter(seen))) if len(seen) == 1 else None
    columns.append(pa.field(name, plain) if plain else pa.field(name, pa.string(), metadata={"fjord": "json"}))
schema = pa.schema(columns, metadata={"fjord": "export"})
def cell(row, column):
    value = row.get(column.name)
    return json.dumps(value, ensure_ascii=False) if value is not None and column.metadata else value
def write(writer, batch):
    writer.write_table(pa.table([pa.array([cell(row, c) for row in batch], c.type) for c in schema], schema=schema))
with pq.ParquetWriter(target + ".new", schema, compression="zstd") as writer:
    batch = []
    for row in rows(source):
        batch.append(row)
        if len(batch) == 20000:
            write(writer, batch)
            batch = []
    write(writer, batch)
os.replace(target + ".new", target)
)";

constexpr const char* kRead = R"(
import decimal, json, sys
import pyarrow.parquet as pq

def plain(value):
    if hasattr(value, "isoformat"): return value.isoformat()
    if isinstance(value, decimal.Decimal): return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"there is no field for a value of {type(value).__name__}")
source, target = sys.argv[1:3]
file = pq.ParquetFile(source)
is_export = (file.schema_arrow.metadata or {}).get(b"fjord") == b"export"
texts = {column.name for column in file.schema_arrow if (column.metadata or {}).get(b"fjord") == b"json"}
with open(target, "w", encoding="utf-8") as out:
    for batch in file.iter_batches(batch_size=20000):
        for row in batch.to_pylist():
            row = {name: json.loads(value) if name in texts else value
                   for name, value in row.items() if value is not None}
            if is_export:
                row = {"put": row.pop("_id"), "fields": row}
            try:
                out.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=plain) + "\n")
            except (TypeError, ValueError) as problem:
                sys.exit(f"{source}: {problem}: {row}")
)";

/// The exit code, or -1 if it could not be started.
int run_python(const char* script, std::initializer_list<std::string> arguments, bool quiet) {
  std::vector<std::string> texts = {"python3", "-c", script};
  texts.insert(texts.end(), arguments);
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, "python3", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int state = 0;
  if (::waitpid(child, &state, 0) != child || !WIFEXITED(state)) return -1;
  return WEXITSTATUS(state);
}

}  // namespace

bool is_parquet(const std::string& path) { return path.ends_with(".parquet"); }

Status check_parquet() {
  if (run_python(kCheck, {}, true) == 0) return Status::ok();
  return {StatusCode::NotImplemented,
          "Parquet needs python3 with the package pyarrow, which this machine does not have: pip install pyarrow, or "
          "use .jsonl or .jsonl.gz"};
}

Status jsonl_to_parquet(const std::string& jsonl, const std::string& parquet) {
  if (run_python(kWrite, {jsonl, parquet}, false) == 0) return Status::ok();
  return {StatusCode::IoError, parquet + " cannot be written; the documents are in " + jsonl};
}

Status parquet_to_jsonl(const std::string& parquet, const std::string& jsonl) {
  if (run_python(kRead, {parquet, jsonl}, false) == 0) return Status::ok();
  return {StatusCode::IoError, parquet + " cannot be read"};
}

}  // namespace fjord::cli
