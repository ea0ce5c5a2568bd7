#include "output/parquet.h"

#include <csignal>
#include <fcntl.h>
#include <initializer_list>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "output/json_text.h"

extern char** environ;

namespace fjord::cli {
namespace {

constexpr const char* kCheck = "import pyarrow.parquet";

// Writes one column for each field of the document types that occur, or (third argument "seen") for each field with a
// value. A field is JSON text, marked so in the column, if Parquet has no simple type for it or two document types
// declare it differently. The program reads the lines twice, because it knows the types only after the first pass.
constexpr const char* kWrite = R"(
import base64, json, os, sys
import pyarrow as pa
import pyarrow.parquet as pq

SIMPLE = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "byte": pa.int8(), "float": pa.float32(),
          "double": pa.float64(), "bool": pa.bool_(), "raw": pa.binary()}
source, target, which, declared = sys.argv[1:5]
types = json.loads(declared)

def documents():
    with open(source, encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            if "put" in document:
                yield document["put"], document.get("type"), document["fields"]
def type_of(name, said):
    parts = name.split(":")
    return said or (parts[2] if parts[0] == "id" and len(parts) > 2 else None)
# A floating-point number without a fraction is an integer in JSON.
MAKERS = {"raw": base64.b64decode, "float": float, "double": float}
def arrow(kinds):
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind in SIMPLE:
        return SIMPLE[kind], MAKERS.get(kind)
    element = kind[6:-1] if kind and kind.startswith("array<") else None
    if element in SIMPLE:
        make = MAKERS.get(element, lambda value: value)
        return pa.list_(SIMPLE[element]), lambda values: [None if value is None else make(value) for value in values]
    return None, lambda value: json.dumps(value, ensure_ascii=False)

occurring, seen = set(), set()
for name, said, fields in documents():
    occurring.add(type_of(name, said))
    seen.update(fields)
kinds = {}
for one in sorted(occurring & types.keys()):
    for field, kind in types[one].items():
        if which == "all" or field in seen:
            kinds.setdefault(field, set()).add(kind)
columns, makers = [pa.field("_id", pa.string())], {}
for field, its in kinds.items():
    type, maker = arrow(its)
    columns.append(pa.field(field, type) if type else pa.field(field, pa.string(), metadata={"fjord": "json"}))
    makers[field] = maker
schema = pa.schema(columns, metadata={"fjord": "export"})
def cell(row, name):
    value = row.get(name)
    maker = makers.get(name)
    return maker(value) if maker and value is not None else value
def write(writer, batch):
    columns = [pa.array([cell(row, c.name) for row in batch], c.type) for c in schema]
    writer.write_table(pa.table(columns, schema=schema))
with pq.ParquetWriter(target + ".new", schema, compression="zstd") as writer:
    batch = []
    for name, said, fields in documents():
        batch.append({"_id": name, **fields})
        if len(batch) == 20000:
            write(writer, batch)
            batch = []
    write(writer, batch)
os.replace(target + ".new", target)
)";

constexpr const char* kRead = R"(
import base64, decimal, json, sys
import pyarrow.parquet as pq

def plain(value):
    if isinstance(value, bytes): return base64.b64encode(value).decode()
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

/// Runs python3 and returns its exit code; -1 if it did not start or did not exit normally.
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
  // The child must not inherit the signal mask: this process blocks the signals that it waits for.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int failed = ::posix_spawnp(&child, "python3", &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
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

Status jsonl_to_parquet(const std::string& jsonl, const std::string& parquet, const DocumentTypeRepo& types,
                        bool all_fields) {
  JsonText declared;
  declared.begin_object();
  for (const auto& type : types.types()) {
    declared.key(type->name()).begin_object();
    for (const Field& field : type->fields()) declared.key(field.name).text(field.type->name());
    declared.end_object();
  }
  declared.end_object();
  const std::initializer_list<std::string> arguments = {jsonl, parquet, all_fields ? "all" : "seen", declared.str()};
  if (run_python(kWrite, arguments, false) == 0) return Status::ok();
  return {StatusCode::IoError, parquet + " cannot be written; the documents are in " + jsonl};
}

Status parquet_to_jsonl(const std::string& parquet, const std::string& jsonl) {
  if (run_python(kRead, {parquet, jsonl}, false) == 0) return Status::ok();
  return {StatusCode::IoError, parquet + " cannot be read"};
}

}  // namespace fjord::cli
