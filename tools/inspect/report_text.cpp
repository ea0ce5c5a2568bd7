#include <fmt/format.h>
#include <iterator>

#include "report.h"

namespace fjord::inspect {

namespace {

class TextReport {
 public:
  std::string write(const Findings& findings) {
    for (const StoreReport& store : findings.stores) {
      line(0, "{}", store.path);
      for (const StripeReport& stripe : store.stripes) write(stripe);
      for (const InspectFinding& finding : store.findings) {
        line(1, "{}: {}", finding.severity == InspectFinding::Severity::Problem ? "problem" : "note",
             to_string(finding));
      }
    }
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void line(unsigned depth, fmt::format_string<Args...> format, Args&&... args) {
    out_.append(2 * depth, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  static std::string nodes_of(const ReplicaSet& set) {
    std::string nodes;
    for (const std::uint16_t node : set.nodes) nodes += (nodes.empty() ? "" : " ") + std::to_string(node);
    return nodes;
  }

  void write(const StripeReport& stripe) {
    line(1, "stripe {}", stripe.stripe);
    for (const CatalogReport& catalog : stripe.catalogs) {
      line(2, "catalog {}: as of record {}, journal from segment {}, {} stripes, {} buckets", catalog.path, catalog.lsn,
           catalog.first_segment, catalog.stripes, catalog.structure.buckets.size());
    }
    if (!stripe.structure.buckets.empty() || !stripe.structure.successors.empty()) {
      line(2, "structure, with what the journal changed in it");
      write(stripe.structure, 3);
    }
    for (const SegmentReport& segment : stripe.segments) write(segment);
    for (const SlotfileReport& slotfile : stripe.slotfiles) write(slotfile);
  }

  void write(const StructureReport& structure, unsigned depth) {
    line(depth, "next uid {}, next file {}", structure.next_uid, structure.next_file);
    for (const std::uint64_t uid : structure.removed) line(depth, "removes bucket uid {}", uid);
    for (const SuccessorsReport& successors : structure.successors) {
      std::string text;
      for (const auto& [uid, id] : successors.buckets) text += fmt::format(" uid {} {}", uid, id.to_string());
      line(depth, "successors of uid {} since record {}:{}", successors.uid, successors.lsn, text);
    }
    for (const auto& [number, bytes] : structure.file_sizes) {
      line(depth, "file {:08x}.slot: {} bytes count", number, bytes);
    }
    for (const BucketReport& bucket : structure.buckets) {
      line(depth, "{} uid {}: replica set epoch {} nodes [{}]{}{}", bucket.bucket.to_string(), bucket.uid,
           bucket.replicas.epoch, nodes_of(bucket.replicas),
           bucket.forgotten == spi::Forgotten{} ? ""
                                                : fmt::format(", removes before {} and tokens before {} are forgotten",
                                                              bucket.forgotten.removes.us, bucket.forgotten.tokens.us),
           bucket.damaged ? ", damaged" : "");
      for (const SlotReport& slot : bucket.slots) {
        line(depth + 1,
             "cells {} to {}: {} entries, {} documents, {} bytes, checksum {:#x}, newest {}, {} bytes in use",
             slot.first_cell, slot.end_cell - 1, slot.info.entries, slot.info.documents, slot.info.bytes,
             slot.info.checksum, slot.info.max_timestamp_us, slot.live_bytes);
        for (const ShareReport& file : slot.files) {
          line(depth + 2, "{:08x}.slot: what is of {} in cells {} to {}", file.number, file.bucket.to_string(),
               file.first_cell, file.end_cell - 1);
        }
      }
    }
  }

  void write(const SegmentReport& segment) {
    if (!segment.needed) {
      line(2, "segment {}: {} bytes, kept to be used again", segment.path, segment.bytes);
      return;
    }
    line(2, "segment {}: {} of {} bytes used, {} records", segment.path, segment.used_bytes, segment.bytes,
         segment.records.size());
    for (const RecordReport& record : segment.records) {
      if (record.edit) {
        line(3, "record {} at {}, {} bytes: edit", record.lsn, record.offset, record.bytes);
        write(*record.edit, 4);
      } else {
        line(3, "record {} at {}, {} bytes: {} writes", record.lsn, record.offset, record.bytes, record.write_count);
        for (const EntryReport& write_report : record.writes) write(write_report, false);
      }
    }
  }

  void write(const SlotfileReport& slotfile) {
    line(2, "slotfile {}: made for {}, {} of {} bytes count, {} bytes in use", slotfile.path,
         slotfile.made_for.to_string(), slotfile.counted_bytes, slotfile.bytes, slotfile.live_bytes);
    for (const RunReport& run : slotfile.runs) {
      line(3, "run at {}: {} entries, {} header bytes, {} body bytes", run.offset, run.entry_count, run.header_bytes,
           run.body_bytes);
      for (const EntryReport& entry : run.entries) write(entry, true);
    }
  }

  static std::string_view name_of(spi::Compression compression) {
    return compression == spi::Compression::Lz4 ? " lz4" : compression == spi::Compression::Zstd ? " zstd" : "";
  }

  void write(const EntryReport& entry, bool in_file) {
    if (entry.state == EntryState::Bad) {
      line(4, "{:>8} bad", entry.offset);
      return;
    }
    const std::string place = in_file ? fmt::format("{:>8} ", entry.offset) : std::string();
    const std::string header_at = in_file ? fmt::format("{}+", entry.header_position) : std::string();
    const std::string body_at = in_file ? fmt::format("{}+", entry.body_position) : std::string();
    line(4, "{}{:<8} {} {} timestamp {} header {}{}{} body {}{}{}{} {}", place, to_string(entry.state),
         entry.bucket == BucketId() ? "-" : entry.bucket.to_string(), entry.gid.to_string(), entry.timestamp_us,
         header_at, entry.header_length, name_of(entry.header_compression), body_at, entry.body_length,
         name_of(entry.body_compression), entry.removed ? " removed" : "", entry.id);
  }

  std::string out_;
};

template <typename F>
std::uint64_t sum_over(const std::vector<StoreReport>& stores, F&& of_stripe) {
  std::uint64_t sum = 0;
  for (const StoreReport& store : stores) {
    for (const StripeReport& stripe : store.stripes) sum += of_stripe(stripe);
  }
  return sum;
}

}  // namespace

std::uint64_t Findings::problem_count() const {
  std::uint64_t sum = 0;
  for (const StoreReport& store : stores) sum += store.problem_count();
  return sum;
}

std::uint64_t Findings::slotfile_count() const {
  return sum_over(stores, [](const StripeReport& stripe) { return stripe.slotfiles.size(); });
}

std::uint64_t Findings::segment_count() const {
  return sum_over(stores, [](const StripeReport& stripe) { return stripe.segments.size(); });
}

std::uint64_t Findings::entry_count() const {
  return sum_over(stores, [](const StripeReport& stripe) {
    std::uint64_t sum = 0;
    for (const SlotfileReport& slotfile : stripe.slotfiles) {
      for (const RunReport& run : slotfile.runs) sum += run.entry_count;
    }
    return sum;
  });
}

std::uint64_t Findings::record_count() const {
  return sum_over(stores, [](const StripeReport& stripe) {
    std::uint64_t sum = 0;
    for (const SegmentReport& segment : stripe.segments) sum += segment.records.size();
    return sum;
  });
}

std::string to_text(const Findings& findings) { return TextReport().write(findings); }

}  // namespace fjord::inspect
