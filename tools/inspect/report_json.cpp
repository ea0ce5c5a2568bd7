#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "report.h"

namespace fjord::inspect {

namespace {

class JsonReport {
 public:
  std::string write(const Findings& findings) {
    object([&] { array("stores", findings.stores, [&](const StoreReport& store) { write(store); }); });
    return std::string(buffer_.GetString(), buffer_.GetSize()) + "\n";
  }

 private:
  template <typename F>
  void object(F&& members) {
    writer_.StartObject();
    members();
    writer_.EndObject();
  }
  template <typename List, typename F>
  void array(const char* name, const List& list, F&& each) {
    writer_.Key(name);
    writer_.StartArray();
    for (const auto& item : list) each(item);
    writer_.EndArray();
  }
  void text(std::string_view value) { writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size())); }
  void member(const char* name, std::string_view value) {
    writer_.Key(name);
    text(value);
  }
  void member(const char* name, std::uint64_t value) {
    writer_.Key(name);
    writer_.Uint64(value);
  }
  void flag(const char* name, bool value) {
    writer_.Key(name);
    writer_.Bool(value);
  }
  static std::string hex(std::uint64_t value) { return fmt::format("{:#018x}", value); }
  static std::string hex(BucketId bucket) { return hex(bucket.raw()); }

  void write(const StoreReport& store) {
    object([&] {
      member("path", store.path);
      array("stripes", store.stripes, [&](const StripeReport& stripe) { write(stripe); });
      array("findings", store.findings, [&](const InspectFinding& finding) {
        object([&] {
          member("severity", finding.severity == InspectFinding::Severity::Problem ? "problem" : "note");
          member("path", finding.path);
          member("offset", finding.offset);
          member("what", finding.what);
        });
      });
    });
  }

  void write(const StripeReport& stripe) {
    object([&] {
      member("stripe", std::uint64_t{stripe.stripe});
      array("catalogs", stripe.catalogs, [&](const CatalogReport& catalog) {
        object([&] {
          member("path", catalog.path);
          member("stripes", std::uint64_t{catalog.stripes});
          member("lsn", catalog.lsn);
          member("first_segment", catalog.first_segment);
          member("buckets", std::uint64_t{catalog.structure.buckets.size()});
        });
      });
      writer_.Key("structure");
      object([&] { members(stripe.structure); });
      array("segments", stripe.segments, [&](const SegmentReport& segment) { write(segment); });
      array("slotfiles", stripe.slotfiles, [&](const SlotfileReport& slotfile) { write(slotfile); });
    });
  }

  void members(const StructureReport& structure) {
    member("next_uid", structure.next_uid);
    member("next_file", std::uint64_t{structure.next_file});
    array("removed_uids", structure.removed, [&](std::uint64_t uid) { writer_.Uint64(uid); });
    array("successors", structure.successors, [&](const SuccessorsReport& successors) {
      object([&] {
        member("uid", successors.uid);
        member("lsn", successors.lsn);
        array("buckets", successors.buckets, [&](const auto& successor) {
          object([&] {
            member("uid", successor.first);
            member("bucket", hex(successor.second));
          });
        });
      });
    });
    array("files", structure.file_sizes, [&](const auto& file) {
      object([&] {
        member("number", std::uint64_t{file.first});
        member("counted_bytes", file.second);
      });
    });
    array("buckets", structure.buckets, [&](const BucketReport& bucket) { write(bucket); });
  }

  void write(const BucketReport& bucket) {
    object([&] {
      member("uid", bucket.uid);
      member("bucket", hex(bucket.bucket));
      writer_.Key("replica_set");
      object([&] {
        member("epoch", bucket.replicas.epoch);
        array("nodes", bucket.replicas.nodes, [&](std::uint16_t node) { writer_.Uint(node); });
      });
      member("forget_removes_before_us", bucket.forgotten.removes.us);
      member("forget_tokens_before_us", bucket.forgotten.tokens.us);
      flag("damaged", bucket.damaged);
      array("slots", bucket.slots, [&](const SlotReport& slot) { write(slot); });
    });
  }

  void write(const SlotReport& slot) {
    object([&] {
      member("first_cell", std::uint64_t{slot.first_cell});
      member("end_cell", std::uint64_t{slot.end_cell});
      member("entries", slot.info.entries);
      member("documents", slot.info.documents);
      member("document_bytes", slot.info.bytes);
      member("checksum", hex(slot.info.checksum));
      member("max_timestamp_us", slot.info.max_timestamp_us);
      member("live_bytes", slot.live_bytes);
      array("files", slot.files, [&](const ShareReport& file) {
        object([&] {
          member("number", std::uint64_t{file.number});
          member("bucket", hex(file.bucket));
          member("first_cell", std::uint64_t{file.first_cell});
          member("end_cell", std::uint64_t{file.end_cell});
        });
      });
    });
  }

  void write(const SegmentReport& segment) {
    object([&] {
      member("path", segment.path);
      member("number", segment.number);
      flag("needed", segment.needed);
      member("bytes", segment.bytes);
      member("used_bytes", segment.used_bytes);
      array("records", segment.records, [&](const RecordReport& record) {
        object([&] {
          member("offset", record.offset);
          member("bytes", record.bytes);
          member("lsn", record.lsn);
          member("type", record.edit ? "edit" : "writes");
          if (record.edit) {
            members(*record.edit);
          } else {
            member("write_count", record.write_count);
            array("writes", record.writes, [&](const EntryReport& entry) { write(entry, false); });
          }
        });
      });
    });
  }

  void write(const SlotfileReport& slotfile) {
    object([&] {
      member("path", slotfile.path);
      member("number", std::uint64_t{slotfile.number});
      member("made_for", hex(slotfile.made_for));
      member("bytes", slotfile.bytes);
      member("counted_bytes", slotfile.counted_bytes);
      member("live_bytes", slotfile.live_bytes);
      array("runs", slotfile.runs, [&](const RunReport& run) {
        object([&] {
          member("offset", run.offset);
          member("header_bytes", run.header_bytes);
          member("body_bytes", run.body_bytes);
          member("entry_count", run.entry_count);
          array("entries", run.entries, [&](const EntryReport& entry) { write(entry, true); });
        });
      });
    });
  }

  static std::string_view name_of(spi::Compression compression) {
    switch (compression) {
      case spi::Compression::None:
        return "none";
      case spi::Compression::Lz4:
        return "lz4";
      case spi::Compression::Zstd:
        return "zstd";
    }
    return "unknown";
  }

  void write(const EntryReport& entry, bool in_file) {
    object([&] {
      if (in_file) member("offset", entry.offset);
      member("state", to_string(entry.state));
      if (entry.state == EntryState::Bad) return;
      if (entry.bucket != BucketId()) member("bucket", hex(entry.bucket));
      member("gid", entry.gid.to_string());
      member("timestamp_us", entry.timestamp_us);
      flag("removed", entry.removed);
      member("id", entry.id);
      if (in_file) member("header_position", entry.header_position);
      member("header_bytes", std::uint64_t{entry.header_length});
      member("header_compression", name_of(entry.header_compression));
      if (in_file) member("body_position", entry.body_position);
      member("body_bytes", std::uint64_t{entry.body_length});
      member("body_compression", name_of(entry.body_compression));
    });
  }

  rapidjson::StringBuffer buffer_;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace

std::string to_json(const Findings& findings) { return JsonReport().write(findings); }

}  // namespace fjord::inspect
