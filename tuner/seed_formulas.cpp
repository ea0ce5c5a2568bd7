#include "fjord/tuner/seed_formulas.h"

#include <algorithm>
#include <cmath>

#include "fjord/common/check.h"

namespace fjord::tuner::seed {
namespace {

/// Rounds up. The factor keeps a rounding error in a quotient from making a whole number one larger.
double ceiling(double value) { return std::ceil(value * (1 - 1e-12)); }
std::uint64_t whole(double value) { return static_cast<std::uint64_t>(std::min(value, 9e18)); }

}  // namespace

double output_documents_min(double input_buckets, double output_buckets) { return input_buckets * output_buckets; }

double tuple_memory_per_bucket(double documents, double buckets, double tuple_bytes_per_document) {
  FJORD_CHECK(buckets > 0);
  return documents / buckets * tuple_bytes_per_document;
}

std::uint64_t buckets_min(double documents, double total_bytes, double entries_max, double slotfile_bytes_max,
                          double slotfiles_max) {
  FJORD_CHECK(entries_max > 0 && slotfile_bytes_max > 0 && slotfiles_max > 0);
  return whole(std::max(ceiling(documents / (entries_max * slotfiles_max)),
                        ceiling(total_bytes / (slotfile_bytes_max * slotfiles_max))));
}

std::uint64_t buckets_max_for_jobs(double entries_max, double slotfiles_max) {
  return whole(entries_max * slotfiles_max);
}

double bucket_bytes_mean(double documents, double document_bytes, double buckets) {
  FJORD_CHECK(buckets > 0);
  return document_bytes * documents / buckets;
}

std::uint64_t slotfiles_per_bucket(double bucket_bytes, double slotfile_bytes_max) {
  FJORD_CHECK(slotfile_bytes_max > 0);
  std::uint64_t files = 1;
  while (static_cast<double>(files) * slotfile_bytes_max < bucket_bytes && files < std::uint64_t{1} << 62) files *= 2;
  return files;
}

std::uint64_t slotfiles_per_bucket_with_margin(double bucket_bytes, double slotfile_bytes_max) {
  return 2 * slotfiles_per_bucket(bucket_bytes, slotfile_bytes_max);
}

std::uint64_t output_buckets_min(double output_bytes, double bucket_bytes_max, double bucket_bytes_now) {
  if (bucket_bytes_now >= bucket_bytes_max) return 0;
  return std::max<std::uint64_t>(1, whole(ceiling(output_bytes / (bucket_bytes_max - bucket_bytes_now))));
}

std::uint64_t visitor_threads_cpu(std::uint64_t cpus_max) { return (cpus_max * 5 + 1) / 2; }

std::uint64_t visitor_threads_memory(double node_memory_bytes, double buckets, double documents,
                                     double tuple_bytes_per_document) {
  FJORD_CHECK(documents * tuple_bytes_per_document > 0);
  return whole(std::floor(node_memory_bytes * buckets / (documents * tuple_bytes_per_document) * (1 + 1e-12)));
}

double put_traffic_of_table(double replicas, double document_bytes, double header_bytes) {
  return traffic::put_payload_traffic(replicas, document_bytes, header_bytes) +
         (replicas + 2) *
             (traffic::frame_overhead(header_bytes) + traffic::frame_overhead(header_bytes + document_bytes));
}

double put_memory(double document_bytes, double entries) {
  return document_bytes + kSlotfileHeaderBytes + entries * kMetadataEntryBytes;
}

double remove_traffic(double replicas, double header_bytes) { return (2 * replicas + 2) * header_bytes; }

double remove_memory(double entries) { return kSlotfileHeaderBytes + entries * kMetadataEntryBytes; }

double get_traffic(double document_bytes, double header_bytes) { return 4 * header_bytes + 2 * document_bytes; }

double get_memory(double document_bytes, double entries) { return put_memory(document_bytes, entries); }

std::uint64_t docblocks(double documents, double document_bytes, double docblock_bytes) {
  FJORD_CHECK(docblock_bytes > 0);
  return whole(ceiling(documents * document_bytes / docblock_bytes));
}

double visit_traffic(const VisitTraffic& v) {
  return (v.distributors + v.storage_nodes) * 2 * v.header_bytes + v.distributors * v.bucket_nodes_reply_bytes +
         v.storage_nodes * v.create_visitor_bytes +
         static_cast<double>(docblocks(v.documents, v.document_bytes, v.docblock_bytes)) * v.docblock_bytes;
}

std::uint64_t docblocks_per_slotfile(double slotfile_bytes_max, double docblock_bytes) {
  return docblocks(1, slotfile_bytes_max, docblock_bytes);
}

double visit_reads(double slotfiles, double docblocks, bool with_selection) {
  return slotfiles * (with_selection ? 2 : 1) + docblocks * 3;
}

double visit_memory(const VisitMemory& v) {
  FJORD_CHECK(v.storage_nodes > 0 && v.buckets > 0);
  return ceiling(v.buckets / v.storage_nodes) * v.remaining_entry_bytes +
         v.disks * v.threads_per_disk * v.docblock_bytes +
         ceiling(v.documents / v.buckets) * v.buckets_at_once * v.pending_entry_bytes;
}

}  // namespace fjord::tuner::seed
