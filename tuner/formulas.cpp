// The value that the advisor would give each knob: one function for each knob, with its formula as text.

#include <algorithm>
#include <cmath>

#include "fjord/common/check.h"
#include "fjord/tuner/advisor.h"
#include "fjord/tuner/seed_formulas.h"

namespace fjord::tuner {
namespace {

/// The sources of a formula's inputs.
struct Context {
  const Workload& w;
  const HardwareProfile& hw;
  const Settings& settings;
  StoreFacts facts;
  NodeShape shape;
  const Tunings& tunings;

  Input constant(Constant id) const {
    const ConstantDeclaration& declared = declaration_of(id);
    return {std::string(declared.name), hw[id], std::string(declared.unit), std::string(to_string(hw.at(id).origin))};
  }
  static Input from_workload(std::string name, double value, std::string unit = "") {
    return {std::move(name), value, std::move(unit), "workload"};
  }
  static Input fact(std::string name, double value, std::string unit, std::string origin) {
    return {std::move(name), value, std::move(unit), std::move(origin)};
  }
  /// Factor by which the search on the cost model changed the value of the rule.
  Input tuned(std::string_view knob) const {
    const auto found = tunings.find(knob);
    return {"tuned", found == tunings.end() ? 1.0 : found->second, "", "search on the cost model"};
  }
  Input setting(std::string name, std::int64_t value, std::string unit) const {
    return {std::move(name), static_cast<double>(value), std::move(unit), "setting"};
  }
};

Advice make(const char* knob, const Context& c, std::string formula, std::vector<Input> inputs, std::string source,
            std::string reason) {
  Advice advice;
  advice.knob = find_knob(knob);
  FJORD_CHECK(advice.knob != nullptr);
  advice.old_value = c.settings.*(advice.knob->member);
  advice.formula = std::move(formula);
  advice.inputs = std::move(inputs);
  advice.source = std::move(source);
  advice.reason = std::move(reason);
  const Result<std::int64_t> value = value_of(*advice.knob, advice.formula, advice.inputs);
  FJORD_CHECK(value.has_value());
  advice.new_value = *value;
  return advice;
}

Advice file_bytes(const Context& c) {
  return make("storage.file_bytes_max", c,
              "step(clamp(tuned * disk_share * rewrite_s * min(sequential_read_rate, sequential_write_rate) / 2, "
              "max(4194304, 64 * document_bytes_p99), 268435456))",
              {c.tuned("storage.file_bytes_max"), c.fact("disk_share", 0.5, "", "practice"),
               c.fact("rewrite_s", 1, "s", "practice"), c.constant(Constant::SequentialReadRate),
               c.constant(Constant::SequentialWriteRate),
               c.from_workload("document_bytes_p99", c.w.document_bytes_p99, "bytes")},
              "practice; VDS 2007, 5.3.3 keeps 16 MB",
              "Few files make visits and runs sequential; one is rewritten within a second of half the disk.");
}

Advice entries(const Context& c) {
  return make(
      "storage.entries_max", c,
      "clamp(step(tuned * 2 * random_read_s / (index_load_s_per_document + index_disk_bytes_per_document / "
      "sequential_read_rate)), 1024, 1048576)",
      {c.tuned("storage.entries_max"), c.constant(Constant::RandomReadS),
       c.fact("index_load_s_per_document", c.facts.index_load_s_per_document, "s", "docs/experiments"),
       c.fact("index_disk_bytes_per_document", c.facts.index_disk_bytes_per_document, "bytes", "storage/FORMAT.md"),
       c.constant(Constant::SequentialReadRate)},
      "VDS 2007, 5.3.3, for a store with an index in memory",
      "Loading the index of a slotfile that is not in memory takes about as long as finding it.");
}

Advice bucket_bytes(const Context& c) {
  return make(
      "distributor.bucket_bytes_max", c,
      "step(clamp(tuned * total_bytes / (buckets_per_node * nodes / redundancy) / fill, max(4194304, 19 * "
      "bucket_scan_s * "
      "sequential_read_rate), slotfiles_max * min(file_bytes_max, entries_max * document_bytes)))",
      {c.tuned("distributor.bucket_bytes_max"), c.from_workload("total_bytes", c.w.total_bytes(), "bytes"),
       c.fact("buckets_per_node", 300, "", "practice: 100 to 1000"),
       c.from_workload("nodes", static_cast<double>(c.w.nodes)),
       c.from_workload("redundancy", static_cast<double>(c.w.redundancy)),
       c.fact("fill", c.facts.bucket_fill, "", "storage"),
       c.fact("bucket_scan_s", c.facts.bucket_scan_s, "s", "docs/performance-parts.md"),
       c.constant(Constant::SequentialReadRate), c.setting("slotfiles_max", c.settings.slotfiles_max, ""),
       c.setting("file_bytes_max", c.settings.file_bytes_max, "bytes"),
       c.setting("entries_max", c.settings.entries_max, ""),
       c.from_workload("document_bytes", c.w.document_bytes, "bytes")},
      "VDS 2007, 5.4.2",
      "Enough buckets that nodes are equally full and jobs have parts; so few that opening them is 5 % of a visit.");
}

Advice bucket_entries(const Context& c) {
  return make(
      "distributor.bucket_entries_max", c,
      "clamp(step(2 * bucket_bytes_max / document_bytes), 1024, slotfiles_max * entries_max)",
      {c.setting("bucket_bytes_max", c.settings.bucket_bytes_max, "bytes"),
       c.from_workload("document_bytes", c.w.document_bytes, "bytes"),
       c.setting("slotfiles_max", c.settings.slotfiles_max, ""), c.setting("entries_max", c.settings.entries_max, "")},
      "VDS 2007, 5.4.2", "Buckets are split by bytes; this bounds what many small documents make of them.");
}

Advice held_bytes(const Context& c) {
  return make(
      "storage.held_bytes_max", c,
      "clamp(tuned * 2 * slotfiles_per_node * run_factor * sequential_write_rate / random_reads_per_s, 33554432, "
      "memory_share * memory)",
      {c.tuned("storage.held_bytes_max"), c.fact("slotfiles_per_node", c.shape.slotfiles, "", "VDS 2007, 5.5"),
       c.fact("run_factor", 4, "", "practice"), c.constant(Constant::SequentialWriteRate),
       c.constant(Constant::RandomReadsPerS), c.fact("memory_share", 0.15, "", "practice"),
       c.from_workload("memory", c.w.memory_bytes, "bytes")},
      "practice: five-minute rule for runs",
      "What is written to a slotfile at a time takes four times as long as finding the place.");
}

Advice index_bytes(const Context& c) {
  return make("storage.index_bytes_max", c,
              "clamp(tuned * 1.2 * documents_per_node * index_bytes_per_document, 67108864, memory_share * memory)",
              {c.tuned("storage.index_bytes_max"), c.from_workload("documents_per_node", c.w.documents_per_node()),
               c.fact("index_bytes_per_document", c.facts.index_bytes_per_document, "bytes", "docs/experiments"),
               c.fact("memory_share", 0.5, "", "practice"), c.from_workload("memory", c.w.memory_bytes, "bytes")},
              "VDS 2007, 5.3.3, for a store with an index in memory",
              "All documents of a node can be found without the disk.");
}

Advice docblock(const Context& c) {
  return make(
      "storage_options.docblock_bytes", c,
      "step(clamp(tuned * min(latency_share * latency_target_s, 10 * docblock_cpu_s) / (1 / sequential_read_rate + "
      "3 / copy_rate + scan_cpu_s_per_document / document_bytes), 65536, 8388608))",
      {c.tuned("storage_options.docblock_bytes"), c.fact("latency_share", 0.1, "", "practice"),
       c.from_workload("latency_target_s", c.w.latency_target_s, "s"),
       c.fact("docblock_cpu_s", c.facts.docblock_cpu_s, "s", "docs/performance-parts.md"),
       c.constant(Constant::SequentialReadRate), c.constant(Constant::CopyRate),
       c.fact("scan_cpu_s_per_document", c.facts.scan_cpu_s_per_document, "s", "docs/performance-parts.md"),
       c.from_workload("document_bytes", c.w.document_bytes, "bytes")},
      "seed E.4, 3.6.4",
      "So large that what a docblock costs by itself is a tenth of it; no reader waits for it longer than a tenth of "
      "the target.");
}

Advice visitors(const Context& c, double operation_s, double docblock_s) {
  std::vector<Input> inputs = {
      c.tuned("storage.visitors_max"),
      c.fact("clients", c.facts.clients_per_node, "", "practice"),
      c.fact("operation_stripe_s", operation_s, "s", "cost model"),
      c.fact("docblock_stripe_s", docblock_s, "s", "cost model"),
      c.from_workload("scan_share", c.w.scan_share),
      c.from_workload("cores", static_cast<double>(c.w.cores)),
  };
  std::string most = "ceil(2.5 * cores)";
  if (c.w.tuple_bytes_per_document > 0) {
    most =
        "min(ceil(2.5 * cores), max(1, floor(memory_share * memory * buckets_per_node / (documents_per_node * "
        "tuple_bytes_per_document))))";
    inputs.push_back(c.fact("memory_share", 0.2, "", "practice"));
    inputs.push_back(c.from_workload("memory", c.w.memory_bytes, "bytes"));
    inputs.push_back(c.fact("buckets_per_node", c.shape.buckets, "", "VDS 2007, 5.4.2"));
    inputs.push_back(c.from_workload("documents_per_node", c.w.documents_per_node()));
    inputs.push_back(c.from_workload("tuple_bytes_per_document", c.w.tuple_bytes_per_document, "bytes"));
  }
  return make(
      "storage.visitors_max", c,
      "clamp(ceil(tuned * clients * operation_stripe_s / docblock_stripe_s * scan_share / max(0.02, 1 - scan_share)), "
      "1, " +
          most + ")",
      std::move(inputs), "VDS 2007, 6.3.2, 4.3.4; Little's law",
      "As much of the stripes' time for visits as they matter, at most 2.5 a CPU and what tuples fit in memory.");
}

Advice journal(const Context& c) {
  return make("storage.journal_bytes_max", c,
              "clamp(4 * held_bytes_max, 67108864, max(2 * held_bytes_max, replay_s * replay_rate))",
              {c.setting("held_bytes_max", c.settings.held_bytes_max, "bytes"), c.fact("replay_s", 10, "s", "practice"),
               c.fact("replay_rate", 130e6, "bytes/s", "docs/experiments")},
              "practice",
              "A start after a crash replays it within ten seconds, and what is held in memory fits into it.");
}

Advice distribution_bits(const Context& c) {
  return make(
      "cluster.distribution_bits", c, "max(distribution_bits, ceil(log2(buckets_per_node * nodes / redundancy)))",
      {c.setting("distribution_bits", c.settings.distribution_bits, ""),
       c.fact("buckets_per_node", 100, "", "practice: 100 to 1000"),
       c.from_workload("nodes", static_cast<double>(c.w.nodes)),
       c.from_workload("redundancy", static_cast<double>(c.w.redundancy))},
      "VDS 2007, 5.4.2; practice: sqrt(nodes / B)", "At least 100 replicas of buckets on each node; never fewer bits.");
}

Advice maintenance(const Context& c) {
  return make("maintenance.bytes_per_s", c, "share * min(sequential_read_rate, sequential_write_rate, network_rate)",
              {c.fact("share", 0.25, "", "practice"), c.constant(Constant::SequentialReadRate),
               c.constant(Constant::SequentialWriteRate), c.constant(Constant::NetworkRate)},
              "practice: throttles start at a quarter",
              "A quarter of disk and network; the node itself yields from there.");
}

Advice maintenance_min(const Context& c) {
  return make("maintenance.bytes_per_s_min", c, "min(4194304, maintenance_bytes_per_s / 8)",
              {c.setting("maintenance_bytes_per_s", c.settings.maintenance_bytes_per_s, "bytes")}, "practice",
              "Repair goes on at an eighth however long users wait.");
}

Advice scrub(const Context& c) {
  return make("storage.scrub_bytes_per_second", c,
              "clamp(bytes_per_node / scrub_s, 1048576, disk_share * sequential_read_rate)",
              {c.from_workload("bytes_per_node", c.w.bytes_per_node(), "bytes"),
               c.fact("scrub_s", 14 * 86'400.0, "s", "practice"), c.fact("disk_share", 0.05, "", "practice"),
               c.constant(Constant::SequentialReadRate)},
              "practice", "Everything is verified within two weeks, with a twentieth of the disk at most.");
}

Advice output_buckets(const Context& c) {
  return make(
      "--output-buckets", c, "max(ceil(spread * output_bytes / (bucket_bytes_max - data_in_buckets)), 2 * nodes)",
      {c.fact("spread", 1.5, "", "practice"), c.from_workload("output_bytes", c.w.job_output_bytes, "bytes"),
       c.fact("bucket_bytes_max", seed::kBucketBytesMax, "bytes", "VDS 2007, 6.1.1"),
       c.fact("data_in_buckets", std::min(c.shape.bucket_bytes, seed::kBucketBytesMax / 2), "bytes", "VDS 2007, 5.5"),
       c.from_workload("nodes", static_cast<double>(c.w.nodes))},
      "VDS 2007, 6.2.1", "No output bucket holds more than 64 MB, and each node has two to reduce.");
}

Advice job_visitors(const Context& c) {
  return make(
      "--visitors-per-node", c,
      "clamp(floor(memory_share * memory * buckets_per_node / (documents_per_node * tuple_bytes_per_document)), 1, "
      "ceil(2.5 * cores))",
      {c.fact("memory_share", 0.2, "", "practice"), c.from_workload("memory", c.w.memory_bytes, "bytes"),
       c.fact("buckets_per_node", c.shape.buckets, "", "VDS 2007, 5.4.2"),
       c.from_workload("documents_per_node", c.w.documents_per_node()),
       c.from_workload("tuple_bytes_per_document", c.w.tuple_bytes_per_document, "bytes"),
       c.from_workload("cores", static_cast<double>(c.w.cores))},
      "VDS 2007, 6.3.2", "2.5 a CPU, as long as the tuples of that many buckets fit.");
}

}  // namespace

Result<std::int64_t> value_of(const Knob& knob, const std::string& formula, const std::vector<Input>& inputs) {
  FJORD_TRY_ASSIGN(double value, evaluate(formula, inputs));
  constexpr double kMiB = 1 << 20;
  if (knob.unit == KnobUnit::Bytes && value >= kMiB) value = std::floor(value / kMiB) * kMiB;
  value = std::clamp(std::round(value), static_cast<double>(knob.min), static_cast<double>(knob.max));
  return static_cast<std::int64_t>(value);
}

std::vector<Advice> candidates(const Workload& workload, const HardwareProfile& profile, const Settings& settings,
                               const Tunings& tunings) {
  const Context c{workload, profile, settings, {}, shape_of(workload, settings), tunings};
  const StripeTimes times = stripe_times(workload, profile, settings);
  std::vector<Advice> all = {file_bytes(c),  entries(c),    bucket_bytes(c), bucket_entries(c),
                             index_bytes(c), held_bytes(c), docblock(c)};
  if (workload.scan_share > 0) all.push_back(visitors(c, times.operation_s, times.docblock_s));
  all.push_back(journal(c));
  all.push_back(distribution_bits(c));
  all.push_back(maintenance(c));
  all.push_back(maintenance_min(c));
  all.push_back(scrub(c));
  if (workload.tuple_bytes_per_document > 0) {
    all.push_back(output_buckets(c));
    all.push_back(job_visitors(c));
  }
  return all;
}

}  // namespace fjord::tuner
