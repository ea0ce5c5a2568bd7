#include <fmt/format.h>
#include <iterator>

#include "report.h"

namespace fjord::inspect {

namespace {

void append(std::string& out, const EntryReport& entry) {
  fmt::format_to(std::back_inserter(out), "    {:>6} {:<8} {}", entry.index, to_string(entry.state),
                 entry.gid.to_string());
  if (entry.state == EntryState::Newest || entry.state == EntryState::Replaced) {
    fmt::format_to(std::back_inserter(out), " timestamp {} header {}+{} body {}+{}{} {}", entry.timestamp_us,
                   entry.header_position, entry.header_length, entry.body_position, entry.body_length,
                   entry.removed ? " removed" : "", entry.id);
  }
  out += '\n';
}

void append(std::string& out, const SlotfileReport& slotfile) {
  fmt::format_to(
      std::back_inserter(out),
      "  {}\n    {} generation {} slot {} of {}; room for {} entries, {} header bytes, {} body bytes; {} bytes "
      "in use\n",
      slotfile.path, slotfile.bucket.to_string(), slotfile.generation, slotfile.slot, 1U << slotfile.slot_bits,
      slotfile.entry_capacity, slotfile.header_capacity, slotfile.body_capacity, slotfile.live_bytes);
  for (const EntryReport& entry : slotfile.entries) append(out, entry);
}

}  // namespace

std::vector<std::string> Findings::problems() const {
  std::vector<std::string> all;
  const auto add = [&](const std::vector<std::string>& some) { all.insert(all.end(), some.begin(), some.end()); };
  for (const BucketReport& bucket : buckets) {
    add(bucket.problems);
    for (const SlotfileReport& slotfile : bucket.slotfiles) add(slotfile.problems);
  }
  for (const SlotfileReport& slotfile : slotfiles) add(slotfile.problems);
  return all;
}

std::uint64_t Findings::slotfile_count() const {
  std::uint64_t count = slotfiles.size();
  for (const BucketReport& bucket : buckets) count += bucket.slotfiles.size();
  return count;
}

std::uint64_t Findings::entry_count() const {
  std::uint64_t count = 0;
  for (const BucketReport& bucket : buckets) {
    for (const SlotfileReport& slotfile : bucket.slotfiles) count += slotfile.entries.size();
  }
  for (const SlotfileReport& slotfile : slotfiles) count += slotfile.entries.size();
  return count;
}

std::string to_text(const Findings& findings) {
  std::string out;
  for (const BucketReport& bucket : findings.buckets) {
    fmt::format_to(std::back_inserter(out), "{}: {} generation {}, {} slotfiles, replica set epoch {} nodes [",
                   bucket.directory, bucket.bucket.to_string(), bucket.generation, 1U << bucket.slot_bits,
                   bucket.replicas.epoch);
    for (std::size_t i = 0; i < bucket.replicas.nodes.size(); ++i) {
      fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : " ", bucket.replicas.nodes[i]);
    }
    out += "]\n";
    for (const std::string& name : bucket.leftovers) out += "  leftover: " + name + "\n";
    for (const SlotfileReport& slotfile : bucket.slotfiles) append(out, slotfile);
  }
  for (const SlotfileReport& slotfile : findings.slotfiles) append(out, slotfile);
  for (const std::string& problem : findings.problems()) out += "problem: " + problem + "\n";
  return out;
}

}  // namespace fjord::inspect
