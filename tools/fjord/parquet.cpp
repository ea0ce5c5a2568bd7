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

def kind(value):
    return "nested" if isinstance(value, (dict, list)) else type(value).__name__

source, target = sys.argv[1:3]
kinds = {}
for row in rows(source):
    for name, value in row.items():
        kinds.setdefault(name, set()).add(kind(value))
def type_of(seen):
    if seen <= {"bool"}: return pa.bool_()
    if seen <= {"int"}: return pa.int64()
    if seen <= {"int", "float"}: return pa.float64()
    return pa.string()   # what is nested stays JSON text
schema = pa.schema([(name, type_of(seen)) for name, seen in kinds.items()])
def cell(name, row):
    value = row.get(name)
    if value is None or not pa.types.is_string(schema.field(name).type) or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
def write(writer, batch):
    columns = [[cell(field.name, row) for row in batch] for field in schema]
    writer.write_table(pa.table([pa.array(c, f.type) for c, f in zip(columns, schema)], schema=schema))
with pq.ParquetWriter(target + ".new", schema) as writer:
    batch = []
    for row in rows(source):
        batch.append(row)
        if len(batch) == 20000:
            write(writer, batch)
            batch = []
    if batch:
        write(writer, batch)
os.replace(target + ".new", target)
)";

constexpr const char* kRead = R"(
import json, sys
import pyarrow.parquet as pq

source, target = sys.argv[1:3]
def plain(value):
    return value.isoformat() if hasattr(value, "isoformat") else value
with open(target, "w", encoding="utf-8") as out:
    for batch in pq.ParquetFile(source).iter_batches(batch_size=20000):
        for row in batch.to_pylist():
            row = {name: plain(value) for name, value in row.items() if value is not None}
            identity = row.pop("_id", None)
            if identity is not None:
                fields = {}
                for name, value in row.items():
                    nested = isinstance(value, str) and value[:1] in "[{"
                    try:
                        fields[name] = json.loads(value) if nested else value
                    except ValueError:
                        fields[name] = value
                row = {"put": identity, "fields": fields}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
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
