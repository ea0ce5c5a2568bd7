#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "report.h"

namespace fjord::inspect {

namespace {

class JsonReport {
 public:
  std::string write(const Findings& findings) {
    writer_.StartObject();
    array("buckets", findings.buckets, [&](const BucketReport& bucket) { write(bucket); });
    array("slotfiles", findings.slotfiles, [&](const SlotfileReport& slotfile) { write(slotfile); });
    array("problems", findings.problems(), [&](const std::string& problem) { text(problem); });
    writer_.EndObject();
    return std::string(buffer_.GetString(), buffer_.GetSize()) + "\n";
  }

 private:
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
  void member(const char* name, bool value) {
    writer_.Key(name);
    writer_.Bool(value);
  }
  static std::string hex(BucketId bucket) { return fmt::format("{:#018x}", bucket.raw()); }

  void write(const BucketReport& bucket) {
    writer_.StartObject();
    member("directory", bucket.directory);
    member("bucket", hex(bucket.bucket));
    member("generation", std::uint64_t{bucket.generation});
    member("slot_bits", std::uint64_t{bucket.slot_bits});
    writer_.Key("replica_set");
    writer_.StartObject();
    member("epoch", bucket.replicas.epoch);
    array("nodes", bucket.replicas.nodes, [&](std::uint16_t node) { writer_.Uint(node); });
    writer_.EndObject();
    array("leftovers", bucket.leftovers, [&](const std::string& name) { text(name); });
    array("slotfiles", bucket.slotfiles, [&](const SlotfileReport& slotfile) { write(slotfile); });
    writer_.EndObject();
  }

  void write(const SlotfileReport& slotfile) {
    writer_.StartObject();
    member("path", slotfile.path);
    member("bucket", hex(slotfile.bucket));
    member("generation", std::uint64_t{slotfile.generation});
    member("slot", std::uint64_t{slotfile.slot});
    member("slot_bits", std::uint64_t{slotfile.slot_bits});
    member("entry_capacity", slotfile.entry_capacity);
    member("header_capacity_bytes", slotfile.header_capacity);
    member("body_capacity_bytes", slotfile.body_capacity);
    member("live_bytes", slotfile.live_bytes);
    array("entries", slotfile.entries, [&](const EntryReport& entry) { write(entry); });
    writer_.EndObject();
  }

  void write(const EntryReport& entry) {
    writer_.StartObject();
    member("index", entry.index);
    member("state", to_string(entry.state));
    member("gid", entry.gid.to_string());
    member("timestamp_us", entry.timestamp_us);
    member("removed", entry.removed);
    member("id", entry.id);
    member("header_position", std::uint64_t{entry.header_position});
    member("header_bytes", std::uint64_t{entry.header_length});
    member("body_position", std::uint64_t{entry.body_position});
    member("body_bytes", std::uint64_t{entry.body_length});
    writer_.EndObject();
  }

  rapidjson::StringBuffer buffer_;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace

std::string to_json(const Findings& findings) { return JsonReport().write(findings); }

}  // namespace fjord::inspect
