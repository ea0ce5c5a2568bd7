#include "task.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <fmt/core.h>
#include <limits>
#include <new>
#include <set>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/common/coding.h"
#include "fjord/common/hash.h"

namespace fjord::mapreduce {
namespace {

// Versions of the report of a task. Each one adds fields to the one before.
constexpr std::uint8_t kReportVersion = 1;
constexpr std::uint8_t kLongReportVersion = 2;       // Adds the fields from spilled_bytes to unit_chunks.
constexpr std::uint8_t kFullReportVersion = 3;       // Adds the fields from sent_bytes to dead_letters.
constexpr std::uint8_t kReuseReportVersion = 4;      // Adds the field `reused`.
constexpr std::uint8_t kProcessorReportVersion = 5;  // Adds the field `processor_us`.
constexpr std::size_t kDeadLetterErrorMax = 300;
constexpr std::uint8_t kChunkVersion = 1;
constexpr std::string_view kApplicationPrefix = "application.";
constexpr std::size_t kReserved = std::size_t{64} << 10;

bool parse_number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

/// Reads a parameter about passes, rows that become documents, or processor time into `spec`. Clears `ok` if its value
/// is invalid. Returns false if the parameter is about something else.
bool take_pass_parameter(const rpc::Parameter& parameter, TaskSpec& spec, bool& ok) {
  const std::string& value = parameter.value;
  if (parameter.name == "reads_rows" || parameter.name == "once" || parameter.name == "counts_processors") {
    ok = value == "1";
    (parameter.name == "once"         ? spec.once
     : parameter.name == "reads_rows" ? spec.reads_rows
                                      : spec.counts_processors) = ok;
  } else if (parameter.name == "column") {
    ok = value.size() > 1 && value[0] >= '0' && value[0] <= '0' + static_cast<char>(ColumnKind::Json);
    if (ok) spec.columns.push_back({value.substr(1), static_cast<ColumnKind>(value[0] - '0'), {}});
  } else if (parameter.name == "row_selection") {
    spec.row_selection = value;
  } else if (parameter.name == "puts_results") {
    ok = value == "0";
    spec.puts_results = false;
  } else if (parameter.name == "puts_rows") {
    ok = value == "1" || value == "all";
    spec.puts_rows = true;
    spec.puts_all = value == "all";
  } else if (parameter.name == "into") {
    spec.into.type = value;
  } else if (parameter.name == "into_namespace") {
    spec.into.name_space = value;
  } else if (parameter.name == "into_name") {
    spec.into.name = value;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::vector<BucketId> output_buckets(std::uint64_t base, std::uint32_t count, unsigned bits) {
  std::set<BucketId> buckets;
  for (std::uint32_t i = 0; i < count; ++i) buckets.insert(BucketId(bits, base + i));
  return {buckets.begin(), buckets.end()};
}

std::string TaskSpec::tuples_id(BucketId source, std::uint32_t destination, std::uint32_t counter) const {
  return fmt::format("id:fjord:{}:n={}:{}/{:x}/{}/{}/map", kTuplesType, location(destination), tuples_job(),
                     source.raw(), destination, counter);
}

std::string TaskSpec::result_id(std::string_view key, std::uint32_t destination) const {
  return fmt::format("id:{}:{}:n={}:{}/{}", output_namespace, kResultType, location(destination), job, key_in_id(key));
}

std::vector<rpc::Parameter> TaskSpec::to_parameters() const {
  std::string expected;
  for (const std::uint64_t count : expected_documents)
    expected += (expected.empty() ? "" : ",") + std::to_string(count);
  std::vector<rpc::Parameter> all = {{"job", job},
                                     {"application", application},
                                     {"document_type", document_type},
                                     {"output_namespace", output_namespace},
                                     {"output_base", std::to_string(output_base)},
                                     {"output_buckets", std::to_string(output_buckets)},
                                     {"expected", expected}};
  if (direct) all.push_back({"direct", "1"});
  if (run != 0) all.push_back({"run", std::to_string(run)});
  if (dead_letters_max != 0) all.push_back({"dead_letters_max", std::to_string(dead_letters_max)});
  if (!incremental.empty()) all.push_back({"incremental", incremental});
  if (once) all.push_back({"once", "1"});
  if (reads_rows) all.push_back({"reads_rows", "1"});
  for (const AggregateColumn& column : columns) {
    all.push_back({"column", std::to_string(static_cast<int>(column.kind)) + column.name});
  }
  if (!row_selection.empty()) all.push_back({"row_selection", row_selection});
  if (!puts_results) all.push_back({"puts_results", "0"});
  if (puts_rows) all.push_back({"puts_rows", puts_all ? "all" : "1"});
  if (!into.type.empty()) {
    all.insert(all.end(), {{"into", into.type}, {"into_namespace", into.name_space}, {"into_name", into.name}});
  }
  if (counts_processors) all.push_back({"counts_processors", "1"});
  if (!version.empty()) all.push_back({"version", version});
  for (const rpc::Parameter& parameter : parameters) {
    all.push_back({std::string(kApplicationPrefix) + parameter.name, parameter.value});
  }
  return all;
}

Result<TaskSpec> TaskSpec::from_parameters(const std::vector<rpc::Parameter>& parameters) {
  TaskSpec spec;
  bool ok = true;
  for (const rpc::Parameter& parameter : parameters) {
    std::uint64_t number = 0;
    const std::string_view value = parameter.value;
    if (parameter.name == "job") {
      spec.job = value;
    } else if (parameter.name == "application") {
      spec.application = value;
    } else if (parameter.name == "document_type") {
      spec.document_type = value;
    } else if (parameter.name == "output_namespace") {
      spec.output_namespace = value;
    } else if (parameter.name == "output_base") {
      ok = ok && parse_number(value, spec.output_base);
    } else if (parameter.name == "output_buckets") {
      ok = ok && parse_number(value, number) && number > 0 && number <= 65536;
      spec.output_buckets = static_cast<std::uint32_t>(number);
    } else if (parameter.name == "run" || parameter.name == "dead_letters_max") {
      ok = parse_number(value, number) && number <= std::numeric_limits<std::uint32_t>::max();
      (parameter.name == "run" ? spec.run : spec.dead_letters_max) = static_cast<std::uint32_t>(number);
    } else if (parameter.name == "incremental") {
      spec.incremental = value;
    } else if (parameter.name == "version") {
      spec.version = value;
    } else if (parameter.name == "direct") {
      ok = value == "1";
      spec.direct = ok;
    } else if (parameter.name == "expected") {
      for (std::size_t at = 0; at < value.size();) {
        const std::size_t end = std::min(value.find(',', at), value.size());
        ok = ok && parse_number(value.substr(at, end - at), number);
        spec.expected_documents.push_back(number);
        at = end + 1;
      }
    } else if (take_pass_parameter(parameter, spec, ok)) {
    } else if (parameter.name.starts_with(kApplicationPrefix)) {
      spec.parameters.push_back({parameter.name.substr(kApplicationPrefix.size()), parameter.value});
    } else {
      ok = false;
    }
    if (!ok) {
      return Status(StatusCode::InvalidArgument, "bad parameter of a task: " + parameter.name + "=" + parameter.value);
    }
  }
  if (!is_plain_name(spec.job) || spec.output_buckets == 0) {
    return Status(StatusCode::InvalidArgument, "a task without job or output buckets");
  }
  return spec;
}

std::string TaskReport::encode() const {
  std::string out;
  const bool has_reused = reused != 0 || processor_us != 0;
  const bool is_full = has_reused || sent_bytes != 0 || busy_us != 0 || !dead_letters.empty();
  const bool is_long = is_full || spilled_bytes != 0 || unit != 0;
  out.push_back(static_cast<char>(processor_us != 0 ? kProcessorReportVersion
                                  : has_reused      ? kReuseReportVersion
                                  : is_full         ? kFullReportVersion
                                  : is_long         ? kLongReportVersion
                                                    : kReportVersion));
  for (const std::uint64_t number : {documents, bytes, tuples, results}) put_varint(out, number);
  put_varint(out, tuple_documents.size());
  for (const auto& [destination, count] : tuple_documents) {
    put_varint(out, destination);
    put_varint(out, count);
  }
  if (is_long) {
    for (const std::uint64_t number : {spilled_bytes, unit, unit_buckets, unit_chunks}) put_varint(out, number);
  }
  if (is_full) {
    for (const std::uint64_t number : {sent_bytes, busy_us, std::uint64_t{dead_letters.size()}})
      put_varint(out, number);
    for (const rpc::DeadLetter& letter : dead_letters) {
      put_string(out, letter.document);
      put_string(out, letter.error);
    }
  }
  if (has_reused) put_varint(out, reused);
  if (processor_us != 0) put_varint(out, processor_us);
  return out;
}

Result<TaskReport> TaskReport::decode(std::string_view encoded) {
  TaskReport report;
  if (encoded.empty()) return report;  // The bucket was empty.
  ByteReader in(encoded);
  const auto version = in.fixed<std::uint8_t>();
  const bool known = version >= kReportVersion && version <= kProcessorReportVersion;
  report.documents = in.varint();
  report.bytes = in.varint();
  report.tuples = in.varint();
  report.results = in.varint();
  const std::uint64_t destinations = in.varint();
  for (std::uint64_t i = 0; i < destinations && in.ok(); ++i) {
    const auto destination = static_cast<std::uint32_t>(in.varint());
    report.tuple_documents[destination] = in.varint();
  }
  if (version >= kLongReportVersion) {
    for (std::uint64_t* number : {&report.spilled_bytes, &report.unit, &report.unit_buckets, &report.unit_chunks}) {
      *number = in.varint();
    }
  }
  if (version >= kFullReportVersion) {
    report.sent_bytes = in.varint();
    report.busy_us = in.varint();
    const std::uint64_t letters = in.varint();
    for (std::uint64_t i = 0; i < letters && in.ok(); ++i) {
      std::string document(in.string());
      report.dead_letters.push_back({std::move(document), std::string(in.string())});
    }
  }
  if (version >= kReuseReportVersion) report.reused = in.varint();
  if (version >= kProcessorReportVersion) report.processor_us = in.varint();
  if (!known || !in.at_end()) return Status(StatusCode::Corruption, "malformed report of a task");
  return report;
}

namespace {

/// Calls `map` and returns an exception as an error of the document. Lack of memory is thrown on, because it concerns
/// the whole task.
template <typename F>
Status caught(F map) {
  try {
    return map();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& exception) {
    return Status(StatusCode::InvalidArgument, std::string("map threw an exception: ") + exception.what());
  }
}

bool tells_of_document(StatusCode code) {
  return !is_transient(code) && code != StatusCode::Cancelled && code != StatusCode::TooLarge &&
         code != StatusCode::IoError && code != StatusCode::Timeout;
}

}  // namespace

Status or_set_aside(const Status& status, const DocumentView& document, const TaskSpec& spec, TaskReport& report) {
  if (status || !tells_of_document(status.code()) || spec.dead_letters_max == 0) return status;
  std::string error = status.to_string();
  if (report.dead_letters.size() >= spec.dead_letters_max) return too_many_dead_letters(spec.dead_letters_max, error);
  if (error.size() > kDeadLetterErrorMax) error.resize(kDeadLetterErrorMax);
  report.dead_letters.push_back({std::string(document.id()), std::move(error)});
  return Status::ok();
}

Status map_or_set_aside(Accumulator& table, const DocumentView& document, const TaskSpec& spec, TaskReport& report) {
  return or_set_aside(caught([&] { return table.map(document); }), document, spec, report);
}

Status map_alone_or_set_aside(Accumulator& table, const DocumentView& document, const TaskSpec& spec,
                              TaskReport& report, std::string& tuples) {
  return or_set_aside(caught([&] { return table.map_alone(document, tuples); }), document, spec, report);
}

Status too_many_dead_letters(std::uint64_t limit, const std::string& last) {
  return Status(StatusCode::InvalidArgument, fmt::format("map failed on more than {} documents, which is the job's "
                                                         "limit dead_letters_max; the last one: {}",
                                                         limit, last));
}

Status TupleDocuments::advance() {
  FJORD_TRY_ASSIGN(const bool more, source_->next(tuple_));
  is_over_ = !more;
  at_value_ = 0;
  return Status::ok();
}

Result<std::optional<TupleDocuments::Block>> TupleDocuments::next() {
  if (!std::exchange(begun_, true)) FJORD_TRY(advance());
  if (is_over_) return std::optional<Block>();
  const std::uint32_t destination = tuple_.destination;
  if (destination_ != destination) {
    destination_ = destination;
    counter_ = 0;
  }
  Block block{destination, counter_++, {}};
  block.tuples.reserve(std::min(bytes_max_, kReserved));
  block.tuples.push_back(static_cast<char>(kTuplesVersion));
  while (!is_over_ && tuple_.destination == destination) {
    // Takes as many values as fit, but at least one for each tuple document.
    const std::vector<std::string_view>& values = tuple_.values;
    std::size_t size = block.tuples.size() + tuple_.key.size() + 10;
    std::size_t end = at_value_;
    while (end < values.size() &&
           (size + values[end].size() + 5 <= bytes_max_ || (end == at_value_ && block.tuples.size() == 1))) {
      size += values[end++].size() + 5;
    }
    if (end == at_value_) break;
    put_string(block.tuples, tuple_.key);
    put_varint(block.tuples, end - at_value_);
    for (; at_value_ < end; ++at_value_) put_string(block.tuples, values[at_value_]);
    if (end < values.size()) break;
    FJORD_TRY(advance());
  }
  return std::optional<Block>(std::move(block));
}

std::string TupleChunk::encode(std::uint64_t unit, std::string_view tuples) {
  std::string out;
  out.reserve(tuples.size() + 12);
  out.push_back(static_cast<char>(kChunkVersion));
  put_varint(out, unit);
  out += tuples;
  return out;
}

Result<TupleChunk> TupleChunk::decode(std::string_view bytes) {
  ByteReader in(bytes);
  const bool known = in.fixed<std::uint8_t>() == kChunkVersion;
  TupleChunk chunk;
  chunk.unit = in.varint();
  chunk.tuples = in.rest();
  if (!known || !in.ok() || chunk.unit == 0) return Status(StatusCode::Corruption, "malformed chunk of tuples");
  return chunk;
}

}  // namespace fjord::mapreduce
